/** What the faults of undici and Node are called. */
import { describe, expect, it } from 'vitest';
import { ProxyFault } from '../../src/platform/egress/proxy-fault.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  timeoutFailure,
} from '../../src/upstream/failure.ts';

function fault(code: string, message = 'secret-free'): Error {
  return Object.assign(new Error(message), { code });
}

describe('a connection that never opened', () => {
  it.each([true, false])('through a proxy, in the words of its own: permanent %s', (permanent) => {
    const error = new ProxyFault('the egress proxy p.test:3128 says no', 'destination_unavailable', permanent);
    expect(classifyConnectError(error)).toEqual({
      kind: 'unreachable',
      detail: 'the upstream cannot be reached: the egress proxy p.test:3128 says no',
      proxyStatus: 'destination_unavailable',
      permanent,
    });
  });

  it.each([
    ['ECONNREFUSED', 'connection_refused', false],
    ['ENOTFOUND', 'dns_error', false],
    ['EAI_AGAIN', 'dns_error', false],
    ['ETIMEDOUT', 'connection_timeout', false],
    ['UND_ERR_CONNECT_TIMEOUT', 'connection_timeout', false],
    ['EHOSTUNREACH', 'destination_ip_unroutable', false],
    ['ENETUNREACH', 'destination_ip_unroutable', false],
    ['EPROTO', 'tls_protocol_error', false],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol_error', false],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls_protocol_error', false],
    ['CERT_HAS_EXPIRED', 'tls_certificate_error', true],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_certificate_error', true],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_certificate_error', true],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_certificate_error', true],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_certificate_error', true],
    ['ESOMETHING', 'destination_unavailable', false],
  ])('%s is unreachable: %s', (code, proxyStatus, permanent) => {
    const failure = classifyConnectError(fault(code));
    expect(failure).toMatchObject({ kind: 'unreachable', proxyStatus, permanent });
    expect(failure.detail).toContain(code);
  });

  it('names the first of several addresses’ faults', () => {
    const both = new AggregateError([fault('ECONNREFUSED'), fault('ENETUNREACH')]);
    expect(classifyConnectError(both)).toMatchObject({ proxyStatus: 'connection_refused' });
  });

  it('is never made of what cannot be sent', () => {
    expect(classifyConnectError(fault('UND_ERR_INVALID_ARG', 'invalid x header'))).toMatchObject({
      kind: 'refused',
      permanent: true,
    });
  });

  it.each([undefined, null, 'text', 7, {}, { code: 9 }])('survives %j', (error) => {
    expect(classifyConnectError(error).kind).toBe('unreachable');
    expect(classifyExchangeError(error).kind).toBe('reset');
  });
});

describe('an exchange that broke', () => {
  it.each([
    ['ECONNRESET', 'reset', false],
    ['EPIPE', 'reset', false],
    ['UND_ERR_SOCKET', 'reset', false],
    ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'reset', false],
    ['HPE_INVALID_CONSTANT', 'protocol', true],
    ['HPE_INVALID_CHUNK_SIZE', 'protocol', true],
    ['UND_ERR_HEADERS_OVERFLOW', 'protocol', true],
    ['ERR_INVALID_CHAR', 'protocol', true],
  ])('%s is %s', (code, kind, permanent) => {
    expect(classifyExchangeError(fault(code))).toMatchObject({ kind, permanent });
  });

  it('with an unrequested upgrade is a protocol error', () => {
    expect(classifyExchangeError(fault('UND_ERR_SOCKET', 'bad upgrade')).kind).toBe('protocol');
  });
});

it('time-outs and aborts are named by themselves', () => {
  expect(timeoutFailure(1499.6)).toMatchObject({ kind: 'timeout', permanent: false });
  expect(timeoutFailure(1499.6).detail).toContain('1500 ms');
  expect(abortedFailure()).toMatchObject({ kind: 'aborted', permanent: true });
});

describe('a TLS alert about the certificate of the client, in the words of each OpenSSL', () => {
  it.each([
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
    'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
    'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED',
  ])('%s', (code) => {
    expect(classifyExchangeError(fault(code))).toMatchObject({
      kind: 'unreachable',
      detail: expect.stringContaining('upstream.tlsCertificateFile') as unknown,
      proxyStatus: 'tls_certificate_error',
      permanent: true,
    });
  });
});
