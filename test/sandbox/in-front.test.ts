/** The sandbox as users start it, with scenarios: what an application behind the sidecar sees. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { call } from '../support/calls.ts';
import { spawnSidecar } from '../support/sidecar-process.ts';

const FREE_PORTS = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' };
const QUOTE = JSON.stringify({
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
});

const folder = mkdtempSync(join(tmpdir(), 'scenarios-'));
afterAll(() => rmSync(folder, { recursive: true }));

function writeScenario(text: string): string {
  const path = join(folder, 'scenario.yaml');
  writeFileSync(path, text);
  return path;
}

async function startScenario(file: string, env: Record<string, string> = {}) {
  const sandbox = spawnSidecar({
    name: 'sandbox-in-front',
    args: ['sandbox', '--scenario', file],
    env: { ...FREE_PORTS, ...env },
  });
  const proxyUrl = (await sandbox.waitForLine(/^proxy /)).slice('proxy '.length);
  const quote = async (path = '/quotes-requests', body = QUOTE) =>
    call(proxyUrl + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return { ...sandbox, proxyUrl, quote };
}

test('an application sees no refusal of limits by operation, and its faulty input as 400', async () => {
  await using sandbox = await startScenario('config/scenarios/limits-by-operation.yaml');
  const quotes = await Promise.all(Array.from({ length: 12 }, () => sandbox.quote()));
  expect(quotes.map(({ status }) => status)).toEqual(Array(12).fill(201));
  expect((await sandbox.quote('/quotes-requests?channel=web')).status).toBe(400);
  expect((await sandbox.quote('/quotes-requests', QUOTE.replace('ES', '<script>'))).status).toBe(400);
  expect((await call(`${sandbox.proxyUrl}/policies/none`)).status).toBe(400);
  expect((await call(`${sandbox.proxyUrl}/none`)).status).toBe(404);
  expect(await sandbox.stop('SIGTERM')).toEqual({ code: 0, signal: null });
});

test('two sandboxes at once have the same faults in the same order, by the seed', async () => {
  const faults = '[{ share: 0.2, status: 500 }, { share: 0.1, breaks: reset }, { share: 0.1, breaks: cut }]';
  const file = writeScenario(`seed: 7\nlimits: []\nfaults: ${faults}\n`);
  const env = { SIDECAR_RETRY_ATTEMPTS: '1' };
  await using first = await startScenario(file, env);
  await using second = await startScenario(file, env);
  const results = await Promise.all(
    [first, second].map(async ({ quote }) => {
      const statuses: (number | 'lost')[] = [];
      for (let count = 0; count < 40; count++) {
        const { status } = await quote().catch(() => ({ status: 502 }));
        statuses.push(status === 502 ? 'lost' : status);
      }
      return statuses;
    }),
  );
  expect(results[0]).toEqual(results[1]);
  expect(new Set(results[0])).toEqual(new Set([201, 500, 'lost']));
});

describe('rights', () => {
  test.each([
    ['role: reader', 'The role reader of this client may read only.'],
    [
      'scopes: []',
      'The access token lacks the scope urn:example.partners.sales.individual.travel.quotesrequests.write.',
    ],
  ])('%s: 403 with the reason', async (scenario, detail) => {
    await using sandbox = await startScenario(writeScenario(scenario));
    const response = await sandbox.quote();
    expect(response.status).toBe(403);
    expect(JSON.parse(response.text)).toMatchObject({ detail });
  });
});

test('a scenario that cannot be used ends with exit code 2 and a line for each key', async () => {
  const file = writeScenario('sede: 1\nlimits: [{ calls: 0, per: 1s }]\n');
  await using sandbox = spawnSidecar({
    name: 'sandbox-refused',
    args: ['sandbox', '--scenario', file],
    env: FREE_PORTS,
  });
  expect(await sandbox.exit).toEqual({ code: 2, signal: null });
  expect(sandbox.stderr().split('\n')).toEqual([
    'bearer-sidecar: sede: unknown key in the scenario; did you mean seed?',
    'bearer-sidecar: limits[0].calls: found 0; expected a whole number from 1 to 1000000',
    '',
  ]);
});
