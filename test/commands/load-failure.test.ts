/** What a command prints for a configuration that cannot be used, and for none at all. */
import { expect, test } from 'vitest';
import { describeLoadFailure } from '../../src/commands/load-failure.ts';
import { loadConfig, type LoadOptions } from '../../src/config/load/load.ts';
import { scratchFile } from '../config/base-env.ts';

const linesFor = (load: LoadOptions): string[] => {
  const loaded = loadConfig(load);
  if (loaded.ok) throw new Error('accepted');
  return describeLoadFailure(load, loaded.problems).trimEnd().split('\n');
};

test('without any setting: one line each for sandbox, init and the required variables', () => {
  expect(linesFor({ env: {} })).toEqual([
    expect.stringMatching(/^bearer-sidecar: .* bearer-sidecar sandbox$/),
    expect.stringMatching(/^bearer-sidecar: .* bearer-sidecar init$/),
    'bearer-sidecar: or set the required variables: SIDECAR_BASE_URL, SIDECAR_AUTH_URL, SIDECAR_CLIENT_ID, SIDECAR_CLIENT_SECRET (or SIDECAR_CLIENT_SECRET_FILE); SIDECAR_AUDIENCE and SIDECAR_SCOPE if the partner wants them',
  ]);
});

test('other settings do not count, and their problems follow', () => {
  const lines = linesFor({ env: { SIDECAR_LISTEN: 'localhost:1', SIDECAR_RATE: 'fast', SIDECAR_AUTH_URL: '' } });
  expect(lines).toHaveLength(4);
  expect(lines[3]).toMatch(/^bearer-sidecar: throttle\.rate \(SIDECAR_RATE\): found "fast"/);
});

test.each<[string, LoadOptions]>([
  ['a variable', { env: { SIDECAR_BASE_URL: 'https://a.example' } }],
  ['an unusable variable', { env: { SIDECAR_AUDIENCE: '\u0001' } }],
  ['a flag', { env: {}, flags: [{ flag: '--audience', key: 'auth.audience', text: 'a' }] }],
  ['an unknown key', { env: {}, flags: [{ flag: '--set', key: 'auth.audiense', text: 'a' }] }],
  ['a missing file', { env: {}, file: '/nowhere/sidecar.yaml' }],
])('with %s: one line per problem', (_, load) => {
  const lines = linesFor(load);
  expect(lines.join('\n')).not.toContain('bearer-sidecar sandbox');
  for (const line of lines) expect(line).toMatch(/^bearer-sidecar: [^:]+: /);
});

test('with an empty file: one line per problem', () => {
  expect(linesFor({ env: {}, file: scratchFile('') })).toHaveLength(4);
});
