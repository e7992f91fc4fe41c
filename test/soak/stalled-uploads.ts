/**
 * `npm run soak:stalls`: requests beside 64 and 1000 clients that stall within their uploads, short ones that are buffered and long ones
 * that are streamed. Prints how long the requests took and ends with 1 when a claim does not hold. A minute.
 */
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { startSidecarStack, type SidecarStack } from '../support/chain.ts';
import { openSocket } from '../support/raw-client.ts';
import { waitUntil } from '../support/until.ts';

const REQUESTS = 400;
const AT_ONCE = 4;
const REQUEST_TIMEOUT_MS = 40_000;
const KINDS = { short: { declared: 100, sent: 10 }, long: { declared: 3_000_000, sent: 1_200_000 } };

interface Call {
  readonly ms: number;
  readonly isRight: boolean;
}

function claim(what: string, holds: boolean): void {
  console.log(`${holds ? 'ok      ' : 'VIOLATED'} ${what}`);
  if (!holds) process.exitCode = 1;
}

/** A GET, or a POST whose body the upstream must send back byte for byte. */
function call(url: string, body: Buffer | undefined): Promise<Call> {
  const startedAt = performance.now();
  const { promise, resolve } = Promise.withResolvers<Call>();
  const end = (isRight: boolean): void => resolve({ ms: performance.now() - startedAt, isRight });
  const clientRequest = request(url, { method: body === undefined ? 'GET' : 'POST', timeout: REQUEST_TIMEOUT_MS });
  clientRequest.on('timeout', () => clientRequest.destroy()).on('error', () => end(false));
  clientRequest.on('response', (response) => {
    const received = createHash('sha256');
    response.on('data', (chunk: Buffer) => void received.update(chunk));
    response.on('end', () => {
      const sent = createHash('sha256').update(body ?? '');
      end(response.statusCode === 200 && received.digest('hex') === sent.digest('hex'));
    });
  });
  clientRequest.end(body);
  return promise;
}

async function callMany(url: string, count: number): Promise<readonly Call[]> {
  const calls: Call[] = [];
  let [begun, failed] = [0, 0];
  const work = async (): Promise<void> => {
    // A sidecar that serves nothing is seen soon enough.
    while (begun++ < count && failed < AT_ONCE) {
      const done = await call(url, begun % 2 === 0 ? randomBytes(1000) : undefined);
      failed += Number(!done.isRight);
      calls.push(done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return calls;
}

function summarize(calls: readonly Call[]): { readonly p99: number; readonly wrong: number; readonly text: string } {
  const times = calls.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? NaN;
  const wrong = calls.filter(({ isRight }) => !isRight).length;
  const text = `${calls.length} requests, wrong or without a response ${wrong}, p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`;
  return { p99: at(0.99), wrong, text };
}

async function openStalledUploads(
  { sidecar }: SidecarStack,
  count: number,
  { declared, sent }: { declared: number; sent: number },
) {
  const head = `POST /stalled HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${String(declared)}\r\n\r\n`;
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = await openSocket(sidecar.proxyUrl);
    socket.on('error', () => socket.destroy()).resume();
    socket.write(head);
    socket.write(Buffer.alloc(sent));
    sockets.push(socket);
  }
  return sockets;
}

for (const [kind, sizes] of Object.entries(KINDS)) {
  for (const count of [64, 1000]) {
    await using chain = await startSidecarStack({ name: `stalls-${kind}-${String(count)}` });
    await callMany(chain.sidecar.proxyUrl, 100);
    const alone = summarize(await callMany(chain.sidecar.proxyUrl, REQUESTS));
    const sockets = await openStalledUploads(chain, count, sizes);
    const beside = summarize(await callMany(chain.sidecar.proxyUrl, REQUESTS));
    console.log(`alone: ${alone.text}\nbeside ${count} stalled ${kind} uploads: ${beside.text}`);
    claim('every response is complete, byte for byte', alone.wrong + beside.wrong === 0);
    // A thousand long ones stand before the requests in the queue, and each slot is taken from them after a second.
    if (kind === 'short' || count === 64) claim('p99 is under 3 s', beside.p99 < 3000);
    for (const socket of sockets) socket.destroy();
    await waitUntil(async () => (await fetch(`${chain.sidecar.adminUrl}/livez`)).ok, 'the sidecar alive');
  }
}
