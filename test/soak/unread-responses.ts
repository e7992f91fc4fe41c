/**
 * `npm run soak:unread`: requests beside 64 clients that do not read their responses, 64 that stall within their uploads and 64 event streams,
 * all at once, and the same requests to an idle sidecar in between. Prints how long both took, compares every byte, and ends with 1 when a
 * claim does not hold. `TESTED_MAIN=…/dist/main.js` tests another build.
 */
import { createHash, randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSidecarStack } from '../support/chain.ts';
import { openSocket } from '../support/raw-client.ts';
import { echo, type RespondTo } from '../support/recording-upstream.ts';

const CLIENTS = 64;
const ROUNDS = 150;
const REQUEST_TIMEOUT_MS = 20_000;
const LARGE_BYTES = 64 * 1024 * 1024;
const UPLOAD = { declared: 3_000_000, sent: 1_200_000 };
const PIECE = Buffer.alloc(256 * 1024, 'x');

const respond: RespondTo = (received, response, index) => {
  if (received.path === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    return;
  }
  if (received.path !== '/large') return echo(received, response, index);
  let left = LARGE_BYTES;
  response.writeHead(200, { 'content-length': LARGE_BYTES });
  const writeMore = (): void => {
    while (left > 0) {
      left -= PIECE.length;
      if (!response.write(PIECE)) break;
    }
    if (left > 0) response.once('drain', writeMore);
    else response.end();
  };
  writeMore();
};

interface Call {
  readonly ms: number;
  readonly isRight: boolean;
}

/** A POST whose body must come back byte for byte. */
function call(url: string, agent: Agent): Promise<Call> {
  const body = randomBytes(1000);
  const startedAt = performance.now();
  const { promise, resolve } = Promise.withResolvers<Call>();
  const end = (isRight: boolean): void => resolve({ ms: performance.now() - startedAt, isRight });
  const sent = request(url, { method: 'POST', agent, timeout: REQUEST_TIMEOUT_MS });
  sent.on('timeout', () => sent.destroy()).on('error', () => end(false));
  sent.on('response', (response) => {
    const received = createHash('sha256');
    response.on('data', (chunk: Buffer) => void received.update(chunk));
    response.on('end', () => {
      const expected = createHash('sha256').update(body).digest('hex');
      end(response.statusCode === 200 && received.digest('hex') === expected);
    });
  });
  sent.end(body);
  return promise;
}

async function openClients(url: string, head: string, sentBytes = 0): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => openSocket(url)));
  for (const socket of sockets) {
    socket.on('error', () => socket.destroy()).pause();
    socket.write(`${head}\r\nHost: localhost\r\n`);
    socket.write(sentBytes === 0 ? '\r\n' : `Content-Length: ${UPLOAD.declared}\r\n\r\n`);
    socket.write(Buffer.alloc(sentBytes));
  }
  return sockets;
}

function summarize(calls: readonly Call[]): { readonly p99: number; readonly wrong: number; readonly text: string } {
  const times = calls.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? NaN;
  const wrong = calls.filter(({ isRight }) => !isRight).length;
  const quantiles = [0.5, 0.99, 1].map((share) => `${at(share).toFixed(1)} ms`).join(', ');
  return {
    p99: at(0.99),
    wrong,
    text: `${calls.length} calls, ${wrong} wrong or unanswered, p50, p99, longest ${quantiles}`,
  };
}

function claim(what: string, holds: boolean): void {
  console.log(`${holds ? 'ok      ' : 'VIOLATED'} ${what}`);
  if (!holds) process.exitCode = 1;
}

await using idle = await startSidecarStack({ name: 'unread-idle', respond });
await using busy = await startSidecarStack({ name: 'unread-busy', respond });
const { proxyUrl, adminUrl } = busy.sidecar;
const sockets = [
  ...(await openClients(proxyUrl, 'GET /events HTTP/1.1')),
  ...(await openClients(proxyUrl, 'GET /large HTTP/1.1')),
  ...(await openClients(proxyUrl, 'POST /upload HTTP/1.1', UPLOAD.sent)),
];
await sleep(3000);
const agent = new Agent({ keepAlive: true });
const [beside, alone]: [Call[], Call[]] = [[], []];
for (let round = 0; round < ROUNDS && beside.filter(({ isRight }) => !isRight).length < 5; round++) {
  beside.push(await call(proxyUrl, agent));
  alone.push(await call(idle.sidecar.proxyUrl, agent));
}
agent.destroy();
const [busySummary, idleSummary] = [summarize(beside), summarize(alone)];
console.log(`idle: ${idleSummary.text}\nbusy: ${busySummary.text}`);
const status = (await (await fetch(`${adminUrl}/status`)).json()) as Record<string, Record<string, unknown>>;
const { inFlight, streams, stalledResponses, queued } = status.throttle ?? {};
console.log(JSON.stringify({ inFlight, streams, stalledResponses, queued, headline: status.verdict?.headline }));
claim('every response is complete, byte for byte', busySummary.wrong + idleSummary.wrong === 0);
claim('p99 is under 2 s', busySummary.p99 < 2000);
for (const socket of sockets) socket.destroy();
