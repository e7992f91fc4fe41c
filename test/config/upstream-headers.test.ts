/** Which header fields a route may fix, from which files, and which routes inherit them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderConfig } from '../../src/commands/render-config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { createRequestHeaderFilter } from '../../src/upstream/headers.ts';
import { spellings } from '../support/field-spellings.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from './base-env.ts';

/** The headers of each route of a file, by the route's name. */
function headersOf(yaml: string, env: Record<string, string> = {}) {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(yaml) });
  if (!loaded.ok) return loaded.problems.map(({ key, message }) => `${key}: ${message}`);
  return Object.fromEntries(loaded.config.routes.map(({ name, upstream }) => [name, Object.keys(upstream.headers)]));
}

/** Fields that frame or route a message (RFC 9110 §6.4, §7.2, §7.6, §7.8, §10.1.1, §11.7) or belong to the sidecar. */
const RESERVED = [
  ...['Connection', 'Content-Length', 'Expect', 'Host', 'HTTP2-Settings', 'Keep-Alive', 'TE', 'Trailer'],
  ...[
    'Content-Encoding',
    'Content-Range',
    'Transfer-Encoding',
    'Upgrade',
    'Proxy-Connection',
    'Proxy-Authorization',
    'Proxy-Other',
  ],
  ...['X-Sidecar-Timeout-Ms', 'X-Sidecar-Other', 'Sec-WebSocket-Key', 'Sec-WebSocket-Protocol'],
];

/** Representation, conditions, negotiation, caches, provenance and traces (RFC 9110, RFC 9111, RFC 9530, Fetch, Trace Context). */
const OF_OTHER_MEANING = [
  ...['Accept', 'Accept-Encoding', 'Accept-Language', 'Access-Control-Request-Method', 'Cache-Control', 'Pragma'],
  ...['Content-Digest', 'Content-Disposition', 'Content-Language', 'Content-Location', 'Content-MD5', 'Content-Type'],
  ...['Date', 'Digest', 'Repr-Digest', 'ETag', 'Expires', 'Last-Modified', 'Vary', 'Age', 'Location', 'Set-Cookie'],
  ...['If-Match', 'If-Modified-Since', 'If-None-Match', 'If-Range', 'Range', 'Max-Forwards', 'Prefer', 'Priority'],
  ...['Forwarded', 'From', 'Origin', 'Referer', 'User-Agent', 'Via', 'X-Forwarded-For', 'X-Forwarded-Host'],
  ...['X-Forwarded-Proto', 'Sec-Fetch-Site', 'Sec-CH-UA', 'Traceparent', 'Tracestate', 'Baggage'],
];

const OF_TOKENS = [
  ...['Authorization', 'Cookie', 'X-Api-Key', 'Authorization-Token', 'Private-Token', 'dd-api-key', 'Token', 'ApiKey'],
  ...['X-Forwarded-Access-Token', 'Api-Key', 'Server-Token', 'Session-Id', 'Ocp-Apim-Subscription-Key', 'Date-Key'],
];

const reservedNames = fc.constantFrom(...RESERVED).chain(spellings);

describe('a name', () => {
  test('that frames or routes a message is refused in every spelling', () => {
    fc.assert(
      fc.property(reservedNames, (name) => {
        const headers = JSON.stringify({ [name]: 'x' });
        const fault = 'expected a field that does not frame or route the message';
        expect(problemsOf({ SIDECAR_UPSTREAM_HEADERS: headers })).toEqual([expect.stringContaining(fault)]);
        expect(problemsOf({ SIDECAR_UPSTREAM_TOKEN_HEADER: name })).toEqual([expect.stringContaining(fault)]);
      }),
      { numRuns: 60 },
    );
  });

  test('of another meaning carries no token in any spelling, and may be fixed', () => {
    fc.assert(
      fc.property(fc.constantFrom(...OF_OTHER_MEANING).chain(spellings), (name) => {
        const fault: unknown = expect.stringMatching(
          /^upstream\.tokenHeader .*expected a field that has no other meaning/,
        );
        expect(problemsOf({ SIDECAR_UPSTREAM_TOKEN_HEADER: name })).toEqual([fault]);
        expect(
          Object.keys(configOf({ SIDECAR_UPSTREAM_HEADERS: `{"${name}":"x"}` }).routes[0].upstream.headers),
        ).toEqual([name]);
      }),
      { numRuns: 200 },
    );
  });

  test('that servers use for tokens carries one in any spelling', () => {
    fc.assert(
      fc.property(fc.constantFrom(...OF_TOKENS).chain(spellings), (name) => {
        expect(configOf({ SIDECAR_UPSTREAM_TOKEN_HEADER: name }).routes[0].upstream.tokenHeader).toBe(name);
      }),
    );
  });

  test('that is not forwarded is refused, but for Authorization', () => {
    const isForwarded = (name: string) => createRequestHeaderFilter([])([name, 'x']).headers.length > 0;
    const isAllowed = (name: string) => {
      const env = { SIDECAR_UPSTREAM_TOKEN_HEADER: 'X-Token', SIDECAR_UPSTREAM_HEADERS: `{"${name}":"x"}` };
      return loadConfig({ env: { ...BASE_ENV, ...env } }).ok;
    };
    const others = ['Accept', 'Authorization', 'Content-Type', 'Cookie', 'Origin', 'User-Agent', 'X-Api-Key'];
    const found = [...RESERVED, ...others].filter((name) => isAllowed(name) && !isForwarded(name));
    expect(found).toEqual(['Authorization']);
    expect(others.every(isAllowed)).toBe(true);
  });

  test.each([
    ['the token’s own', { SIDECAR_UPSTREAM_HEADERS: '{"AUTHORIZATION":"x"}' }, /is the field of upstream\.tokenHeader/],
    ['there twice', { SIDECAR_UPSTREAM_HEADERS: '{"X-A":"x","x_a":"y"}' }, /is there twice/],
  ])('that is %s is refused', (_, env, fault) => {
    expect(problemsOf(env)).toEqual([expect.stringMatching(fault)]);
  });
});

describe('a file of a value', () => {
  const PLACES: readonly [key: string, yaml: (map: string) => string][] = [
    ['upstream.headers', (map) => `upstream: { headers: ${map} }`],
    ['auth.extraHeaders', (map) => `auth: { extraHeaders: ${map} }`],
    ['auth.extraParameters', (map) => `auth: { extraParameters: ${map} }`],
    ['routes[0].headers', (map) => `routes: [{ name: a, pathPrefix: /a, headers: ${map} }]`],
    ['credentials.c.extraHeaders', (map) => `credentials: { c: { extraHeaders: ${map} } }`],
    ['credentials.c.extraParameters', (map) => `credentials: { c: { extraParameters: ${map} } }`],
  ];

  test.each(PLACES)('of %s that cannot be used is a problem at the start', (key, yaml) => {
    const problemOf = (path: string) => headersOf(yaml(`{ X-Key: { file: "${path}" } }`));
    expect(problemOf('/nowhere/key')).toEqual([`${key}: the file "/nowhere/key" does not exist`]);
    const broken = scratchFile('two\nlines');
    expect(problemOf(broken)).toEqual([expect.stringContaining(`${key}: the file "${broken}" must not hold control`)]);
    const empty = scratchFile('\n');
    expect(problemOf(empty)).toEqual([`${key}: the file "${empty}" must not be empty`]);
    const accents = scratchFile('schlüssel');
    if (key.includes('eaders'))
      expect(problemOf(accents)).toEqual([expect.stringContaining('must be printable ASCII')]);
    else expect(problemOf(accents)).not.toBeInstanceOf(Array);
    expect(problemOf(scratchFile('a key\n'))).not.toBeInstanceOf(Array);
  });

  test('may begin with a byte order mark, which is dropped when it is read', () => {
    const path = scratchFile('\uFEFFsesame\r\n');
    const env = { SIDECAR_UPSTREAM_HEADERS: JSON.stringify({ 'X-Key': { file: path } }) };
    expect(loadConfig({ env: { ...BASE_ENV, ...env } }).ok).toBe(true);
  });

  test('of one route is read from the path that it names, and shown as it is', () => {
    const path = scratchFile('value-of-the-file\n');
    const env = { SIDECAR_UPSTREAM_HEADERS: JSON.stringify({ 'X-File': { file: path }, 'X-Text': 'sesame' }) };
    expect(configOf(env).upstream.headers).toEqual({
      'X-File': { kind: 'file', path },
      'X-Text': { kind: 'value', value: 'sesame' },
    });
    const shown = JSON.stringify(renderConfig({ env: { ...BASE_ENV, ...env } }));
    expect(shown).toContain(path);
    expect(shown).not.toMatch(/sesame|value-of-the-file/);
  });
});

describe('the fixed fields of the top level', () => {
  const TOP = 'upstream: { headers: { X-Key: sesame } }';

  test('are inherited by routes of the same origin, as a whole or not at all', () => {
    const yaml = `${TOP}
routes:
  - { name: path, pathPrefix: /a, baseUrl: "https://API.partner.example:443/other" }
  - { name: none, pathPrefix: /b }
  - { name: own, pathPrefix: /c, headers: { X-Own: x } }
  - { name: empty, pathPrefix: /d, headers: {} }
  - { name: host, pathPrefix: /e, baseUrl: "https://api.other.example", credential: default }
  - { name: port, pathPrefix: /f, baseUrl: "https://api.partner.example:8443", credential: default }`;
    expect(headersOf(yaml, { SIDECAR_BASE_URL: 'https://api.partner.example/v1' })).toEqual({
      default: ['X-Key'],
      path: ['X-Key'],
      none: ['X-Key'],
      own: ['X-Own'],
      empty: [],
      host: [],
      port: [],
    });
  });

  test('without a base URL of the top level belong to no API', () => {
    const yaml = `${TOP}\nroutes: [{ name: a, pathPrefix: /a, baseUrl: "https://api.partner.example" }]`;
    expect(headersOf(yaml, { SIDECAR_BASE_URL: '' })).toEqual([
      'upstream.headers: found without upstream.baseUrl, whose API they belong to; give each route its own headers',
    ]);
  });

  test('that are none, as `config` prints them, need no base URL of the top level', () => {
    const yaml =
      'upstream: { headers: {} }\nroutes: [{ name: a, pathPrefix: /a, baseUrl: "https://api.partner.example" }]';
    expect(headersOf(yaml, { SIDECAR_BASE_URL: '' })).toEqual({ a: [] });
  });

  test('are refused as a flag, without their values', () => {
    const loaded = loadConfig({
      env: BASE_ENV,
      flags: [{ flag: '--set upstream.headers', key: 'upstream.headers', text: '{"X-Key":"sesame"}' }],
    });
    expect(loaded).toMatchObject({ ok: false, problems: [{ key: 'upstream.headers' }] });
    expect(JSON.stringify(loaded)).not.toContain('sesame');
  });
});
