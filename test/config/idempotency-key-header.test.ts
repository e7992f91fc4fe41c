/** Which field may carry the idempotency keys that the sidecar adds, and which routes have one. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';
import { createRequestHeaderFilter } from '../../src/upstream/headers.ts';
import { spellings } from '../support/field-spellings.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from './base-env.ts';

const VARIABLE = 'SIDECAR_RETRY_IDEMPOTENCY_KEY_HEADER';

/** Framing, routing, hop by hop, of the sidecar, or with another meaning. */
const REFUSED = [
  ...['Connection', 'Content-Length', 'Expect', 'Host', 'HTTP2-Settings', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade'],
  ...['Transfer-Encoding', 'Proxy-Connection', 'Proxy-Authorization', 'X-Sidecar-Timeout-Ms', 'Sec-WebSocket-Key'],
  ...['Authorization', 'Content-Type', 'Content-Encoding', 'Accept', 'Cookie', 'Date', 'If-Match', 'Traceparent'],
];
const USUAL = ['Idempotency-Key', 'X-Idempotency-Key', 'X-Request-Id', 'PayPal-Request-Id', 'Repeatability-Request-ID'];

/** The header of each route of a file, or the problems. */
function headersOf(yaml: string, env: Record<string, string> = {}): unknown {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(yaml) });
  if (!loaded.ok) return loaded.problems.map(({ key, message }) => `${key}: ${message}`);
  return Object.fromEntries(loaded.config.routes.map(({ name, retry }) => [name, retry.idempotencyKey.header]));
}

describe('a name', () => {
  test('that frames or routes a message, or has another meaning, is refused in every spelling', () => {
    fc.assert(
      fc.property(fc.constantFrom(...REFUSED).chain(spellings), (name) => {
        const problem: unknown = expect.stringMatching(/expected a field that (?:does not frame|has no other meaning)/);
        expect(problemsOf({ [VARIABLE]: name })).toEqual([problem]);
      }),
      { numRuns: 100 },
    );
  });

  test.each(['a b', 'a:b', 'schlüssel', 'a\tb', '__proto__'])('%j is refused', (name) => {
    expect(problemsOf({ [VARIABLE]: name })).toEqual([expect.stringContaining('expected a field name such as')]);
  });

  test.each(USUAL)('%s is taken, and a field of it is forwarded', (name) => {
    expect(configOf({ [VARIABLE]: name }).routes[0].retry.idempotencyKey.header).toBe(name);
    expect(createRequestHeaderFilter([])([name, 'x'], name)).toMatchObject({ headers: [name, 'x'] });
  });

  test('of a field that the sidecar sets or removes is refused in every spelling', () => {
    const owners = [
      ['upstream.tokenHeader', { SIDECAR_UPSTREAM_TOKEN_HEADER: 'X-Call-Id' }],
      ['upstream.headers', { SIDECAR_UPSTREAM_HEADERS: '{"X-Other":"x","X-Call-Id":"y"}' }],
      [
        'listen.requiredHeader.name',
        { SIDECAR_LISTEN_REQUIRED_HEADER_NAME: 'X-Call-Id', SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: 'sesame-open' },
      ],
    ] as const;
    fc.assert(
      fc.property(fc.constantFrom(...owners), spellings('X-Call-Id'), ([owner, env], name) => {
        const problem: unknown = expect.stringMatching(new RegExp(`found ${name}, which is a field of ${owner}`));
        expect(problemsOf({ ...env, [VARIABLE]: name })).toEqual([problem]);
      }),
    );
  });
});

describe('a route', () => {
  const routes = (own: string) => `
retry: { idempotencyKey: { header: Idempotency-Key } }
routes: [{ name: plain, pathPrefix: /a }, { name: own, pathPrefix: /b, ${own} }]`;

  test('inherits the name or has its own', () => {
    const inherited = { default: 'Idempotency-Key', plain: 'Idempotency-Key' };
    expect(headersOf(routes('methods: [POST]'))).toEqual({ ...inherited, own: 'Idempotency-Key' });
    const other = 'retry: { idempotencyKey: { header: X-Request-Id } }';
    expect(headersOf(routes(other))).toEqual({ ...inherited, own: 'X-Request-Id' });
    expect(headersOf(`routes: [{ name: own, pathPrefix: /b, ${other} }]`)).toEqual({
      default: null,
      own: 'X-Request-Id',
    });
  });

  test('of another origin has none, unless it is its own: that API may not honour keys', () => {
    const other = 'baseUrl: "https://other.example", credential: default';
    expect(headersOf(routes(other))).toMatchObject({ plain: 'Idempotency-Key', own: null });
    const own = `${other}, retry: { idempotencyKey: { header: X-Request-Id } }`;
    expect(headersOf(routes(own))).toMatchObject({ plain: 'Idempotency-Key', own: 'X-Request-Id' });
  });

  test('cannot fix a field of the name that it inherits', () => {
    expect(headersOf(routes('headers: { idempotency_key: x }'))).toEqual([
      expect.stringMatching(/^retry\.idempotencyKey\.header: .*found Idempotency-Key, which is a field of routes\[1\]/),
    ]);
  });
});
