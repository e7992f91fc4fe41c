/** What `check` says about a token in a file: it never shows the token. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { runChecks } from '../../../src/commands/check/run-checks.ts';
import { loadConfig } from '../../../src/config/load/load.ts';
import { scratchFile } from '../../config/base-env.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import { registerSecret } from '../../support/secrets.ts';

const NOW = Date.UTC(2026, 10, 1);

function newToken(): string {
  const token = `key-${randomBytes(12).toString('hex')}`;
  registerSecret('a token in a file', token);
  return token;
}

function jwt(exp: number): string {
  const part = (claims: object): string => Buffer.from(JSON.stringify(claims)).toString('base64url');
  const token = `${part({ alg: 'RS256' })}.${part({ exp, jti: randomBytes(9).toString('hex') })}.${randomBytes(32).toString('base64url')}`;
  registerSecret('a token in a file', token);
  return token;
}

async function check(
  path: string,
  probe?: string,
  key: Readonly<Record<string, string>> = { SIDECAR_AUTH_TOKEN_FILE: path },
) {
  await using upstream = await startRecordingUpstream((_, response) => {
    response.writeHead(probe === '/refused' ? 401 : 200).end();
  });
  const env = { SIDECAR_BASE_URL: upstream.url, SIDECAR_AUTH_METHOD: 'static', ...key };
  const loaded = loadConfig({ env: { ...env, SIDECAR_ADMIN_LISTEN: 'unix:/nowhere/at-all' } });
  if (!loaded.ok) throw new Error('refused');
  const signal = new AbortController().signal;
  const steps = [];
  const context = { clock: new ManualClock(NOW), stop: signal, signal };
  for await (const group of runChecks({ ...loaded, warnings: [] }, probe, context)) steps.push(...group);
  const ofToken = steps
    .filter(({ target }) => target === 'token file')
    .map(({ step, outcome, detail }) => [step, outcome, detail]);
  return { steps, ofToken, sent: upstream.requests.map(({ headers }) => headers.authorization) };
}

it('an API key: no server but the API is asked for anything', async () => {
  const token = newToken();
  const path = scratchFile(`${token}\n`);
  const { steps, ofToken, sent } = await check(path, '/quotes');
  expect(ofToken).toEqual([
    ['token', 'ok', `${path}, ${String(token.length)} characters`],
    ['lifetime', 'ok', 'the token does not say when it ends'],
  ]);
  expect(sent).toEqual([`Bearer ${token}`]);
  expect(steps.filter(({ outcome }) => outcome === 'fail')).toEqual([]);
  expect([...new Set(steps.map(({ target }) => target))]).not.toContain('token endpoint');
  expect(JSON.stringify(steps)).not.toContain(token);
});

it('a key in the query alone: no field carries it, and advice after a 401 names the query', async () => {
  const token = newToken();
  const path = scratchFile(token);
  const key = { SIDECAR_UPSTREAM_QUERY: JSON.stringify({ key: { file: path } }) };
  const { steps, ofToken, sent } = await check(path, '/refused', key);
  expect(ofToken[0]).toEqual(['token', 'ok', `${path}, ${String(token.length)} characters`]);
  expect(sent).toEqual([undefined]);
  expect(steps.find(({ step }) => step === 'probe')).toMatchObject({
    outcome: 'fail',
    advice: expect.stringContaining('the token in the file of upstream.query') as string,
  });
});

it.each([
  ['is valid', NOW / 1000 + 3600, 'ok', 'a JWT that is valid until 2026-11-01T01:00:00Z'],
  ['has expired', NOW / 1000 - 1, 'warn', 'a JWT that expired at 2026-10-31T23:59:59Z'],
])('a JWT that %s', async (_, exp, outcome, detail) => {
  expect((await check(scratchFile(jwt(exp)))).ofToken.at(-1)).toEqual(['lifetime', outcome, detail]);
});

it.each([
  ['missing', '/nowhere/token', 'does not exist'],
  ['empty', scratch, 'is empty'],
])('a file that is %s', async (_, given, fault) => {
  const path = typeof given === 'string' ? given : given();
  const { ofToken, sent } = await check(path, '/quotes');
  expect(ofToken).toEqual([['token', 'fail', `auth.tokenFile: the file ${path} ${fault}`]]);
  expect(sent).toEqual([]);
});

function scratch(): string {
  return scratchFile('');
}
