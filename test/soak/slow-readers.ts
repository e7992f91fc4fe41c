/** What readers that are slower than the upstream cost in memory: their bodies must wait upstream, not in the sidecar. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChain } from '../support/chain.ts';
import { openSocket } from '../support/raw-client.ts';
import { peakMemoryBytes } from '../support/sidecar-process.ts';

export interface SlowReaders {
  readonly readers: number;
  readonly bodyBytes: number;
  /** Each reader rests this long after each 256 KiB. */
  readonly restMs: number;
}

export interface SlowReaderFigures {
  readonly idlePeakBytes: number;
  readonly peakBytes: number;
  /** Readers that got every byte. */
  readonly whole: number;
  readonly seconds: number;
}

const BLOCK = Buffer.alloc(64 * 1024, 'bearer-sidecar ');

/** All readers at the same time. */
export async function measureSlowReaders({ readers, bodyBytes, restMs }: SlowReaders): Promise<SlowReaderFigures> {
  const env = { SIDECAR_RATE: '100000', SIDECAR_BURST: '100000', SIDECAR_MAX_IN_FLIGHT: String(readers) };
  await using chain = await startChain({
    name: 'soak-slow-readers',
    env,
    answer: (_request, response) => {
      response.writeHead(200, { 'content-length': bodyBytes });
      const writeMore = (left: number): void => {
        if (left <= 0) response.end();
        else if (response.write(BLOCK.subarray(0, left))) setImmediate(writeMore, left - BLOCK.length);
        else response.once('drain', () => writeMore(left - BLOCK.length));
      };
      writeMore(bodyBytes);
    },
  });
  const { pid, proxyUrl } = chain.sidecar;
  const idlePeakBytes = peakMemoryBytes(pid);
  const startedAt = performance.now();
  const read = await Promise.all(Array.from({ length: readers }, () => readSlowly(proxyUrl, restMs)));
  return {
    idlePeakBytes,
    peakBytes: peakMemoryBytes(pid),
    whole: read.filter((bytes) => bytes === bodyBytes).length,
    seconds: (performance.now() - startedAt) / 1000,
  };
}

/** @returns how many bytes of the body came */
async function readSlowly(url: string, restMs: number): Promise<number> {
  const socket: Socket = await openSocket(url);
  socket.write('GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  let head = '';
  let bytes = 0;
  let untilRest = 256 * 1024;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (!head.includes('\r\n\r\n')) head += chunk.toString('latin1');
    untilRest -= chunk.length;
    if (untilRest > 0) continue;
    untilRest = 256 * 1024;
    await sleep(restMs);
  }
  return bytes - (head.indexOf('\r\n\r\n') + 4);
}
