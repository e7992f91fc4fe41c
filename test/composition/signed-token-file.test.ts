/** The recipe of docs/configuration.md: a script renews a signature in `auth.tokenFile`, and an upstream that refuses old ones accepts all calls. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { readTokenFile } from '../../src/token/source/file-token-source.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { BASE_ENV, scratchDirectory, scratchFile } from '../config/base-env.ts';
import { registerSecret } from '../support/secrets.ts';
import { startInProcess, until } from './in-process.ts';
import { send } from './send.ts';

const LONGEST_AGE_S = 20;

function readScript(folder: string): string {
  const page = readFileSync(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8');
  const [, script = ''] = /```python\n(import hashlib.*?)```/s.exec(page) ?? [];
  expect(script).toContain('sleep(60)');
  return script.replace('/run/secrets', folder).replace('sleep(60)', 'sleep(1)');
}

it('is renewed by the script, and each call has a fresh one', async () => {
  const folder = scratchDirectory();
  const [key, secret] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')];
  for (const value of [key, secret]) registerSecret('a key that signs', value);
  writeFileSync(join(folder, 'partner-key'), `${key}\n`);
  writeFileSync(join(folder, 'partner-secret'), `${secret}\n`);
  const script = spawn('python3', ['-c', readScript(folder)], { stdio: 'ignore' });
  onTestFinished(async () => {
    script.kill();
    await once(script, 'exit');
  });
  const times = new Set<string>();
  const none = { SIDECAR_AUTH_URL: '', SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUDIENCE: '' };
  const { url } = await startInProcess({
    env: {
      ...none,
      SIDECAR_AUTH_METHOD: 'static',
      SIDECAR_AUTH_TOKEN_FILE: join(folder, 'partner-token'),
      SIDECAR_UPSTREAM_TOKEN_PREFIX: 'EAN ',
    },
    respond: ({ headers }, response) => {
      const [, given, signature, time = ''] =
        /^EAN apikey=(\w+),signature=(\w+),timestamp=(\d+)$/.exec(headers.authorization ?? '') ?? [];
      const expected = createHash('sha512').update(`${key}${secret}${time}`).digest('hex');
      const isFresh = Math.abs(Date.now() / 1000 - Number(time)) <= LONGEST_AGE_S;
      times.add(time);
      response.writeHead(given === key && signature === expected && isFresh ? 200 : 401).end();
    },
  });
  await until(async () => (await send(`${url}/a`)).status === 200, 'the first signature is there');
  const statuses = new Set<number>();
  for (let calls = 0; calls < 60; calls++) {
    statuses.add((await send(`${url}/a`)).status);
    await sleep(100);
  }
  expect([...statuses]).toEqual([200]);
  expect(times.size).toBeGreaterThan(1);
});

it('may be any field value where no route sends it as Bearer', async () => {
  const read = async (contents: string, prefixes: readonly string[]) =>
    (await readTokenFile(scratchFile(contents), prefixes)).kind;
  for (const value of ['apikey=a,signature=b', 'two words', 'a\tb', 'key="x", other="y"']) {
    expect(await read(`${value}\n`, ['EAN ', ''])).toBe('read');
    for (const prefix of ['Bearer ', 'bearer ']) expect(await read(value, ['EAN ', prefix])).toBe('unreadable');
  }
  for (const value of [' a', 'a ', 'a\nb', 'a\r\nX-Injected: 1', 'schlüssel', 'a\u007f', '', 'a'.repeat(16_385)])
    expect(await read(value, ['EAN '])).toBe('unreadable');
});

it('knows the prefixes of the routes that use its credential', () => {
  const file = scratchFile(`
upstream: { tokenPrefix: "JWT " }
credentials: [{ name: other, clientId: other, clientSecret: other-secret }]
routes:
  - { name: own, pathPrefix: /a, tokenPrefix: "Token " }
  - { name: other, pathPrefix: /b, credential: other }`);
  const loaded = loadConfig({ env: BASE_ENV, file });
  const prefixes = loaded.ok && loaded.config.credentials.map(({ name, auth }) => [name, ...auth.tokenPrefixes]);
  expect(prefixes).toEqual([
    ['default', 'JWT ', 'Token '],
    ['other', 'JWT '],
  ]);
});
