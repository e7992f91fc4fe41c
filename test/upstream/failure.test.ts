/** What the faults of undici and Node are called. */
import { describe, expect, it } from 'vitest';
import {
  createProxyConnectionFault,
  createProxyRejectionFault,
  createProxyTimeoutFault,
} from '../../src/platform/egress/proxy-fault.ts';
import { ProxyFault } from '../../src/platform/connection-faults.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  ConnectionFailed,
  idleTimeoutFailure,
  parsingFailure,
  timeoutFailure,
} from '../../src/upstream/failure.ts';

function fault(code: string, message = 'secret-free'): Error {
  return Object.assign(new Error(message), { code });
}

describe('a connection that never opened', () => {
  it.each([true, false])('through a proxy, in the words of its own: permanent %s', (permanent) => {
    const error = new ProxyFault('p.test:3128', {
      words: 'says no',
      advice: 'ask it',
      proxyStatus: 'destination_unavailable',
      cause: 'egress_proxy',
      permanence: permanent ? 'certain' : undefined,
    });
    expect(classifyConnectError(error)).toEqual({
      kind: 'unreachable',
      detail: 'the upstream cannot be reached: the egress proxy p.test:3128 says no',
      proxyStatus: 'destination_unavailable',
      cause: 'egress_proxy',
      advice: 'ask it',
      permanent,
    });
  });

  it.each([
    ['ECONNREFUSED', 'connection_refused', false],
    ['ENOTFOUND', 'dns_error', false],
    ['EAI_AGAIN', 'dns_error', false],
    ['ETIMEDOUT', 'connection_timeout', false],
    ['EHOSTUNREACH', 'destination_ip_unroutable', false],
    ['ENETUNREACH', 'destination_ip_unroutable', false],
    ['EPROTO', 'tls_protocol_error', false],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_protocol_error', true],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'tls_protocol_error', true],
    ['CERT_HAS_EXPIRED', 'tls_certificate_error', true],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_certificate_error', true],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_certificate_error', true],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_certificate_error', true],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_certificate_error', true],
    ['ECONNRESET', 'connection_terminated', false],
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
      kind: 'unsendable',
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
      advice: expect.stringContaining('upstream.tlsCertificateFile') as unknown,
      proxyStatus: 'tls_certificate_error',
      permanent: true,
    });
  });
});

describe('the cause of a failure', () => {
  const PREFACE = Object.assign(new Error('no HTTP/1.1'), { data: '\0\0\x12\x04\0\0\0\0\0' });

  it.each([
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ECONNREFUSED', 'connection_refused'],
    ['ETIMEDOUT', 'connect_timeout'],
    ['EHOSTUNREACH', 'unroutable'],
    ['ENETUNREACH', 'unroutable'],
    ['ECONNRESET', 'reset_before_sent'],
    ['EPIPE', 'reset_before_sent'],
    ['UND_ERR_SOCKET', 'reset_before_sent'],
    ['EPROTO', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', 'protocol'],
    ['CERT_HAS_EXPIRED', 'certificate_expired'],
    ['CERT_NOT_YET_VALID', 'certificate_not_yet_valid'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate_untrusted'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate_wrong_host'],
    ['EMFILE', 'other'],
    ['UND_ERR_INVALID_ARG', undefined],
  ])('is, for %s before the request was sent, %s', (code, cause) => {
    expect(classifyConnectError(fault(code)).cause).toBe(cause);
    // An open circuit breaker has the failure of the last connection.
    const failure = classifyConnectError(fault(code));
    expect(classifyConnectError(new ConnectionFailed(failure))).toBe(failure);
  });

  it.each([
    ['refuses the connection', createProxyConnectionFault('p.test', fault('ECONNREFUSED')), 'egress_proxy'],
    [
      'has no certificate that is trusted',
      createProxyConnectionFault('p.test', fault('CERT_HAS_EXPIRED')),
      'egress_proxy',
    ],
    ['asks for credentials', createProxyRejectionFault('p.test', 'u.test:443', 407), 'egress_proxy'],
    ['does not allow the destination', createProxyRejectionFault('p.test', 'u.test:443', 403), 'egress_proxy'],
    ['cannot reach the destination', createProxyRejectionFault('p.test', 'u.test:443', 502), 'beyond_egress_proxy'],
    ['does not respond', createProxyTimeoutFault('p.test', 100), 'egress_proxy'],
  ])('is, when the proxy %s, %s', (_, error, cause) => {
    expect(classifyConnectError(error).cause).toBe(cause);
  });

  it.each([
    [fault('ECONNRESET'), 'reset_after_sent', 'response_cut'],
    [fault('UND_ERR_RES_CONTENT_LENGTH_MISMATCH'), 'protocol', 'response_cut'],
    [fault('HPE_INVALID_CONSTANT'), 'protocol', 'protocol'],
    [fault('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 'client_certificate', 'client_certificate'],
    [PREFACE, 'protocol', 'response_cut'],
  ])('is, after the request was sent, by whether the head had come: %j', (error, beforeHead, afterHead) => {
    expect(classifyExchangeError(error, false).cause).toBe(beforeHead);
    expect(classifyExchangeError(error, true).cause).toBe(afterHead);
  });

  it('is that of the side which stopped', () => {
    expect(timeoutFailure(1).cause).toBe('no_response_in_time');
    expect(parsingFailure('x').cause).toBe('protocol');
    expect(idleTimeoutFailure('upstream', 1).cause).toBe('response_cut');
    expect(idleTimeoutFailure('client', 1).cause).toBeUndefined();
    expect(abortedFailure().cause).toBeUndefined();
  });
});
