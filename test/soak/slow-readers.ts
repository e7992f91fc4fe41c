/** What readers that are slower than the upstream cost in memory: their bodies must wait upstream, not in the sidecar. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSidecarStack } from '../support/chain.ts';
import { openSocket } from '../support/raw-client.ts';
import { IncrementalDigest, findAlteration, piecesOf } from '../support/witness.ts';
import type { StatedBody } from '../support/witness.ts';
import { processMemory } from '../support/process-memory.ts';

export interface SlowReaderOptions {
  readonly readers: number;
  readonly bodyBytes: number;
  /** Each reader rests this long after each 256 KiB. */
  readonly pauseMs: number;
}

export interface SlowReaderResult {
  readonly idlePeakBytes: number;
  readonly peakBytes: number;
  /** Readers that got every byte as it was sent. */
  readonly whole: number;
  readonly seconds: number;
}

const BLOCK_BYTES = 64 * 1024;
const NAME = 'slow-readers';

/** All readers at the same time. */
export async function measureSlowReaders({
  readers,
  bodyBytes,
  pauseMs,
}: SlowReaderOptions): Promise<SlowReaderResult> {
  const env = { SIDECAR_RATE: '100000', SIDECAR_BURST: '100000', SIDECAR_MAX_IN_FLIGHT: String(readers) };
  await using chain = await startSidecarStack({
    name: 'soak-slow-readers',
    env,
    respond: (_request, response) => {
      response.writeHead(200, { 'content-length': bodyBytes });
      const pieces = piecesOf(NAME, bodyBytes, BLOCK_BYTES);
      const writeMore = (): void => {
        const next = pieces.next();
        if (next.done === true) response.end();
        else if (response.write(next.value)) setImmediate(writeMore);
        else response.once('drain', writeMore);
      };
      writeMore();
    },
  });
  const { pid, proxyUrl } = chain.sidecar;
  const idlePeakBytes = processMemory(pid, 'VmHWM');
  const startedAt = performance.now();
  const stated = stateContent(bodyBytes);
  const read = await Promise.all(Array.from({ length: readers }, () => readSlowly(proxyUrl, pauseMs)));
  return {
    idlePeakBytes,
    peakBytes: processMemory(pid, 'VmHWM'),
    whole: read.filter((received) => findAlteration(stated, received) === undefined).length,
    seconds: (performance.now() - startedAt) / 1000,
  };
}

function stateContent(bytes: number): StatedBody {
  const digest = new IncrementalDigest();
  for (const piece of piecesOf(NAME, bytes, BLOCK_BYTES)) digest.add(piece);
  return { id: NAME, bytes, crc32: digest.crc32 };
}

/** @returns what came of the body */
async function readSlowly(url: string, restMs: number): Promise<IncrementalDigest> {
  const socket: Socket = await openSocket(url);
  socket.write('GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  const received = new IncrementalDigest();
  let head: Buffer | undefined = Buffer.alloc(0);
  let untilRest = 256 * 1024;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    if (head === undefined) received.add(chunk);
    else {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end >= 0) received.add(head.subarray(end + 4));
      if (end >= 0) head = undefined;
    }
    untilRest -= chunk.length;
    if (untilRest > 0) continue;
    untilRest = 256 * 1024;
    await sleep(restMs);
  }
  return received;
}
