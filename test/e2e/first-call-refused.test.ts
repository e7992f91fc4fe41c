/** A process whose very first call is refused for its rate, in every form: /status, the page and the `status` command show it. */
import { expect, it } from 'vitest';
import { findStatusFaults } from '../admin/status/status-schema.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

it.each<[string, number, Readonly<Record<string, string>>]>([
  ['429 with a wait', 429, { 'retry-after': '20' }],
  ['503 with a wait', 503, { 'retry-after': '20' }],
  ['429 with nothing remaining', 429, { ratelimit: '"burst";r=0;t=20', 'ratelimit-policy': '"burst";q=10;w=60' }],
  ['429 without a hint', 429, {}],
  ['429 with a date in the past', 429, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }],
  ['429 with a wait of thousands of years', 429, { 'retry-after': '99999999999999999999' }],
])('%s', async (_, status, headers) => {
  await using tokens = await startTokenServer();
  await using upstream = await startRecordingUpstream((_request, response) => {
    response.writeHead(status, headers).end();
  });
  const env = baseSettings(upstream.url, tokens.url, newCredential());
  await using sidecar = await startSidecar({ name: 'first-call-refused', env });
  await waitUntilReady(sidecar);
  const leave = new AbortController();
  const call = fetch(`${sidecar.proxyUrl}/quotes`, { signal: leave.signal }).catch((error: unknown) => error);
  await waitUntil(() => upstream.requests.length > 0, 'the upstream has a call');
  await waitUntil(async () => (await readMetric(sidecar.adminUrl)) > 0, 'the attempt has ended');

  const document = await fetch(`${sidecar.adminUrl}/status`);
  expect(document.status).toBe(200);
  expect(findStatusFaults(await document.json())).toEqual([]);
  const page = await fetch(`${sidecar.adminUrl}/`);
  expect(page.status).toBe(200);
  expect(await page.text()).not.toMatch(/NaN|Infinity|Invalid|undefined/);
  const args = ['status', '--admin-listen', new URL(sidecar.adminUrl).host];
  await using command = spawnSidecar({ name: 'first-call-refused', args });
  expect(await command.exit).toEqual({ code: 0, signal: null });
  expect(command.stdout()).toMatch(/limit .*\n {2}queue /);
  leave.abort();
  await call;
});

async function readMetric(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const samples = [...text.matchAll(/^bearer_sidecar_upstream_attempts_total\{.*\} (\d+)$/gm)];
  return samples.reduce((sum, [, count]) => sum + Number(count), 0);
}
