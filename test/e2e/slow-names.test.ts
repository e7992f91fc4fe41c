/** Names whose server responds late, beside one for which it responds at once: each has its own thread, and callers of one name share one. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { scratchFile } from '../config/base-env.ts';
import { call } from '../support/calls.ts';
import { startNameServer } from '../support/name-server.ts';
import { MAIN } from '../support/main-file.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

const SLOW = ['slow-a', 'slow-b', 'slow-c', 'slow-d', 'slow-e'];

/** The threads of libuv's pool; those of Node.js itself have other names, or are there before the pool is used. */
function countThreadsOf(pid: number): number {
  const tasks = readdirSync(`/proc/${String(pid)}/task`);
  const names = tasks.map((task) => readFileSync(`/proc/${String(pid)}/task/${task}/comm`, 'utf8').trim());
  return names.filter((name) => name === 'libuv-worker').length;
}

async function startBesideSlowNames(env: Readonly<Record<string, string>>, host: string, name: string) {
  const names = await startNameServer(host);
  const api = await startRecordingUpstream(echo);
  const authorization = await startTokenServer();
  const { port } = new URL(api.url);
  const routes = ['quick', ...SLOW].map((route) => ({
    ...{
      name: route,
      pathPrefix: `/${route}`,
      baseUrl: `http://${route}.test:${port}/${route}`,
      stripPrefix: true,
      connectTimeoutMs: 30_000,
    },
  }));
  const config = scratchFile(JSON.stringify({ allowInsecureHttp: true, routes }), 'sidecar.json');
  const sidecar = await startSidecar({
    name,
    program: [...names.command, process.execPath, MAIN],
    env: {
      SIDECAR_CONFIG: config,
      SIDECAR_AUTH_URL: authorization.url,
      SIDECAR_CLIENT_ID: 'client',
      SIDECAR_CLIENT_SECRET: 'a-secret-of-slow-names',
      SIDECAR_AUDIENCE: 'https://api.example.com',
      ...env,
    },
  });
  await waitUntilReady(sidecar);
  return {
    names,
    sidecar,
    get: (route: string) => call(`${sidecar.proxyUrl}/${route}/x`),
    [Symbol.asyncDispose]: async () => {
      names.respondToSlowNames();
      for (const part of [sidecar, authorization, api, names]) await part[Symbol.asyncDispose]();
    },
  };
}

it('a quick name is served while five slow ones are looked up by twenty calls each', async () => {
  await using parts = await startBesideSlowNames({}, '127.0.53.1', 'slow-names');
  const { names, sidecar, get } = parts;
  const slow = SLOW.flatMap((route) => Array.from({ length: 20 }, () => get(route)));
  await waitUntil(() => SLOW.every((name) => names.names().includes(`${name}.test`)), 'a look-up of each slow name');
  expect(await get('quick')).toMatchObject({ status: 200 });
  // Two for each of six names and for the receiver of spans.
  expect(countThreadsOf(sidecar.pid)).toBe(14);
  names.respondToSlowNames();
  for (const { status } of await Promise.all(slow)) expect(status).toBe(200);
});

it('UV_THREADPOOL_SIZE of the environment holds', async () => {
  await using parts = await startBesideSlowNames({ UV_THREADPOOL_SIZE: '5' }, '127.0.53.2', 'given-threads');
  expect(await parts.get('quick')).toMatchObject({ status: 200 });
  expect(countThreadsOf(parts.sidecar.pid)).toBe(5);
});
