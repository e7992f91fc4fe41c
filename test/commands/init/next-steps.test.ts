/** What to do when the files are there. */
import { expect, test } from 'vitest';
import { describeNext } from '../../../src/commands/init/next-steps.ts';
import type { Plan } from '../../../src/commands/init/interview.ts';
import { plain } from '../../../src/commands/paint.ts';

const PLAN: Plan = {
  answers: new Map([['auth.url', 'https://login.example.com']]),
  secret: { kind: 'file' },
  output: 'sidecar.yaml',
  isForced: false,
};

test('the files and the two commands', () => {
  expect(describeNext(PLAN, 'npx bearer-sidecar', {}, plain)).toBe(
    'Written: sidecar.yaml\n\nNext:\n  npx bearer-sidecar check --config sidecar.yaml\n  npx bearer-sidecar --config sidecar.yaml\n\n',
  );
});
test('the secret file is named, the secret is not', () => {
  const secret = { kind: 'new-file', path: 's.client-secret', secret: 'sesame' } as const;
  const text = describeNext({ ...PLAN, secret }, 'bearer-sidecar', {}, plain);
  expect(text).toContain('Written: s.client-secret (');
  expect(text).not.toContain('sesame');
});
test.each([
  [{}, true],
  [{ SIDECAR_CLIENT_SECRET: '' }, true],
  [{ SIDECAR_CLIENT_SECRET: 'x' }, false],
])('a secret that the environment is to bring: %j', (env, isAsked) => {
  const text = describeNext({ ...PLAN, secret: { kind: 'environment' } }, 'bearer-sidecar', env, plain);
  expect(text.includes("export SIDECAR_CLIENT_SECRET='…'")).toBe(isAsked);
});
test('a variable that will win over the file', () => {
  const env = { SIDECAR_AUTH_URL: 'x', SIDECAR_BASE_URL: 'not written' };
  expect(describeNext(PLAN, 'bearer-sidecar', env, plain).match(/^SIDECAR.*$/gm)).toEqual([
    'SIDECAR_AUTH_URL is set here and wins over the file',
  ]);
});
test('a path with a blank and a quote is one word of a shell', () => {
  expect(describeNext({ ...PLAN, output: "it's a.yaml" }, 'bearer-sidecar', {}, plain)).toContain(
    String.raw`--config 'it'\''s a.yaml'`,
  );
});
