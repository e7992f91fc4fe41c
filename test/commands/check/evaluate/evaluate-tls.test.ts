/** Findings for TLS handshakes: each fault names its cause and the setting that fixes it. */
import { describe, expect, test } from 'vitest';
import { evaluateHandshake } from '../../../../src/commands/check/evaluate/evaluate-tls.ts';
import type { TlsHandshakeResult, TlsCheckContext } from '../../../../src/commands/check/evaluate/evaluate-tls.ts';

const NOW = Date.UTC(2027, 0, 31);
const DAY_MS = 86_400_000;
const names = { address: 'BASE_URL', ca: 'CA_FILE', certificate: 'CERTIFICATE_FILE', caFile: undefined };
const context: TlsCheckContext = { host: 'api.example', names, wallNow: NOW };
const leaf = {
  subject: 'CN=api.example',
  issuer: 'CN=Middle',
  names: 'api.example, www.example',
  validFrom: NOW - 100 * DAY_MS,
  validTo: NOW + 100 * DAY_MS,
};
const middle = { ...leaf, subject: 'CN=Middle', issuer: 'CN=Root', names: '' };

type Secured = Extract<TlsHandshakeResult, { kind: 'secured' }>;
const secured = (changes: Partial<Secured> = {}): Secured => ({
  kind: 'secured',
  protocol: 'TLSv1.3',
  cipher: 'TLS_AES_256_GCM_SHA384',
  distrust: undefined,
  chain: [leaf, middle],
  refusal: undefined,
  ...changes,
});

describe('a handshake that succeeded', () => {
  test('reports protocol, cipher, issuer and expiry', () => {
    expect(evaluateHandshake(secured(), context)).toEqual({
      outcome: 'ok',
      detail: 'TLSv1.3 (TLS_AES_256_GCM_SHA384), certificate CN=api.example by CN=Middle, 100 days left (2027-05-11)',
    });
  });

  test.each([
    [21, 'ok'],
    [20, 'warn'],
    [0, 'warn'],
  ])('%i days before its end: %s', (days, outcome) => {
    const expiring = { ...leaf, validTo: NOW + days * DAY_MS };
    expect(evaluateHandshake(secured({ chain: [expiring, middle] }), context).outcome).toBe(outcome);
  });

  test('names an intermediate certificate that expires first', () => {
    const expiring = { ...middle, validTo: NOW + 3 * DAY_MS };
    const finding = evaluateHandshake(secured({ chain: [leaf, expiring] }), context);
    expect(finding).toMatchObject({
      outcome: 'warn',
      detail: expect.stringContaining('3 days left (CN=Middle)') as string,
    });
  });

  test.each([
    [undefined, ''],
    [{ certificateFile: 'c.pem', keyFile: 'k.pem' }, ', our certificate offered'],
  ])('with the client certificate %j', (clientCertificate, words) => {
    const { detail } = evaluateHandshake(secured(), { ...context, clientCertificate });
    expect(detail).toBe(`${evaluateHandshake(secured(), context).detail}${words}`);
  });
});

describe('a certificate that is not trusted', () => {
  test.each([
    ['CERT_HAS_EXPIRED', /has expired/, /ask the operator of api\.example to renew it/],
    ['CERT_NOT_YET_VALID', /valid only from 2026-10-23 on/, /check the local clock: 2027-01-31/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /is for api\.example, www\.example, not for api\.example/, /BASE_URL/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /self-signed and not among the system's roots/, /CA_FILE/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /unknown authority: CN=Root is not among the system's roots/, /CA_FILE.*CN=Root/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /unknown authority/, /does not send its intermediate/],
    ['CERT_REVOKED', /is not trusted \(CERT_REVOKED\)/, /CA_FILE/],
  ])('%s', (distrust, detail, advice) => {
    expect(evaluateHandshake(secured({ distrust }), context)).toEqual({
      outcome: 'fail',
      detail: expect.stringMatching(detail) as string,
      advice: expect.stringMatching(advice) as string,
    });
  });

  test('names the intermediate certificate that has expired', () => {
    const expired = { ...middle, validTo: NOW - DAY_MS };
    const { detail } = evaluateHandshake(secured({ distrust: 'CERT_HAS_EXPIRED', chain: [leaf, expired] }), context);
    expect(detail).toBe('the certificate CN=Middle has expired (2027-01-30)');
  });

  test('names the file of trusted authorities', () => {
    const own = { ...context, names: { ...names, caFile: '/etc/ca.pem' } };
    expect(evaluateHandshake(secured({ distrust: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' }), own).detail).toContain(
      'not among the authorities in /etc/ca.pem',
    );
  });
});

describe('a handshake that failed', () => {
  test.each([
    ['ERR_SSL_WRONG_VERSION_NUMBER', /this port does not use TLS/, /BASE_URL/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /no TLS version of 1\.2 or newer/, /TLS 1\.2 or 1\.3/],
    ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', /ended the handshake/, /CERTIFICATE_FILE/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', /requires a client certificate/, /CERTIFICATE_FILE/],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', /does not know the authority of the client certificate/, /CERTIFICATE_FILE/],
    ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', /the handshake failed/, /network/],
    ['ERR_SSL_SSL/TLS_ALERT_UNRECOGNIZED_NAME', /does not know this host name/, /BASE_URL/],
    ['ECONNRESET', /cut during the handshake/, /BASE_URL/],
    ['ETIMEDOUT', /did not end in time/, /network/],
  ])('%s', (code, detail, advice) => {
    const expected = {
      outcome: 'fail',
      detail: expect.stringMatching(detail) as string,
      advice: expect.stringMatching(advice) as string,
    };
    expect(evaluateHandshake({ kind: 'failed', code }, context)).toEqual(expected);
    expect(evaluateHandshake(secured({ refusal: code }), context)).toEqual(expected);
  });
});
