/**
 * How many functions of src/ one request calls, through the `run` command with default settings: a warm, uncontended GET, and a POST
 * after a limit has been learned. Timing plays no part; functions, methods, accessors, constructors and arrow functions count.
 * Run: npm run bench:calls [-- --list] [-- --root <another checkout with its node_modules>]
 */
import { Agent, request } from 'node:http';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { startPlainUpstream } from './plain-upstream.ts';
import { countCalls, pickMedian, type CallFigures, type RecordedCalls } from './recorded-calls.ts';
import { TracedSidecar } from './traced-sidecar.ts';

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: resolve(import.meta.dirname, '..', '..', '..') },
    /** Prints each function with its number of calls. */
    list: { type: 'boolean', default: false },
  },
});

const WARM_UP_CALLS = 50;
const RECORDINGS = 15;
const HIDDEN_LIMIT_PER_SECOND = 10;
const LEARNING_MS = 12_000;
const BODY = JSON.stringify({ product: 'travel', days: 14 });

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
await using tokens = await startTokenServer();

await measure('one warm GET', Infinity, async (sidecar) => {
  for (let call = 0; call < WARM_UP_CALLS; call++) await send(sidecar, 'GET');
  return await recordEach(sidecar, 'GET', 0);
});
await measure('one POST after a learned limit', HIDDEN_LIMIT_PER_SECOND, async (sidecar) => {
  const end = performance.now() + LEARNING_MS;
  while (performance.now() < end) await Promise.all([1, 2, 3, 4].map(() => send(sidecar, 'POST', false)));
  // The permits of one window come back, so that none of the recorded calls waits.
  await sleep(3000);
  return await recordEach(sidecar, 'POST', 1000);
});
agent.destroy();

async function measure(
  title: string,
  limit: number,
  run: (sidecar: TracedSidecar) => Promise<RecordedCalls[]>,
): Promise<void> {
  await using upstream = await startPlainUpstream(limit);
  const settings = baseSettings(upstream.url, tokens.url, newCredential());
  await using sidecar = await TracedSidecar.start(values.root, settings);
  await waitUntilReady(sidecar);
  const recordings = await run(sidecar);
  const refused = upstream.refused > 0 ? ` (the upstream refused ${String(upstream.refused)} calls before)` : '';
  print(`${title}${refused}`, countCalls(pickMedian(recordings)));
}

async function recordEach(sidecar: TracedSidecar, method: 'GET' | 'POST', pauseMs: number): Promise<RecordedCalls[]> {
  const recordings: RecordedCalls[] = [];
  for (let count = 0; count < RECORDINGS; count++) {
    recordings.push(await sidecar.record(() => send(sidecar, method)));
    await sleep(pauseMs);
  }
  return recordings;
}

function send({ proxyUrl }: TracedSidecar, method: 'GET' | 'POST', keepsOneConnection = true): Promise<void> {
  const headers = method === 'POST' ? { 'content-type': 'application/json', 'content-length': BODY.length } : {};
  const options = keepsOneConnection ? { method, headers, agent } : { method, headers };
  return new Promise((resolveSent, reject) => {
    const sent = request(`${proxyUrl}/policies/1`, options, (response) => {
      response.on('end', () => {
        if (response.statusCode === 200) resolveSent();
        else reject(new Error(`the sidecar responded with ${String(response.statusCode)}`));
      });
      response.resume();
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? BODY : undefined);
  });
}

async function waitUntilReady({ adminUrl }: TracedSidecar): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const response = await fetch(`${adminUrl}/readyz`);
    await response.arrayBuffer();
    if (response.ok) return;
    await sleep(20);
  }
  throw new Error('the sidecar did not become ready');
}

function print(title: string, figures: CallFigures): void {
  const { calls, functions, files, fileChanges, byFolder, byFunction } = figures;
  console.log(`${title}: ${calls} calls of ${functions} functions in ${files} files, ${fileChanges} changes of file`);
  const folders = [...byFolder].toSorted(([, one], [, other]) => other - one);
  console.log(`  ${folders.map(([folder, count]) => `${folder} ${count}`).join(' · ')}`);
  if (!values.list) return;
  for (const [name, count] of [...byFunction].toSorted(([one], [other]) => one.localeCompare(other)))
    console.log(`  ${String(count).padStart(5)}  ${name}`);
}
