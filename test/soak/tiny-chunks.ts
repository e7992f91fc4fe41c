/**
 * `npm run soak:tiny-chunks`: an upstream that sends its responses in pieces of one to a hundred bytes, in a machine of 256 MiB. Prints peak
 * memory and the times of /livez beside it, and ends with 1 when a claim does not hold. Three minutes. `-- NAME` runs the cases
 * whose names contain it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processMemory } from '../support/process-memory.ts';
import { openSocket } from '../support/raw-client.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { IncrementalDigest, contentOf } from '../support/witness.ts';
import { IMAGE_LIMITS, removeCgroup, shellCommand } from './budget-loads.ts';

interface Case {
  readonly connections: number;
  readonly chunkBytes: number;
  readonly framing: 'chunked' | 'length';
  /** Quick: as fast as the connection takes it. Slow: a chunk in a packet of its own about each millisecond. */
  readonly upstream: 'quick' | 'slow';
  readonly reader: 'never' | 'slow' | 'quick';
}

const MIB = 1024 * 1024;
const LIMIT_BYTES = 256 * MIB;
const STAYS_MS = 6000;
/** Divided by the connections: what all readers together get. */
const READ_BYTES = { quick: 2 * MIB, slow: 20_000 };

function listCases(): Case[] {
  const cases: Case[] = [];
  for (const connections of [1, 10, 100])
    for (const reader of ['never', 'slow', 'quick'] as const)
      for (const [chunkBytes, framing, upstream] of [
        [1, 'chunked', 'quick'],
        [7, 'chunked', 'quick'],
        [100, 'chunked', 'quick'],
        [1, 'chunked', 'slow'],
        [1, 'length', 'slow'],
        [7, 'length', 'quick'],
      ] as const)
        if (reader !== 'slow' || upstream === 'quick')
          cases.push({ connections, reader, chunkBytes, framing, upstream });
  return cases;
}

/** @returns what to send in turn, so that each chunk is a chunk of its own on the wire */
function encodeChunks(content: Buffer, { chunkBytes, framing }: Case): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < content.length; at += chunkBytes) {
    const chunk = content.subarray(at, at + chunkBytes);
    chunks.push(
      framing === 'length'
        ? chunk
        : Buffer.from(`${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`, 'latin1'),
    );
  }
  if (framing === 'chunked') chunks.push(Buffer.from('0\r\n\r\n'));
  return chunks;
}

async function startUpstream(plan: Case, content: Buffer) {
  const chunks = encodeChunks(content, plan);
  const whole = Buffer.concat(chunks);
  const framing = plan.framing === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`);
      if (plan.upstream === 'quick') socket.write(whole);
      else void sendSlowly(socket, chunks);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function sendSlowly(socket: Socket, chunks: readonly Buffer[]): Promise<void> {
  for (const chunk of chunks) {
    if (socket.destroyed) return;
    if (!socket.write(chunk)) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
    await sleep(1);
  }
}

/** @returns whether every byte came as it was sent; of a client that never reads, whether its connection is there */
async function read(url: string, { reader }: Case, crc32: number, bytes: number): Promise<boolean> {
  if (reader === 'never') {
    const socket = await openSocket(url);
    socket.on('error', () => socket.destroy()).pause();
    socket.write('GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await sleep(STAYS_MS);
    const isOpen = !socket.destroyed;
    socket.destroy();
    return isOpen;
  }
  const call = request(`${url}/a`, { agent: false }).end();
  try {
    const [response] = (await once(call, 'response')) as [AsyncIterable<Buffer>];
    const received = new IncrementalDigest();
    for await (const chunk of response) {
      received.add(chunk);
      if (reader === 'slow') await sleep(20);
    }
    return received.bytes === bytes && received.crc32 === crc32;
  } catch {
    return false;
  }
}

async function run(plan: Case, name: string) {
  await using cleanup = new AsyncDisposableStack();
  const { connections, reader } = plan;
  const size = reader === 'never' ? MIB : Math.ceil(READ_BYTES[plan.upstream] / connections);
  const content = contentOf(name, size);
  const tokens = cleanup.use(await startTokenServer());
  const upstream = cleanup.use(await startUpstream(plan, content));
  cleanup.defer(() => removeCgroup(name));
  const program = shellCommand(name, { ...IMAGE_LIMITS, memoryBytes: LIMIT_BYTES });
  const env = {
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    ...IMAGE_LIMITS.env,
    SIDECAR_RATE: '100000',
    SIDECAR_BURST: '100000',
    SIDECAR_MAX_IN_FLIGHT: String(connections),
  };
  const sidecar = cleanup.use(await startSidecar({ name: `soak-${name}`, env, program }));
  await waitUntilReady(sidecar);
  const pings = spawn(process.execPath, [join(import.meta.dirname, 'livez.child.ts'), sidecar.adminUrl], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let printed = '';
  pings.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const startedAt = performance.now();
  const digest = new IncrementalDigest().add(content);
  const results = await Promise.all(
    Array.from({ length: connections }, () => read(sidecar.proxyUrl, plan, digest.crc32, content.length)),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  pings.stdin.end();
  await once(pings, 'close');
  const isAlive = existsSync(`/proc/${sidecar.pid}/exe`);
  return {
    isAlive,
    whole: results.filter(Boolean).length,
    peakBytes: isAlive ? processMemory(sidecar.pid, 'VmHWM') : NaN,
    seconds,
    livez: JSON.parse(printed) as {
      readonly count: number;
      readonly failed: number;
      readonly p50: number;
      readonly max: number;
    },
  };
}

const [, , wanted = ''] = process.argv;
const rows: object[] = [];
for (const plan of listCases()) {
  const name = `tiny-${plan.connections}-${plan.reader}-${plan.chunkBytes}-${plan.framing}-${plan.upstream}`;
  if (!name.includes(wanted)) continue;
  const { isAlive, whole, peakBytes, seconds, livez } = await run(plan, name);
  rows.push({
    ...plan,
    'peak MiB': Math.round(peakBytes / MIB),
    whole,
    seconds: Number(seconds.toFixed(1)),
    'livez p50 ms': livez.p50,
    'livez max ms': livez.max,
    'livez failed': `${livez.failed} of ${livez.count}`,
  });
  const holds = isAlive && whole === plan.connections && livez.failed === 0;
  console.log(
    `${holds ? 'ok      ' : 'VIOLATED'} ${name}: peak ${(peakBytes / MIB).toFixed(0)} MiB, whole ${whole}, livez max ${livez.max} ms, failed ${livez.failed} of ${livez.count}`,
  );
  if (!holds) process.exitCode = 1;
}
console.table(rows);
