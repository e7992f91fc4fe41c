/** Findings for the response to a probe. */
import { expect, test } from 'vitest';
import { evaluateProbe } from '../../../../src/commands/check/evaluate/evaluate-probe.ts';

/** Settings by the last part of their keys, in capitals: TOKEN_HEADER. */
const nameSetting = (key: string): string => key.replace(/.*\./, '').replaceAll(/[A-Z]/g, '_$&').toUpperCase();
const probe = { ofRoute: nameSetting, ofCredential: nameSetting };

test.each([
  [200, {}, 'ok', /^responded with 200, no rate limit stated$/, undefined],
  [200, { 'content-type': 'text/html; charset=utf-8' }, 'warn', /200/, /a web page: unless the path serves pages/],
  [302, {}, 'warn', /302/, /redirects are passed on/],
  [401, { 'www-authenticate': 'Bearer error="invalid_token"' }, 'fail', /\(invalid_token\)$/, /AUDIENCE and SCOPE/],
  [401, {}, 'fail', /401, no rate limit stated$/, /AUDIENCE/],
  [403, {}, 'fail', /403/, /set HEADERS if a gateway expects a key.*role or scope/],
  [
    403,
    { 'www-authenticate': 'Bearer error="insufficient_scope", scope="quotes.write"' },
    'fail',
    /\(insufficient_scope: quotes\.write\)$/,
    /SCOPE/,
  ],
  [404, {}, 'warn', /404/, /BASE_URL/],
  [405, {}, 'warn', /405/, /another request/],
  [
    429,
    { 'retry-after': '7', 'x-ratelimit-limit': '10' },
    'warn',
    /retry-after: 7, x-ratelimit-limit: 10/,
    /first call/,
  ],
  [503, {}, 'fail', /503/, /whether 503 is its rate limit/],
  [500, {}, 'fail', /500/, /Give the partner the time/],
  [403, { 'content-type': 'text/html' }, 'fail', /a web page came/, /runs the firewall or proxy/],
] as const)('%i %j: %s', (status, fields, outcome, detail, advice) => {
  const field = (name: string): string | undefined => new Map(Object.entries(fields)).get(name);
  const verdict = evaluateProbe({ status, field, names: Object.keys(fields) }, probe, 0);
  expect(verdict.outcome).toBe(outcome);
  expect(verdict.detail).toMatch(detail);
  if (advice === undefined) expect(verdict.advice).toBeUndefined();
  else expect(verdict.advice).toMatch(advice);
});

test('401 for the token of a file advises about the file and not about audience or scope', () => {
  const head = { status: 401, field: () => undefined, names: [] };
  const { advice } = evaluateProbe(head, { ...probe, tokenFile: 'TOKEN_FILE' }, 0);
  expect(advice).toMatch(/TOKEN_FILE.*HEADER/);
  expect(advice).not.toMatch(/AUDIENCE|SCOPE/);
});

test('404 with the path of the base URL twice names what to leave out', () => {
  const head = { status: 404, field: () => undefined, names: [] };
  const { advice } = evaluateProbe(head, { ...probe, repeatedPath: '/v1' }, 0);
  expect(advice).toBe(
    "the path has /v1 twice: leave it out of --probe and of the application's paths, or out of BASE_URL",
  );
});
