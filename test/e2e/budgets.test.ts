/** The sidecar on a machine that gives little: no descriptor runs out, and every client gets a response. The loads at length: `npm run soak:budgets`. */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { call, callConcurrently } from '../support/calls.ts';
import { writeConfigFile } from '../support/config-file.ts';
import { MAIN } from '../support/main-file.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';
import { runLoad } from '../soak/budget-loads.ts';

it('with few descriptors serves some clients and refuses the others with 503', async () => {
  const load = { kind: 'posts', count: 18, size: 100 } as const;
  const { clients, log, isAlive } = await runLoad('short', { descriptors: 64 }, load);
  expect(isAlive).toBe(true);
  expect(log).not.toMatch(/EMFILE|ENFILE/);
  expect(log).toContain('the limit of 64 file descriptors is enough for');
  const { '200': served = 0, '503 QUEUE_FULL': refused = 0, ...others } = clients;
  expect(others).toEqual({});
  expect([served > 0, served + refused]).toEqual([true, 18]);
});

it('runs out of no descriptor after a reload that lets more calls through', async () => {
  const respond = (_request: unknown, response: ServerResponse): void => {
    setTimeout(() => response.end(), 1000);
  };
  await using tokens = await startTokenServer();
  await using upstream = await startRecordingUpstream(respond);
  const write = (mode: string): string => `throttle:\n  mode: ${mode}\n  maxInFlight: 1\n  maxStreams: 0\n`;
  await using file = await writeConfigFile(write('enforce'));
  const program = ['/bin/sh', '-c', 'ulimit -n 128; exec "$0" "$@"', process.execPath, MAIN] as const;
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_CONFIG: file.path };
  await using sidecar = await startSidecar({ name: 'few-descriptors-after-reload', program, env });
  await waitUntilReady(sidecar);
  await file.replace(write('observe'));
  process.kill(sidecar.pid, 'SIGHUP');
  await waitUntil(() => sidecar.stdout().includes('configuration reloaded'), 'the limits are observed');

  const responses = await callConcurrently(80, () => call(`${sidecar.proxyUrl}/quotes`));
  const refused = responses.filter(({ status }) => status !== 200);
  expect(responses.length - refused.length).toBeGreaterThan(10);
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 503));
  expect(sidecar.stdout()).not.toContain('EMFILE');
}, 60_000);

it('does not start with too few descriptors for one client, and says how many are needed', async () => {
  const program = ['/bin/sh', '-c', 'ulimit -n 32; exec "$0" "$@"', process.execPath, MAIN] as const;
  const env = baseSettings('http://127.0.0.1:9', 'http://127.0.0.1:9', newCredential());
  await using sidecar = spawnSidecar({ name: 'too-few-descriptors', program, env });
  expect(await sidecar.exit).toEqual({ code: 1, signal: null });
  expect(sidecar.stderr()).toMatch(
    /the limit of 32 file descriptors is too low to serve even one client: \d+ are needed/,
  );
});
