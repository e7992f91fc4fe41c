/** The file that init writes loads with the given settings; invalid settings are found before. */
import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { findSettingProblems, optionNameFor } from '../../../src/commands/init/init-settings.ts';
import type { InitSettingKey } from '../../../src/commands/init/init-settings.ts';
import { renderSettings } from '../../../src/commands/init/settings-file.ts';
import { loadConfig } from '../../../src/config/load/load.ts';
import { scratchFile } from '../../config/base-env.ts';

const SETTINGS_GIVEN: [InitSettingKey, string][] = [
  ['upstream.baseUrl', 'https://api.example.com/v1'],
  ['auth.url', 'https://login.example.com'],
  ['auth.tokenPath', '/oauth/token'],
  ['auth.clientId', 'my-app'],
  ['auth.audience', 'https://api.example.com'],
  ['auth.scope', 'a b'],
  ['throttle.rate', '2.5'],
];
const ELSEWHERE = { kind: 'environment' } as const;

function load(settings: Iterable<[InitSettingKey, string]>) {
  const file = scratchFile(renderSettings(new Map(settings), true), 'sidecar.yaml');
  const loaded = loadConfig({ env: { SIDECAR_CLIENT_SECRET: 'sesame-of-init' }, file });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded;
}

test('the file loads with the given settings and without warnings', () => {
  const { effective, warnings } = load(SETTINGS_GIVEN);
  for (const [key, text] of SETTINGS_GIVEN)
    expect(effective.get(key)?.value).toEqual(key === 'throttle.rate' ? 2.5 : text);
  expect(warnings).toEqual([]);
});

test('any client id and audience survive the file', () => {
  const name = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(name, name, (clientId, audience) => {
      const settings = new Map([
        ...SETTINGS_GIVEN,
        ['auth.clientId', clientId] as const,
        ['auth.audience', audience] as const,
      ]);
      if (findSettingProblems(settings, ELSEWHERE).length > 0) return;
      const { effective } = load(settings);
      expect(effective.get('auth.clientId')?.value).toBe(clientId);
      expect(effective.get('auth.audience')?.value).toBe(audience);
    }),
    { numRuns: 100 },
  );
});

test('comments every setting', () => {
  const yaml = renderSettings(new Map(SETTINGS_GIVEN), true);
  for (const name of ['baseUrl', 'url', 'tokenPath', 'clientId', 'audience', 'scope', 'rate'])
    expect(yaml).toMatch(new RegExp(`^ {2}# .*\n {2}${name}: `, 'm'));
  expect(yaml).toContain('clientSecret: in the variable SIDECAR_CLIENT_SECRET');
  expect(renderSettings(new Map(SETTINGS_GIVEN), false)).not.toContain('SIDECAR_CLIENT_SECRET');
});

describe('invalid settings', () => {
  test.each([
    ['upstream.baseUrl', 'api.example.com', /expected an absolute https: URL/],
    ['upstream.baseUrl', 'http://api.example.com', /http: is accepted for loopback hosts only/],
    ['auth.clientId', 'a:b', /colon/],
    ['auth.scope', 'a  b', /one blank/],
    ['throttle.rate', 'fast', /expected auto, or a number/],
    ['auth.clientSecretFile', '/nowhere/secret', /does not exist/],
  ] as const)('%s: %s', (key, text, expected) => {
    const secret = key === 'auth.clientSecretFile' ? ({ kind: 'file' } as const) : ELSEWHERE;
    const faults = findSettingProblems(new Map([...SETTINGS_GIVEN, [key, text] as const]), secret);
    expect(faults).toEqual([expect.objectContaining({ key, message: expect.stringMatching(expected) as string })]);
    expect(optionNameFor(key)).toMatch(/^--/);
  });
  test('reports each missing setting', () => {
    expect(findSettingProblems(new Map(), ELSEWHERE).map(({ key }) => key)).toEqual([
      'upstream.baseUrl',
      'auth.url',
      'auth.clientId',
    ]);
  });
  test('reports an invalid secret without quoting it', () => {
    const secret = 'sesame\u0000of-the-test';
    const faults = findSettingProblems(new Map(SETTINGS_GIVEN), { kind: 'new-file', path: 'x', secret });
    expect(faults).toEqual([expect.objectContaining({ key: 'auth.clientSecret' })]);
    expect(JSON.stringify(faults)).not.toContain('sesame');
  });
});
