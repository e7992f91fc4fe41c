/** The text after init. */
import { expect, test } from 'vitest';
import { describeNextSteps } from '../../../src/commands/init/next-steps.ts';
import type { InitPlan } from '../../../src/commands/init/interview.ts';
import { paintNothing } from '../../../src/commands/terminal.ts';

const PLAN: InitPlan = {
  settings: new Map([['auth.url', 'https://login.example.com']]),
  secret: { kind: 'file' },
  output: 'sidecar.yaml',
  isForced: false,
};

test('names the files and the two commands', () => {
  expect(describeNextSteps(PLAN, [], 'node_modules/.bin/node dist/main.js', {}, paintNothing)).toBe(
    'Written: sidecar.yaml\n\nNext:\n  node_modules/.bin/node dist/main.js check --config sidecar.yaml\n' +
      '  node_modules/.bin/node dist/main.js --config sidecar.yaml\n\n',
  );
});
test('names the secret file, not the secret', () => {
  const secret = { kind: 'new-file', path: 's.client-secret', secret: 'sesame' } as const;
  const text = describeNextSteps({ ...PLAN, secret }, ['s.client-secret'], 'bearer-sidecar', {}, paintNothing);
  expect(text).toContain('Written: s.client-secret (');
  expect(text).not.toContain('sesame');
});
test.each([
  [{}, true],
  [{ SIDECAR_CLIENT_SECRET: '' }, true],
  [{ SIDECAR_CLIENT_SECRET: 'x' }, false],
])('a secret in the environment: %j', (env, isRequested) => {
  const text = describeNextSteps({ ...PLAN, secret: { kind: 'environment' } }, [], 'bearer-sidecar', env, paintNothing);
  expect(text.includes("export SIDECAR_CLIENT_SECRET='…'")).toBe(isRequested);
});
test('warns about a variable that overrides the file', () => {
  const env = { SIDECAR_AUTH_URL: 'x', SIDECAR_BASE_URL: 'not written' };
  expect(describeNextSteps(PLAN, [], 'bearer-sidecar', env, paintNothing).match(/^SIDECAR.*$/gm)).toEqual([
    'SIDECAR_AUTH_URL is set here and overrides the file',
  ]);
});
test('quotes a path with a blank and a quote for the shell', () => {
  expect(describeNextSteps({ ...PLAN, output: "it's a.yaml" }, [], 'bearer-sidecar', {}, paintNothing)).toContain(
    String.raw`--config 'it'\''s a.yaml'`,
  );
});
