/** Precedence of sources, unusable files, unknown names, presets. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load.ts';
import { REMOVED_SETTINGS, variableOfPath } from '../../../src/config/schema/schema.ts';
import { BASE_ENV, configOf, problemsOf, scratchDirectory, scratchFile, simple } from '../base-env.ts';

describe('precedence', () => {
  const load = (env: Record<string, string>, yaml: string) => {
    const file = scratchFile(yaml, 'sidecar.yaml');
    const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    return { ...loaded, config: simple(loaded.config), file };
  };

  test('defaults, then file, then environment, each with its origin', () => {
    const loaded = load({ SIDECAR_BURST: '7' }, 'throttle: { burst: 3, rate: 2.5 }\nlog:\n  level: debug\n');
    expect(loaded.config.throttle).toMatchObject({ burst: 7, rate: 2.5, maxInFlight: 64 });
    expect(loaded.effective.get('throttle.burst')).toEqual({ value: 7, origin: 'environment SIDECAR_BURST' });
    expect(loaded.effective.get('throttle.rate')).toEqual({ value: 2.5, origin: `file ${loaded.file}` });
    expect(loaded.effective.get('throttle.maxInFlight')).toEqual({ value: 64, origin: 'default' });
  });
  test('an empty variable and an empty key count as not set', () => {
    const loaded = load({ SIDECAR_BURST: '' }, 'throttle:\n  burst:\n  rate: 5\nqueue:\n');
    expect(loaded.config.throttle).toMatchObject({ burst: 1, rate: 5 });
    expect(loaded.effective.get('throttle.burst')?.origin).toBe('default');
  });
  test('ignores an invalid value in the file that the environment overrides', () => {
    expect(load({ SIDECAR_BURST: '7' }, 'throttle: { burst: many }').config.throttle.burst).toBe(7);
  });
  test('the argument wins over SIDECAR_CONFIG', () => {
    expect(load({ SIDECAR_CONFIG: '/nowhere.yaml' }, 'queue: { max: 5 }').config.queue.max).toBe(5);
  });
  test('SIDECAR_CONFIG names a file, JSON as well', () => {
    const file = scratchFile(
      '{\n\t"queue": { "max": 5 },\n\t"listen": { "allowedHosts": ["a", "b:1"] }\n}',
      'sidecar.json',
    );
    const config = configOf({ SIDECAR_CONFIG: file });
    expect(config.queue.max).toBe(5);
    expect(config.listen.allowedHosts).toEqual([
      { host: 'a', port: undefined },
      { host: 'b', port: 1 },
    ]);
  });
  test('a list in a file may be comma-separated text', () => {
    expect(load({}, 'admin: { allowedHosts: "a, b" }').config.admin.allowedHosts.map(({ host }) => host)).toEqual([
      'a',
      'b',
    ]);
  });
});

describe('files that cannot be used make one problem', () => {
  test.each([
    ['upstream: {}\nupstream: {}', /line 2, column 1: not valid YAML or JSON \(duplicate key\)/],
    ['auth: { clientSecret: "sesame', /line 1, column \d+: not valid/],
    ['auth:\n  clientSecret: *sesame', /alias/],
    ['auth:\n  clientSecret: !sesame x', /line 2, column 17: not valid/],
    ['auth:\n  clientSecret: "\\sesame"', /line 2, column \d+: not valid/],
    ['- sesame', /expected sections/],
    ['sesame', /expected sections/],
    ['a: 1\n---\nb: 2', /multiple docs/],
    ['? [sesame]\n: 1', /not valid/],
    ['queue:\n\tmax: 1', /line 2, column 1: not valid/],
  ])('%j', (contents, expected) => {
    const lines = problemsOf({ SIDECAR_CLIENT_ID: '', SIDECAR_CONFIG: scratchFile(contents) });
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(lines[0]).toMatch(/^configuration file \(SIDECAR_CONFIG\): "\//);
    expect(lines[0]).not.toContain('sesame');
  });
  test('a missing file', () => {
    expect(problemsOf({}, { file: '/nowhere/sidecar.yaml' })).toEqual([
      'configuration file: "/nowhere/sidecar.yaml": does not exist',
    ]);
  });
  test('a directory', () => {
    expect(problemsOf({}, { file: scratchDirectory() })[0]).toContain('is a directory');
  });
  test('an alias bomb', () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `a${String(i + 1)}: &a${String(i + 1)} [${`*a${String(i)},`.repeat(9)}]`,
    );
    const lines = problemsOf({}, { file: scratchFile(['a0: &a0 [x]', ...levels].join('\n')) });
    expect(lines).toEqual([expect.stringContaining('too many of them')]);
  });
});

describe('values of a file are typed', () => {
  test.each([
    [
      'throttle: { burst: "3" }',
      'throttle.burst',
      /found "3" in .*expected a whole number from 1 to 1000000, without quotes$/,
    ],
    ['throttle: { rate: "2.5" }', 'throttle.rate', /without quotes$/],
    ['throttle: { burst: 1.5 }', 'throttle.burst', /found 1.5 in/],
    ['throttle: { burst: .nan }', 'throttle.burst', /found NaN in/],
    ['throttle: { rate: .inf }', 'throttle.rate', /found Infinity in/],
    ['throttle: { burst: [3] }', 'throttle.burst', /found a list in/],
    ['throttle: { burst: { a: 3 } }', 'throttle.burst', /found a section in/],
    ['upstream: { websocket: "true" }', 'upstream.websocket', /true or false, without quotes$/],
    ['upstream: { websocket: yes }', 'upstream.websocket', /found "yes" in/],
    ['upstream: { websocket: 1 }', 'upstream.websocket', /found 1 in/],
    ['auth: { scope: 12 }', 'auth.scope', /write it in quotes$/],
    ['auth: { scope: "" }', 'auth.scope', /found "" in/],
    ['listen: { socketMode: 0600 }', 'listen.socketMode', /in quotes/],
    ['listen: { allowedHosts: [1] }', 'listen.allowedHosts', /found a list in/],
    ['listen: { allowedHosts: [] }', 'listen.allowedHosts', /at least 1/],
    ['listen: 8080', 'listen', /found no keys in .*such as listen\.address$/],
  ])('%j', (contents, key, expected) => {
    const lines = problemsOf({}, { file: scratchFile(contents) });
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(lines[0]?.startsWith(key)).toBe(true);
  });
  test('does not show a secret without quotes that YAML reads as a number', () => {
    const lines = problemsOf({ SIDECAR_CLIENT_SECRET: '' }, { file: scratchFile('auth: { clientSecret: 73195 }') });
    expect(lines).toEqual([expect.stringMatching(/^auth\.clientSecret .*write it in quotes$/)]);
    expect(lines[0]).not.toContain('73195');
  });
});

describe('unknown names', () => {
  test.each([
    ['queue: { maximum: 1 }', 'queue.maximum', undefined],
    ['queue: { mx: 1 }', 'queue.mx', 'queue.max'],
    ['upstream: { base_url: x }', 'upstream.base_url', 'upstream.baseUrl'],
    ['upstraem: { baseUrl: x }', 'upstraem', 'upstream'],
    ['listen: { requiredHaeder: { name: x } }', 'listen.requiredHaeder', 'listen.requiredHeader'],
    ['colour: { of: x }', 'colour', undefined],
    ['clientIdFile: x', 'clientIdFile', 'auth.clientIdFile'],
    ['__proto__: { polluted: true }', '__proto__', undefined],
    ['constructor: { prototype: { polluted: true } }', 'constructor', undefined],
    ['1: x', '1', undefined],
  ])('in a file are problems: %j', (contents, key, meant) => {
    const file = scratchFile(contents);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    expect(problemsOf({}, { file })).toEqual([`${key}: unknown key in ${file}${hint}`]);
    expect({}).not.toHaveProperty('polluted');
  });
  test('refuses a dotted key', () => {
    const file = scratchFile('listen: { address: "localhost:1" }\nlisten.address: localhost:2');
    expect(problemsOf({}, { file })).toEqual([
      `listen.address: unknown key in ${file}; expected sections with keys in them, not dots`,
    ]);
  });
  test('escapes control characters in a key', () => {
    expect(problemsOf({}, { file: scratchFile('"a\\nbearer-sidecar: fine": 1') })).toHaveLength(1);
  });
  describe.each([...REMOVED_SETTINGS])('of a setting that is gone: %s', (key, instead) => {
    const [section = '', name = ''] = key.split('.');
    const variable = variableOfPath(key);
    test.each([
      ['in the file', `${section}: { ${name}: false }`, {}, `${key}: ${instead}`],
      ['in the file, without a value', `${section}: { ${name}: }`, {}, `${key}: ${instead}`],
      ['in the environment', '', { [variable]: 'true' }, `${key} (${variable}): ${instead}`],
      ['in both', `${section}: { ${name}: true }`, { [variable]: 'x' }, `${key} (${variable}): ${instead}`],
    ])('is one problem that says what takes its place, %s', (_, contents, env, expected) => {
      expect(problemsOf(env, { file: scratchFile(contents) })).toEqual([expected]);
    });
    test('is one problem as a flag', () => {
      const flags = [{ flag: '--set', key, text: 'true' }];
      expect(problemsOf({}, { flags })).toEqual([`--set: "${key}" ${instead}`]);
    });
    test('is no problem in an empty variable', () => {
      expect(loadConfig({ env: { ...BASE_ENV, [variable]: '' } })).toMatchObject({ ok: true, warnings: [] });
    });
  });
  test('with blanks or quotes at their ends are warnings that do not show them, and the value is used as it is', () => {
    const wrapped = fc.constantFrom(['"', '"'], ["'", "'"], [' ', ''], ['', ' '], ['', '\t'], ['\n', ''], ['', '\r']);
    const variables = fc.constantFrom(
      ['SIDECAR_CLIENT_SECRET', 'auth.clientSecret'] as const,
      ['SIDECAR_CLIENT_ID', 'auth.clientId'] as const,
      ['SIDECAR_AUDIENCE', 'auth.audience'] as const,
    );
    fc.assert(
      fc.property(wrapped, variables, ([before = '', after = ''], [variable, key]) => {
        const value = `${before}s3cret-canary${after}`;
        const loaded = loadConfig({ env: { ...BASE_ENV, [variable]: value } });
        const { warnings } = loaded;
        expect(warnings).toEqual([expect.stringMatching(/^SIDECAR_\w+ (begins or ends with a blank|is in quotes): /)]);
        expect(warnings[0]).toContain(variable);
        expect(warnings.join('')).not.toContain('canary');
        if (loaded.ok) expect(loaded.effective.get(key)?.value).toBe(value);
      }),
    );
  });

  test.each(Object.entries(BASE_ENV))(
    'such as %s in quotes are named also where they are refused',
    (variable, value) => {
      const { warnings } = loadConfig({ env: { ...BASE_ENV, [variable]: `"${value}"` } });
      expect(warnings).toContainEqual(expect.stringContaining(`${variable} is in quotes`));
    },
  );

  test.each(['a"', '"a', `"a'`, 'a" "b', '"'])('such as %j have no warning', (value) => {
    expect(loadConfig({ env: { ...BASE_ENV, SIDECAR_CLIENT_SECRET: value } }).warnings).toEqual([]);
  });

  test('in the environment are warnings', () => {
    const env = {
      ...BASE_ENV,
      SIDECAR_SERVICE_HOST: '10.0.0.1',
      SIDECAR_BASEURL: 'sesame',
      SIDECAR_THROTTLE_RATE: '5',
      SIDECAR_UPSTREAM_REQUEST_TIMEOUT_MS: '5',
      SIDECAR_CONFIG: '',
      OTHER: 'x',
    };
    const loaded = loadConfig({ env });
    expect(loaded.ok).toBe(true);
    expect(loaded.warnings).toEqual([
      'environment variable SIDECAR_SERVICE_HOST is not a setting; it is ignored',
      'environment variable SIDECAR_BASEURL is not a setting; did you mean SIDECAR_BASE_URL?',
      'environment variable SIDECAR_THROTTLE_RATE is not a setting; did you mean SIDECAR_RATE?',
      'environment variable SIDECAR_UPSTREAM_REQUEST_TIMEOUT_MS is not a setting; did you mean SIDECAR_REQUEST_TIMEOUT_MS?',
    ]);
  });
});

describe('all problems at once', () => {
  test('five wrong settings make five lines, in the order of the reference', () => {
    const lines = problemsOf({
      SIDECAR_LOG_LEVEL: 'loud',
      SIDECAR_BASE_URL: 'ftp://api.example.com',
      SIDECAR_RATE: 'fast',
      SIDECAR_WEBSOCKET: 'yes',
      SIDECAR_QUEUE_MAX: '-1',
    });
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      'upstream.baseUrl',
      'upstream.websocket',
      'throttle.rate',
      'queue.max',
      'log.level',
    ]);
  });
  test('without settings: one line for each required setting', () => {
    const loaded = loadConfig({ env: {} });
    expect(loaded.ok).toBe(false);
    if (loaded.ok) return;
    expect(loaded.problems.map(({ key, variable }) => [key, variable])).toEqual([
      ['upstream.baseUrl', 'SIDECAR_BASE_URL'],
      ['auth.url', 'SIDECAR_AUTH_URL'],
      ['auth.clientId', 'SIDECAR_CLIENT_ID'],
      ['auth.clientSecret', 'SIDECAR_CLIENT_SECRET'],
    ]);
    for (const { message } of loaded.problems) expect(message).toMatch(/^required; /);
  });
  test('an unknown key, a wrong value and a broken rule', () => {
    const file = scratchFile('queue: { mx: 1 }\nthrottle: { burst: 0 }\nshutdown: { delayMs: 30000 }');
    expect(problemsOf({ SIDECAR_CLIENT_ID: '' }, { file }).map((line) => line.split(/[: ]/)[0])).toEqual([
      'queue.mx',
      'auth.clientId',
      'throttle.burst',
      'shutdown.delayMs',
    ]);
  });
});

describe('a preset', () => {
  const preset = {
    name: 'sandbox',
    values: {
      'upstream.baseUrl': 'http://127.0.0.1:4000',
      'auth.url': 'http://127.0.0.1:4001',
      'auth.clientId': 'sandbox-client',
      'auth.clientSecret': 'sandbox-secret',
      'auth.audience': null,
      'auth.scope': 'a',
    },
  } as const;

  test('overrides file and environment, also invalid values, and changes nothing else', () => {
    const env = { SIDECAR_BASE_URL: 'nonsense', SIDECAR_LISTEN: 'localhost:0', SIDECAR_RATE: '9' };
    const config = configOf(env, { preset, file: scratchFile('auth: { url: 12 }\nqueue: { max: 3 }') });
    expect(config.upstream.baseUrl.href).toBe('http://127.0.0.1:4000/');
    expect(config.auth.audience).toEqual([]);
    expect(config.listen.address).toEqual({ kind: 'tcp', host: 'localhost', port: 0 });
    expect([config.throttle.rate, config.queue.max]).toEqual([9, 3]);
  });
  test('is shown as the origin', () => {
    const loaded = loadConfig({ env: {}, preset });
    expect(loaded.ok && loaded.effective.get('auth.audience')).toEqual({ value: null, origin: 'sandbox' });
  });
  test('a secret in the preset unsets a secret file of the environment', () => {
    const config = configOf({ SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: '/nowhere' }, { preset });
    expect(config.auth.method).toMatchObject({ secret: { kind: 'value', value: 'sandbox-secret' } });
  });
});

test.each([
  ['localhost:0', 'adapt'],
  ['127.0.0.2:1', 'adapt'],
  ['[::1]:1', 'adapt'],
  ['unix:/run/sidecar.sock', 'adapt'],
  ['0.0.0.0:1', 'pass'],
  ['[::]:1', 'pass'],
  ['sidecar.internal:1', 'pass'],
])('cookies by default, where the listener is %s: %s', (address, cookies) => {
  const env = { SIDECAR_LISTEN: address, SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK: 'true' };
  expect(configOf(env).response.cookies).toBe(cookies);
  for (const given of ['adapt', 'pass'])
    expect(configOf({ ...env, SIDECAR_RESPONSE_COOKIES: given }).response.cookies).toBe(given);
});

test('the Config is deeply frozen', () => {
  const pending: unknown[] = [configOf({ SIDECAR_ALLOWED_ORIGINS: 'https://a' })];
  let objects = 0;
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    expect(Object.isFrozen(value)).toBe(true);
    objects++;
    pending.push(...(Object.values(value) as unknown[]).filter((child) => child !== undefined));
  }
  expect(objects).toBeGreaterThan(20);
});
