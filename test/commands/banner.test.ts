/** The summary that run prints on a terminal. */
import { expect, test } from 'vitest';
import { describeStartup } from '../../src/commands/banner.ts';
import { paintNothing } from '../../src/commands/terminal.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { BASE_ENV, scratchFile } from '../config/base-env.ts';

const PLACES = { proxyUrl: 'http://localhost:18080', adminUrl: 'http://localhost:19464' };

function banner(env: Record<string, string>, file?: string, places = PLACES, columns = 120): string {
  const loaded = loadConfig({ env, file });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return describeStartup(loaded, '1.2.3', places, { paint: paintNothing, columns });
}

test('shows addresses, upstream, credential, rate, status page and how to stop', () => {
  const text = banner({ ...BASE_ENV, SIDECAR_RATE: '2.5', SIDECAR_DRAIN_MS: '1500' });
  expect(text).toMatch(/^bearer-sidecar 1\.2\.3\n\n {2}proxy +http:\/\/localhost:18080 +/);
  expect(text).toMatch(/^ {2}upstream +https:\/\/api\.example\.com\/v1 +at most 2\.5 calls per second$/m);
  expect(text).toMatch(/^ {2}token +https:\/\/login\.example\.com\/oauth\/token +client \*{8}, secret \*{8}$/m);
  expect(text).toMatch(/^ {2}status +http:\/\/localhost:19464\/ +/m);
  expect(text).toMatch(/^ {2}Ctrl-C drains: .* 1\.5 s .*\n\n$/m);
  for (const secret of [BASE_ENV.SIDECAR_CLIENT_ID, BASE_ENV.SIDECAR_CLIENT_SECRET]) expect(text).not.toContain(secret);
});

test('names the file of a secret, and describes the rate auto', () => {
  const path = scratchFile('sesame-of-the-file\n');
  const text = banner({ ...BASE_ENV, SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path });
  expect(text).toContain(`secret from ${path}`);
  expect(text).toContain('rate learned');
  expect(text).not.toContain('sesame');
});

test('shows routes and credentials on lines of their own, and counts the rest', () => {
  const routes = Array.from(
    { length: 11 },
    (_, at) => `{ name: r${String(at)}, pathPrefix: /r${String(at)}, credential: two }`,
  );
  const file = scratchFile(`credentials: { two: { scope: b } }\nroutes: [${routes.join(', ')}]`);
  const text = banner({ ...BASE_ENV }, file);
  expect(text).toMatch(/^ {2}route +\/ → https:\/\/api\.example\.com\/v1 +default, rate learned/m);
  expect(text).toMatch(/^ {2}route +\/r1 → https:\/\/api\.example\.com\/v1 +r1, rate learned/m);
  expect(text).toContain('and 4 more routes');
  expect(text).toMatch(/^ {2}token default +https:.*client \*{8}/m);
  expect(text).toMatch(/^ {2}token two +https:/m);
});

test('shows a socket path with control characters escaped', () => {
  const path = scratchFile('sesame\n', 'a\u001b[2Jb');
  const text = banner({ ...BASE_ENV }, undefined, { proxyUrl: `unix:${path}`, adminUrl: 'unix:/run/admin' });
  expect(text).toMatch(/^ {2}status +unix:\/run\/admin /m);
  expect(text).not.toContain('\u001b');
});

test('moves a text that is too wide to the next line', () => {
  const path = scratchFile('sesame-of-the-file\n', 'a-file-of-some-length');
  const env = { ...BASE_ENV, SIDECAR_CLIENT_SECRET: '', SIDECAR_CLIENT_SECRET_FILE: path };
  const text = banner(env, undefined, PLACES, 80);
  expect(text).toContain(`token\n            client ********, secret from ${path}\n`);
});
