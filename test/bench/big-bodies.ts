/**
 * What 1 GiB up and 1 GiB down through the sidecar cost in memory, with a slow reader at the far end of each. Run by
 * `npm run bench:memory`; prints the process's peak (VmHWM, Linux) and fails past the bound.
 */
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { processMemory } from '../support/process-memory.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { IncrementalDigest, piecesOf } from '../support/witness.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 1024 * MIB;
/** Node itself takes about 90 MiB before the first request. */
const MAX_PEAK_BYTES = 256 * MIB;
/** The reader stops this long after each 8 MiB. */
const PAUSE_MS = 40;

async function readSlowly(body: AsyncIterable<Buffer>): Promise<string> {
  const digest = new IncrementalDigest();
  let untilPause = 8 * MIB;
  for await (const chunk of body) {
    digest.add(chunk);
    untilPause -= chunk.length;
    if (untilPause > 0) continue;
    untilPause = 8 * MIB;
    await sleep(PAUSE_MS);
  }
  return describe(digest);
}

function describe({ bytes, crc32 }: IncrementalDigest): string {
  return `${bytes} bytes, CRC-32 ${crc32.toString(16)}`;
}

function blocks(): Generator<Buffer> {
  return piecesOf('big-bodies', BODY_BYTES, MIB);
}

await using cleanup = new AsyncDisposableStack();
const upstream = createServer((message, response) => {
  if (message.method === 'GET') Readable.from(blocks()).pipe(response);
  else void readSlowly(message).then((digest) => response.end(digest));
});
const upstreamUrl = await listenOnLoopback(upstream);
cleanup.defer(() => closeServer(upstream));
const tokens = cleanup.use(await startTokenServer());
const env = baseSettings(upstreamUrl, tokens.url, newCredential());
const sidecar = cleanup.use(await startSidecar({ name: 'bench-big-bodies', env }));
await waitUntilReady(sidecar);

const sent = new IncrementalDigest();
for (const block of blocks()) sent.add(block);
const expected = describe(sent);

/** @returns whether the body arrived intact and the peak stayed within the bound */
async function measure(name: string, transfer: () => Promise<string>): Promise<boolean> {
  const startedAt = performance.now();
  const intact = (await transfer()) === expected;
  const seconds = (performance.now() - startedAt) / 1000;
  const peak = processMemory(sidecar.pid, 'VmHWM');
  const bounded = peak <= MAX_PEAK_BYTES;
  console.log(
    `${name}: peak RSS ${(peak / MIB).toFixed(0)} MiB (${bounded ? 'within' : 'past'} ${MAX_PEAK_BYTES / MIB}), ` +
      `${intact ? 'intact' : 'DAMAGED'}, ${seconds.toFixed(1)} s`,
  );
  return intact && bounded;
}

console.log(`idle: peak RSS ${(processMemory(sidecar.pid, 'VmHWM') / MIB).toFixed(0)} MiB`);
const up = await measure('1 GiB up', async () => {
  const response = await request(`${sidecar.proxyUrl}/upload`, { method: 'PUT', body: Readable.from(blocks()) });
  return response.body.text();
});
const down = await measure('1 GiB down', async () => {
  const response = await request(`${sidecar.proxyUrl}/download`);
  return readSlowly(response.body);
});
process.exitCode = up && down ? 0 : 1;
