/** Loading any environment and file gives a Config or problems; a printed configuration can be loaded again. */
import fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderConfig } from '../../src/commands/render-config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { SETTINGS, settingOf } from '../../src/config/schema/schema.ts';
import type { SettingKey } from '../../src/config/schema/schema.ts';
import { anyCodePoint } from '../support/code-points.ts';
import { stringify } from 'yaml';
import { BASE_ENV, scratchDirectory } from './base-env.ts';
import { roundsOf } from '../support/rounds.ts';

const variables = [...SETTINGS.values()].map(({ env }) => env);

/** Texts near the limits of the formats. */
const anyText = fc.oneof(
  fc.string({ unit: anyCodePoint }),
  fc.stringMatching(/^[a-z0-9.:/@#?%,*&![\]{}"' -]{0,30}$/),
  fc.constantFrom(
    'true',
    'auto',
    '0',
    '1',
    'https://a',
    'http://a',
    'localhost:1',
    '0.0.0.0:1',
    'unix:/a',
    '/',
    '\0',
    '[::1]:1',
  ),
);

const expectOneLineEach = (result: ReturnType<typeof loadConfig>): void => {
  if (result.ok) return;
  expect(result.problems.length).toBeGreaterThan(0);
  expect(formatProblems(result.problems).match(/^bearer-sidecar: .+\n/gmu)).toHaveLength(result.problems.length);
};

test('any environment gives a Config or one line per problem, never a throw', () => {
  const anyEnv = fc.dictionary(fc.oneof(fc.constantFrom(...variables), fc.string()), anyText, { maxKeys: 12 });
  fc.assert(
    fc.property(anyEnv, fc.boolean(), (env, isBased) => {
      // A file that is named by chance is not what this test is about.
      const result = loadConfig({ env: { ...(isBased ? BASE_ENV : {}), ...env, SIDECAR_CONFIG: '' } });
      expectOneLineEach(result);
    }),
    { numRuns: roundsOf({ check: 150, soak: 2000 }) },
  );
});

test('any bytes and any tree in a file give a Config or one line per problem, never a throw', () => {
  const file = join(scratchDirectory(), 'sidecar.yaml');
  const names = [...new Set([...SETTINGS.keys()].flatMap((key) => key.split('.')))];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.dictionary(fc.oneof(fc.constantFrom(...names), anyText), tie('value'), { maxKeys: 6 }),
    value: fc.oneof(
      { maxDepth: 3 },
      anyText,
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.array(anyText),
      tie('tree'),
    ),
  }));
  const anyContents = fc.oneof(
    tree.map((value) => JSON.stringify(value)),
    anyText,
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(anyContents, (contents) => {
      writeFileSync(file, contents);
      expectOneLineEach(loadConfig({ env: BASE_ENV, file }));
    }),
    { numRuns: roundsOf({ check: 150, soak: 2000 }) },
  );
});

const words = fc.stringMatching(/^[!#$%&'()*+,./:;<=>?@A-Z^_`a-z{|}~-]{1,20}$/);
const ms = fc.integer({ min: 1000, max: 300_000 });

/** Settings that are valid in any combination. */
const validSettings: fc.Arbitrary<Partial<Record<SettingKey, unknown>>> = fc.record(
  {
    'upstream.requestTimeoutMs': ms,
    'upstream.websocket': fc.boolean(),
    'auth.tokenPath': fc.constantFrom('/token', 'a/b/', "/it's/%20"),
    'auth.resource': fc.uniqueArray(fc.constantFrom('urn:a', 'https://b.test/x,y'), { minLength: 2 }),
    'egress.proxy': fc.constantFrom('none', 'http://p:1', 'p.test:3128'),
    'egress.noProxy': fc.array(fc.constantFrom('*', '.a.test', '10.0.0.0/8', '[::2]:1')),
    'auth.audience': fc.oneof(
      fc.uniqueArray(words, { minLength: 2, maxLength: 3 }),
      words,
      fc.constantFrom('null', 'yes', '12', '*a', '# b', ' x ', 'ü: "q"', '- a', '\u2028', '👋'),
    ),
    'auth.scope': fc
      .array(fc.stringMatching(/^[a-z0-9:.*&!-]{1,9}$/), { minLength: 1 })
      .map((names) => names.join(' ')),
    'listen.address': fc.constantFrom('localhost:0', '[::1]:1', '127.0.0.1:2', 'unix:/a b/#c'),
    'listen.socketMode': fc.constantFrom('0600', '660', '0777'),
    'listen.allowedHosts': fc.array(fc.constantFrom('a', 'b:1', '[::1]', '1.2.3.4:5'), { minLength: 1 }),
    'listen.allowedOrigins': fc.array(fc.constantFrom('https://a', 'http://[::1]:8080')),
    'throttle.rate': fc.oneof(fc.constant('auto'), fc.double({ min: 1e-7, max: 1e6, noNaN: true })),
    'throttle.burst': fc.integer({ min: 1, max: 1_000_000 }),
    'throttle.maxRate': fc.constant(1e6),
    'throttle.share': fc.integer({ min: 1, max: 10_000 }),
    'throttle.stateFile': fc.constantFrom('/state/learned.json', 'a b'),
    'log.level': fc.constantFrom('info', 'silent'),
  },
  { requiredKeys: [] },
);

test('a printed configuration, given back as a file, is the same configuration', () => {
  const [file, printed] = [join(scratchDirectory(), 'one.yaml'), join(scratchDirectory(), 'two.yaml')];
  fc.assert(
    fc.property(validSettings, (settings) => {
      writeFileSync(file, stringify(nest(settings)));
      const output = renderConfig({ env: BASE_ENV, file });
      expect(output).toMatchObject({ exitCode: 0, stderr: '' });
      writeFileSync(printed, output.stdout);
      // The masked credentials come from the environment again.
      const { SIDECAR_CLIENT_ID, SIDECAR_CLIENT_SECRET } = BASE_ENV;
      const again = loadConfig({ env: { SIDECAR_CLIENT_ID, SIDECAR_CLIENT_SECRET }, file: printed });
      const first = loadConfig({ env: BASE_ENV, file });
      if (!again.ok || !first.ok) throw new Error('a valid configuration was refused');
      // A printed configuration names every setting, so that what it prints for throttle.maxInFlight counts as given.
      const asGiven = first.config.routes.map((route) => ({
        ...route,
        throttle: { ...route.throttle, isMaxInFlightGiven: true },
      }));
      expect(again.config).toEqual({ ...first.config, routes: asGiven });
      for (const [key, value] of Object.entries(settings) as [SettingKey, unknown][])
        if (!(settingOf(key).env in BASE_ENV)) expect(again.effective.get(key)?.value).toEqual(value);
    }),
    { numRuns: roundsOf({ check: 60, soak: 500 }) },
  );
});

function nest(settings: Partial<Record<SettingKey, unknown>>): Record<string, Record<string, unknown>> {
  const tree: Record<string, Record<string, unknown>> = {};
  for (const [key, value] of Object.entries(settings)) {
    const [section = '', name = ''] = key.split('.');
    (tree[section] ??= {})[name] = value;
  }
  return tree;
}
