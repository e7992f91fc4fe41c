/** Routes and credentials: inheritance from the top level, consistency, and problems. */
import { describe, expect, test } from 'vitest';
import { renderConfig } from '../../../src/commands/render-config.ts';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load/load.ts';
import { BASE_ENV, problemsOf, scratchFile } from '../base-env.ts';

/** A top level with the settings of the test only. */
const NOTHING = Object.fromEntries(Object.keys(BASE_ENV).map((name) => [name, '']));

const QUOTES = '{ name: quotes, pathPrefix: /quotes, baseUrl: https://quotes.example.com, credential: quotes }';
const CREDENTIAL = '{ url: https://login.example.com, clientId: c, clientSecret: s-of-quotes, scope: quotes.write }';

function load(yaml: string, env: Readonly<Record<string, string>> = {}): Config {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(yaml) });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
}

function problems(yaml: string, env: Readonly<Record<string, string>> = {}): string[] {
  return problemsOf(env, { file: scratchFile(yaml) });
}

function authOf(config: Config, name: string) {
  const found = config.credentials.find((credential) => credential.name === name);
  if (found === undefined) throw new Error(`no credential ${name}`);
  return found.auth;
}

describe('routes', () => {
  test('without entries the top level is the only route and credential', () => {
    const { routes, credentials } = load('');
    expect(routes).toMatchObject([
      { name: 'default', pathPrefix: '/', stripPrefix: false, credential: 'default', throttleGroup: 'default' },
    ]);
    expect(routes[0].methods).toBeUndefined();
    expect(credentials.map(({ name }) => name)).toEqual(['default']);
  });

  test('use their own value, else that of the top level', () => {
    const { routes } = load(
      `throttle: { rate: 5, burst: 3 }
upstream: { connectTimeoutMs: 77 }
routes:
  - { name: a, pathPrefix: /a, baseUrl: https://a.example.com/v2, throttle: { rate: 9 }, methods: GET }
  - { name: b, pathPrefix: /b, stripPrefix: true, requestTimeoutMs: 11, request: { deadlineMs: 12 }, queue: { max: 0 } }`,
      { SIDECAR_BURST: '4', SIDECAR_RETRY_ATTEMPTS: '2' },
    );
    expect(routes.map(({ name }) => name)).toEqual(['default', 'a', 'b']);
    const [, a, b] = routes;
    expect(a?.upstream).toMatchObject({ connectTimeoutMs: 77, requestTimeoutMs: 30_000 });
    expect(a?.upstream.baseUrl.href).toBe('https://a.example.com/v2');
    expect(a).toMatchObject({ throttle: { rate: 9, burst: 4 }, retry: { attempts: 2 }, methods: ['GET'] });
    expect(b?.upstream.baseUrl.href).toBe(BASE_ENV.SIDECAR_BASE_URL);
    expect(b).toMatchObject({
      stripPrefix: true,
      upstream: { requestTimeoutMs: 11, connectTimeoutMs: 77 },
      throttle: { rate: 5, burst: 4 },
      request: { deadlineMs: 12 },
      queue: { max: 0, timeoutMs: 30_000 },
    });
  });

  test('need no upstream and no credential at the top level', () => {
    const { routes, credentials } = load(`routes: [${QUOTES}]\ncredentials: { quotes: ${CREDENTIAL} }`, NOTHING);
    expect(routes.map(({ name }) => name)).toEqual(['quotes']);
    expect(credentials.map(({ name }) => name)).toEqual(['quotes']);
  });

  test('share a throttle by naming a route, or a group of their own', () => {
    const { routes } = load(`routes:
  - { name: a, pathPrefix: /a }
  - { name: b, pathPrefix: /b, throttle: { group: a } }
  - { name: c, pathPrefix: /c, throttle: { group: default } }
  - { name: d, pathPrefix: /d, throttle: { group: shared } }`);
    expect(routes.map(({ throttleGroup }) => throttleGroup)).toEqual(['default', 'a', 'a', 'default', 'shared']);
  });

  test('are ignored by a command with its own upstream', () => {
    const preset = { name: 'sandbox', values: { 'upstream.baseUrl': 'http://127.0.0.1:1' } } as const;
    const loaded = loadConfig({ env: BASE_ENV, file: scratchFile(`routes: [${QUOTES}]`), preset });
    expect(loaded.ok && loaded.config.routes.map(({ name }) => name)).toEqual(['default']);
  });
});

describe('credentials', () => {
  const routes = `routes: [${QUOTES}]`;

  test.each([
    ['by name', `credentials: { quotes: { scope: quotes.write } }`],
    ['as a list', `credentials: [{ name: quotes, scope: quotes.write }]`],
  ])('%s inherit the client from the top level, but not its audience and scope', (_, credentials) => {
    const config = load(`${routes}\n${credentials}`);
    const auth = authOf(config, 'quotes');
    expect(auth).toMatchObject({ scope: 'quotes.write', audience: [], resource: [] });
    expect(auth.clientId).toEqual(authOf(config, 'default').clientId);
    expect(auth.method).toEqual(authOf(config, 'default').method);
    expect(auth.endpoint).toEqual(authOf(config, 'default').endpoint);
    expect(authOf(config, 'default')).toMatchObject({ scope: undefined, audience: [BASE_ENV.SIDECAR_AUDIENCE] });
  });

  test("never join one client's id with another's secret", () => {
    expect(problems(`${routes}\ncredentials: { quotes: { clientId: other } }`)).toEqual([
      'credentials.quotes.clientSecret: required; the client secret for client_secret_basic, or the file that holds it in credentials.quotes.clientSecretFile',
    ]);
  });

  test('with their own server inherit no secret', () => {
    const top = 'auth: { extraHeaders: { x-api-key: key-of-the-top }, extraParameters: { tenant: t }, timeoutMs: 9 }';
    const missing = problems(`${top}\n${routes}\ncredentials: { quotes: { url: https://other.example.com } }`);
    expect(missing.map((line) => line.split(':')[0])).toEqual([
      'credentials.quotes.clientId',
      'credentials.quotes.clientSecret',
    ]);
    const config = load(`${top}\n${routes}\ncredentials: { quotes: ${CREDENTIAL} }`);
    expect(authOf(config, 'quotes')).toMatchObject({ extraHeaders: {}, extraParameters: {}, timeoutMs: 9 });
    expect(authOf(config, 'default').extraHeaders).toEqual({
      'x-api-key': { kind: 'value', value: 'key-of-the-top' },
    });
  });

  test('with a token in a file take no notice of the fields by which the client of the top level authenticates', () => {
    const env = { ...BASE_ENV, SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUTH_METHOD: 'none' };
    const top =
      'auth: { extraParameters: { client_id: a, client_secret: b }, extraHeaders: { Authorization: Basic c } }';
    const file = scratchFile(`${top}\n${routes}\ncredentials: { quotes: { method: static, tokenFile: /run/token } }`);
    expect(loadConfig({ env, file })).toMatchObject({ ok: true });
  });

  test('that no route uses cause a warning and are not used', () => {
    const loaded = loadConfig({ env: BASE_ENV, file: scratchFile(`credentials: { idle: { scope: a } }`) });
    expect(loaded).toMatchObject({
      ok: true,
      warnings: ['credentials.idle: no route uses this credential, and no token is asked for with it'],
    });
    expect(loaded.ok && loaded.config.credentials.map(({ name }) => name)).toEqual(['default']);
  });

  test('need different cache files', () => {
    expect(
      problems(
        `auth: { cacheFile: /cache/t }\nroutes: [${QUOTES}]\ncredentials: { quotes: { scope: a, cacheFile: /cache/t } }`,
      ),
    ).toEqual([
      'credentials.quotes.cacheFile: found "/cache/t", as in auth.cacheFile; expected a file for each credential',
    ]);
    const apart = load(`auth: { cacheFile: /cache/t }\nroutes: [${QUOTES}]\ncredentials: { quotes: { scope: a } }`);
    expect([authOf(apart, 'default').cacheFile, authOf(apart, 'quotes').cacheFile]).toEqual(['/cache/t', undefined]);
  });
});

describe('a token for a second origin', () => {
  const warningsOf = (route: string) =>
    loadConfig({ env: BASE_ENV, file: scratchFile(`routes: [{ name: a, pathPrefix: /a, ${route} }]`) }).warnings;

  test('causes a warning when the route names no credential', () => {
    expect(warningsOf('baseUrl: https://a.example.com')).toEqual([
      'routes[0]: sends the token of the top-level auth to https://a.example.com as well; name its credential, default if that is meant',
    ]);
  });
  test.each([
    'baseUrl: https://a.example.com, credential: default',
    'baseUrl: https://api.example.com/v2',
    'websocket: true',
  ])('causes no warning with %s', (route) => {
    expect(warningsOf(route)).toEqual([]);
  });
});

describe('a problem', () => {
  test('is reported with all others, by its key', () => {
    const found = problems(`routes:
  - { name: Quotes, pathPrefix: quotes/, baseUrl: ftp://x, methods: get }
  - { pathPrefix: /b, requestTimeoutMs: 5s, throttle: { rate: fast }, requestTimeoutM: 3, stripPrefix: yes }
  - nonsense
credentials:
  write: { clientSecret: a, clientSecretFile: /nowhere/secret, scop: x }`);
    const startsOf = found.map((line) => line.split(';')[0]);
    expect(startsOf).toEqual([
      'routes[2]: expected a section with keys in it',
      expect.stringMatching(/^routes\[0\]\.name: found "Quotes"/),
      expect.stringMatching(/^routes\[0\]\.pathPrefix: found "quotes\/"/),
      expect.stringMatching(/^routes\[0\]\.methods: found "get"/),
      expect.stringMatching(/^routes\[0\]\.baseUrl: found "ftp:\/\/x"/),
      expect.stringMatching(/^routes\[1\]\.requestTimeoutM: unknown key in /),
      'routes[1].name: required',
      expect.stringMatching(/^routes\[1\]\.stripPrefix: found "yes"/),
      expect.stringMatching(/^routes\[1\]\.requestTimeoutMs: found "5s"/),
      expect.stringMatching(/^routes\[1\]\.throttle\.rate: found "fast"/),
      expect.stringMatching(/^credentials\.write\.scop: unknown key in /),
      'credentials.write.clientId: required',
      'credentials.write.clientSecret: set together with credentials.write.clientSecretFile',
      expect.stringContaining('credentials.write.clientSecretFile: the file "/nowhere/secret" does not exist'),
    ]);
    expect(found[5]).toContain('did you mean routes[1].requestTimeoutMs?');
    expect(found[10]).toContain('did you mean credentials.write.scope?');
    expect(found.join()).not.toMatch(/SIDECAR_CLIENT_SECRET/);
  });

  test.each([
    [
      'a name twice',
      '{ name: a, pathPrefix: /a }, { name: a, pathPrefix: /b }',
      'routes[1].name: found "a", as in routes[0].name',
    ],
    [
      'a prefix twice',
      '{ name: a, pathPrefix: /a }, { name: b, pathPrefix: /a }',
      'routes[1].pathPrefix: found "/a", as in routes[0].pathPrefix',
    ],
    [
      'a prefix twice with a method in common',
      '{ name: a, pathPrefix: /a, methods: [GET, PUT] }, { name: b, pathPrefix: /a, methods: [POST, PUT] }',
      'routes[1].pathPrefix: found "PUT /a", as in routes[0].pathPrefix',
    ],
    [
      'a prefix twice for the rest of the methods',
      '{ name: a, pathPrefix: /a }, { name: b, pathPrefix: /a, methods: GET }, { name: c, pathPrefix: /a }',
      'routes[2].pathPrefix: found "/a", as in routes[0].pathPrefix',
    ],
    [
      'the prefix of the top level',
      '{ name: a, pathPrefix: / }',
      'routes[0].pathPrefix: found "/", as in the route of the top-level upstream.baseUrl',
    ],
    [
      'the name of the top level',
      '{ name: default, pathPrefix: /a }',
      'routes[0].name: found default, which names the top-level settings',
    ],
    [
      'a credential that is not there',
      '{ name: a, pathPrefix: /a, credential: defualt }',
      'routes[0].credential: found "defualt", which is not a credential; did you mean default?',
    ],
    [
      'what is one for all',
      '{ name: a, pathPrefix: /a, throttle: { stateFile: /x } }',
      'routes[0].throttle.stateFile: belongs to the top level, as throttle.stateFile: all routes share it',
    ],
    [
      'a URL without TLS',
      '{ name: a, pathPrefix: /a, baseUrl: http://a.example.com }',
      /^routes\[0\]\.baseUrl: http: is accepted for loopback hosts only/,
    ],
    ['a dot segment', '{ name: a, pathPrefix: /a/../b }', /^routes\[0\]\.pathPrefix: found "\/a\/\.\.\/b"/],
    ['an escape', '{ name: a, pathPrefix: /%61 }', /^routes\[0\]\.pathPrefix: found "\/%61"/],
    [
      'a rate above a cap from the top',
      '{ name: a, pathPrefix: /a, throttle: { rate: 9, maxRate: 3 } }',
      'routes[0].throttle.maxRate: found 3; expected at least routes[0].throttle.rate, 9, or only one of the two',
    ],
    [
      'one group set in two ways',
      '{ name: a, pathPrefix: /a }, { name: b, pathPrefix: /b, throttle: { group: a, rate: 3 } }',
      'routes[1].throttle.rate: differs from that of the route a, with which it shares the throttle a',
    ],
    [
      'a group that has moved',
      '{ name: a, pathPrefix: /a, throttle: { group: c } }, { name: b, pathPrefix: /b, throttle: { group: a } }',
      'routes[1].throttle.group: found "a"; the route a is in the group c itself: name that',
    ],
  ])('%s', (_, list, expected) => {
    const found = problems(`routes: [${list}]`);
    expect(found).toEqual([typeof expected === 'string' ? expected : expect.stringMatching(expected)]);
  });

  test('of the top level is reported once, also when several routes inherit it', () => {
    const found = problems(`queue: { max: many }\nroutes: [{ name: a, pathPrefix: /a }, { name: b, pathPrefix: /b }]`);
    expect(found).toEqual([expect.stringMatching(/^queue\.max \(SIDECAR_QUEUE_MAX\): found "many"/)]);
  });

  test('is a missing base URL, or a list that is not one', () => {
    expect(problems('routes: [{ name: a, pathPrefix: /a }]', { SIDECAR_BASE_URL: '' })).toEqual([
      'routes[0].baseUrl: required here or as upstream.baseUrl; the base URL of its API',
    ]);
    expect(problems('routes: { a: 1 }')).toEqual(['routes: expected a list of sections such as "- name: quotes"']);
    expect(problems('route: []')[0]).toContain('did you mean routes?');
  });
});

describe('config', () => {
  test('prints the own settings of each entry with masked secrets, and can be read back', () => {
    const file = scratchFile(`routes: [${QUOTES}]\ncredentials: { quotes: ${CREDENTIAL} }`);
    const { stdout, exitCode } = renderConfig({ env: BASE_ENV, file });
    expect(exitCode).toBe(0);
    expect(stdout).toContain('baseUrl: https://quotes.example.com');
    expect(stdout).toMatch(/- name: quotes\n {4}url: https:\/\/login\.example\.com/);
    expect(stdout).not.toContain('s-of-quotes');
    expect(problemsOf({}, { file: scratchFile(stdout) }).join('\n')).toContain(
      'credentials[0].clientSecret: is the mask ********, not the value itself',
    );
  });
});
