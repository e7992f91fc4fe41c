/** Layers of settings: file, environment, flags. A later value or its file replaces the pair of an earlier layer. */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { FlagSetting } from '../../../src/config/load/flags.ts';
import { loadConfig, type LoadOptions } from '../../../src/config/load/load.ts';
import { VALUE_AND_FILE_KEYS } from '../../../src/config/rules/rules.ts';
import { settingOf, type SettingKey } from '../../../src/config/schema/schema.ts';
import { BASE_ENV, configOf, problemsOf, scratchFile } from '../base-env.ts';

const LAYERS = ['file', 'environment', 'flag'] as const;
type LayerName = (typeof LAYERS)[number];
const CONTENTS = ['none', 'value', 'file', 'both'] as const;
type Contents = (typeof CONTENTS)[number];

/** One that is valid in place and in a file, for every pair. */
const VALUE = 'redis://localhost:6379';
/** A colon is an error in a client id. */
const valueOf = (key: SettingKey): string => (key.startsWith('auth.') ? 'a-value-in-place' : VALUE);

const SECRETS: readonly SettingKey[] = ['auth.clientSecret', 'listen.requiredHeader.value'];

type Settings = Readonly<Partial<Record<SettingKey, string>>>;

/** The settings of a pair in one layer, each with a value that names the layer. */
function settingsIn(layer: LayerName, contents: Contents, [value, file]: readonly [SettingKey, SettingKey]): Settings {
  const settings: Partial<Record<SettingKey, string>> = {};
  if (contents === 'value' || contents === 'both') settings[value] = valueOf(value);
  if (contents === 'file' || contents === 'both') settings[file] = scratchFile(valueOf(value), `secret-of-${layer}`);
  return settings;
}

function toLoadOptions(layers: Readonly<Record<LayerName, Settings>>, base: Settings): LoadOptions {
  const sections: Record<string, unknown> = {};
  for (const [key, value] of Object.entries({ ...base, ...layers.file })) setIn(sections, key.split('.'), value);
  const env = Object.entries(layers.environment).map(([key, value]) => [settingOf(key as SettingKey).env, value]);
  const flags = Object.entries(layers.flag).map(([key, text]): FlagSetting => ({ flag: '--set', key, text }));
  return { env: Object.fromEntries(env) as LoadOptions['env'], file: scratchFile(stringify(sections)), flags };
}

function setIn(sections: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) sections[name] = value;
  else setIn((sections[name] ??= {}) as Record<string, unknown>, rest, value);
}

/** A valid configuration without the pair. */
function baseWithout(pair: readonly SettingKey[]): Settings {
  const base: Settings = {
    'upstream.baseUrl': BASE_ENV.SIDECAR_BASE_URL,
    'auth.url': BASE_ENV.SIDECAR_AUTH_URL,
    'auth.clientId': BASE_ENV.SIDECAR_CLIENT_ID,
    'auth.clientSecret': BASE_ENV.SIDECAR_CLIENT_SECRET,
    'auth.audience': BASE_ENV.SIDECAR_AUDIENCE,
    ...(pair.some((key) => key.startsWith('listen.')) ? { 'listen.requiredHeader.name': 'X-Key' } : {}),
  };
  return Object.fromEntries(Object.entries(base).filter(([key]) => !pair.includes(key as SettingKey)));
}

describe.each(VALUE_AND_FILE_KEYS)('%s and %s, in every combination of layers', (value, file) => {
  const pair = [value, file] as const;
  const flagContents = SECRETS.includes(value) ? (['none', 'file'] as const) : CONTENTS;
  const combinations = CONTENTS.flatMap((inFile) =>
    CONTENTS.flatMap((inEnvironment) => flagContents.map((inFlags) => [inFile, inEnvironment, inFlags] as const)),
  ).filter((each) => each.some((contents) => contents !== 'none'));

  test.each(combinations)('file: %s, environment: %s, flags: %s', (...contents) => {
    const layers = Object.fromEntries(
      LAYERS.map((layer, at) => [layer, settingsIn(layer, contents[at] ?? 'none', pair)]),
    ) as Record<LayerName, Settings>;
    const loaded = loadConfig(toLoadOptions(layers, baseWithout(pair)));
    const last = LAYERS.findLast((_, at) => contents[at] !== 'none') ?? 'file';
    const decisive = contents[LAYERS.indexOf(last)];
    if (decisive === 'both') {
      expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual([
        expect.stringMatching(/together|both/),
      ]);
      return;
    }
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const [used, other] = decisive === 'value' ? [value, file] : [file, value];
    expect(loaded.effective.get(used)?.value).toBe(layers[last][used]);
    expect(loaded.effective.get(used)?.origin).toMatch(new RegExp(`^${last} `));
    expect(loaded.effective.get(other)).toEqual({ value: null, origin: 'default' });
  });
});

test('an empty variable replaces nothing', () => {
  const path = scratchFile('sesame');
  const file = scratchFile(`auth: { clientSecretFile: ${path} }`);
  const config = configOf({ SIDECAR_CLIENT_SECRET: '' }, { file });
  expect(config.auth.method).toMatchObject({ secret: { kind: 'file', path } });
});

test('an invalid value replaces the file of an earlier layer all the same', () => {
  const file = scratchFile(`auth: { clientSecretFile: ${scratchFile('sesame')} }`);
  expect(problemsOf({ SIDECAR_CLIENT_SECRET: 'a\u0001b' }, { file })).toEqual([
    expect.stringMatching(/^auth\.clientSecret \(SIDECAR_CLIENT_SECRET\): must not hold control characters/),
  ]);
});

test('a file may name its JSON Schema', () => {
  const file = scratchFile('{ "$schema": "./schema.json", "throttle": { "rate": 3 } }');
  expect(configOf({}, { file }).throttle.rate).toBe(3);
});
