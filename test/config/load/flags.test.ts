/** Settings of the command line: as strict as variables, later than them, and without secrets. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FlagSetting } from '../../../src/config/load/flags.ts';
import { loadConfig } from '../../../src/config/load/load.ts';
import { formatProblems } from '../../../src/config/load/problems.ts';
import { maskSetting } from '../../../src/config/displayed-settings.ts';
import { SETTINGS, settingOf, type SettingKey } from '../../../src/config/schema/schema.ts';
import { MASK } from '../../../src/platform/secret-redaction.ts';
import { roundsOf } from '../../support/rounds.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from '../base-env.ts';

const set = (key: string, text: string): FlagSetting => ({ flag: '--set', key, text });
const KEYS = [...SETTINGS.keys()];

/** Texts that some formats accept and most refuse. */
const anyText = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.constantFrom('1', '0.5', 'auto', 'true', 'none', 'info', 'GET /a', '/a', 'localhost:1', 'unix:/a', '600', 'a,b'),
  fc.constantFrom('https://a.example', '["a","b"]', '{"X-A":"remaining"}', '[{"status":503}]', 'redis://a:1/0'),
  fc.constantFrom(
    ...[...SETTINGS.values()].map(({ default: value }) => (typeof value === 'number' ? String(value) : 'a')),
  ),
);

test('every setting means the same with --set as in its variable', () => {
  fc.assert(
    fc.property(fc.constantFrom(...KEYS), anyText, (key, text) => {
      const { env, sensitive, format } = settingOf(key);
      fc.pre((!sensitive || key === 'auth.clientId') && !JSON.stringify(format.show(text)).includes(MASK));
      const byVariable = loadConfig({ env: { ...BASE_ENV, [env]: text } });
      const byFlag = loadConfig({ env: BASE_ENV, flags: [set(key, text)] });
      if (byVariable.ok && byFlag.ok) {
        expect(byFlag.config).toEqual(byVariable.config);
        expect(byFlag.effective.get(key)).toEqual({
          value: byVariable.effective.get(key)?.value,
          origin: 'flag --set',
        });
      } else if (!byVariable.ok && !byFlag.ok) {
        const keysOf = ({ problems }: typeof byFlag): string[] => problems.map((problem) => problem.key);
        // A pair is an error in one layer only.
        expect(keysOf(byVariable)).toEqual(expect.arrayContaining(keysOf(byFlag)));
      } else expect([byVariable.ok, byFlag.ok, key.endsWith('File')]).toEqual([false, true, true]);
    }),
    { numRuns: roundsOf({ check: 200, soak: 2000 }) },
  );
});

test('a value that would be masked is refused, and not shown', () => {
  const password = fc.constant('sesame-1');
  const url = fc.tuple(
    fc.constantFrom('https', 'http', 'redis', 'rediss'),
    password,
    fc.constantFrom('', ':6379', '/a'),
  );
  const text = url.map(([scheme, secret, rest]) => `${scheme}://user:${secret}@host${rest}`);
  const list = text.map((one) => JSON.stringify([one, 'https://b.example']));
  fc.assert(
    fc.property(fc.constantFrom(...KEYS), fc.oneof(text, list), (key, value) => {
      // The problem of a file shows its path.
      fc.pre(!key.endsWith('File'));
      const loaded = loadConfig({ env: BASE_ENV, flags: [set(key, value)] });
      if (!loaded.ok) expect(formatProblems(loaded.problems)).not.toContain('sesame-1');
      const shown = JSON.stringify(maskSetting(key, settingOf(key).format.fromText(value) as string));
      if (shown.includes(MASK) && key !== 'auth.clientId') expect(loaded.ok).toBe(false);
    }),
    { numRuns: roundsOf({ check: 120, soak: 1000 }) },
  );
});

describe('a secret in an argument is refused with its variable and another place', () => {
  test.each<[SettingKey, string, RegExp]>([
    [
      'auth.clientSecret',
      'sesame',
      /SIDECAR_CLIENT_SECRET, or in a file that auth\.clientSecretFile \(SIDECAR_CLIENT_SECRET_FILE\) names$/,
    ],
    [
      'listen.requiredHeader.value',
      'sesame',
      /SIDECAR_LISTEN_REQUIRED_HEADER_VALUE, or .*\(SIDECAR_LISTEN_REQUIRED_HEADER_VALUE_FILE\) names$/,
    ],
    [
      'fleet.redisUrl',
      'redis://:sesame@h:1',
      /SIDECAR_REDIS_URL, or in a file that .*\(SIDECAR_REDIS_URL_FILE\) names$/,
    ],
    ['egress.proxy', 'http://u:sesame@h:1', /SIDECAR_EGRESS_PROXY, or in a configuration file$/],
    ['auth.extraParameters', '{"a":"sesame"}', /SIDECAR_AUTH_EXTRA_PARAMETERS, or in a configuration file$/],
    ['auth.extraHeaders', '{"a":"sesame"}', /SIDECAR_AUTH_EXTRA_HEADERS, or in a configuration file$/],
    ['auth.audience', 'https://u:sesame@h', /SIDECAR_AUDIENCE, or in a configuration file$/],
  ])('%s', (key, text, expected) => {
    const [problem = '', ...others] = problemsOf({}, { flags: [set(key, text)] });
    expect(others).toEqual([]);
    expect(problem).toMatch(expected);
    expect(problem).not.toContain('sesame');
  });

  test('an invalid one too, for the same reason', () => {
    expect(problemsOf({}, { flags: [set('auth.clientSecret', 'sesame\u0001')] })).toEqual([
      expect.stringContaining('the process list shows arguments'),
    ]);
  });
});

test('later than file and environment; the last of one key counts', () => {
  const file = scratchFile('throttle: { rate: 1, burst: 2 }');
  const flags = [
    { flag: '--rate', key: 'throttle.rate', text: '3' },
    set('throttle.burst', '4'),
    { flag: '--rate', key: 'throttle.rate', text: '5' },
  ];
  expect(configOf({ SIDECAR_RATE: '2' }, { file, flags }).throttle).toMatchObject({ rate: 5, burst: 4 });
});

test('a value and its file on one command line are an error', () => {
  const flags = [set('auth.clientId', 'a'), set('auth.clientIdFile', scratchFile('b'))];
  expect(problemsOf({}, { flags })).toEqual([expect.stringMatching(/^auth\.clientId .*set together with/)]);
});

test.each([
  ['throttle.rte', 'unknown key "throttle.rte"; did you mean throttle.rate?'],
  ['rate', 'unknown key "rate"; did you mean throttle.rate?'],
  ['SIDECAR_RATE', 'unknown key "SIDECAR_RATE"; did you mean throttle.rate?'],
  ['throttle', '"throttle" is a section; expected a key in it, such as throttle.rate'],
  ['routes', '"routes" can be set in a configuration file only'],
  ['routes[0].name', '"routes[0].name" can be set in a configuration file only'],
  ['credentials.a.clientId', '"credentials.a.clientId" can be set in a configuration file only'],
  ['colour', 'unknown key "colour"; bearer-sidecar config shows all of them'],
  ['__proto__', 'unknown key "__proto__"; bearer-sidecar config shows all of them'],
])('--set %s: %s', (key, message) => {
  expect(problemsOf({}, { flags: [set(key, 'sesame')] })).toEqual([`--set: ${message}`]);
});

test('a flag that the command sets itself is a warning', () => {
  const loaded = loadConfig({
    env: BASE_ENV,
    flags: [{ flag: '--base-url', key: 'upstream.baseUrl', text: 'https://b.example' }, set('throttle.rate', '2')],
    preset: { name: 'sandbox', values: { 'upstream.baseUrl': 'https://a.example' } },
  });
  expect(loaded.warnings).toEqual(['--base-url is ignored: sandbox sets upstream.baseUrl itself']);
  expect(loaded.ok && loaded.config.routes[0]).toMatchObject({
    upstream: { baseUrl: new URL('https://a.example') },
    throttle: { rate: 2 },
  });
});
