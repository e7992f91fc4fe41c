/** Findings for open TLS connections: what they use, and how long their certificates are valid. */
import { expect, test } from 'vitest';
import { evaluateSession } from '../../../../src/commands/check/evaluate/evaluate-tls.ts';

const NOW = Date.UTC(2027, 0, 31);
const DAY_MS = 86_400_000;
const later = (days: number) => new Date(NOW + days * DAY_MS);
const middle = { subject: 'O=Authority\nCN=Middle', issuer: 'CN=Root', validToDate: later(100) };
const leaf = { subject: 'CN=api.example', issuer: 'CN=Middle', validToDate: later(100), issuerCertificate: middle };

function evaluate(certificate: typeof leaf | undefined, hasOffered = false) {
  const session = {
    getProtocol: () => 'TLSv1.3',
    getCipher: () => ({ name: 'TLS_AES_256_GCM_SHA384', standardName: 'TLS_AES_256_GCM_SHA384', version: 'TLSv1.3' }),
    getPeerX509Certificate: () => certificate,
  };
  return evaluateSession(session, hasOffered, NOW);
}

test('reports protocol, cipher, issuer and expiry', () => {
  expect(evaluate(leaf)).toEqual({
    outcome: 'ok',
    detail: 'TLSv1.3 (TLS_AES_256_GCM_SHA384), certificate CN=api.example by CN=Middle, 100 days left (2027-05-11)',
  });
});

test.each([
  [21, 'ok'],
  [20, 'warn'],
  [0, 'warn'],
])('%i days before its end: %s', (days, outcome) => {
  expect(evaluate({ ...leaf, validToDate: later(days) }).outcome).toBe(outcome);
});

test('names an intermediate certificate that expires first', () => {
  expect(evaluate({ ...leaf, issuerCertificate: { ...middle, validToDate: later(3) } })).toMatchObject({
    outcome: 'warn',
    detail: expect.stringContaining('3 days left (O=Authority, CN=Middle)') as string,
    advice: expect.stringContaining('renewed in time') as string,
  });
});

test('ends with a chain that leads to itself', () => {
  const circle = { ...leaf };
  circle.issuerCertificate = circle;
  expect(evaluate(circle).outcome).toBe('ok');
});

test('says that our certificate was offered, also where the server has none', () => {
  expect(evaluate(leaf, true).detail).toBe(`${evaluate(leaf).detail}, our certificate offered`);
  expect(evaluate(undefined, true).detail).toMatch(/, no certificate sent, our certificate offered$/);
});
