/**
 * The same question as main.ts in real time, with the sidecar as a process: calls with `x-sidecar-timeout-ms` at three times the limit, an upstream
 * that takes its time for each, and a client that counts what it gets. TESTED_MAIN=dist/main.js takes what was built.
 * Run: npm run bench:deadlines-http [-- --rate auto --latency 300 --seconds 30 --from 10]
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { bucketLimiter, seeded } from '../../throttle/simulation.ts';
import { formatShare, formatTable } from '../governor/format.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '20' },
    latency: { type: 'string', multiple: true, default: ['20', '300', '2000', '1000-3000'] },
    seconds: { type: 'string', default: '30' },
    /** When the counted time begins. */
    from: { type: 'string', default: '10' },
    deadline: { type: 'string', default: '5000' },
    offered: { type: 'string', default: '60' },
  },
});

const LIMIT = 20;
const seconds = Number(values.seconds);
const from = Number(values.from);
const deadlineMs = Number(values.deadline);

interface Upstream extends AsyncDisposable {
  readonly url: string;
  /** Of `performance.now()`. */
  readonly executedAt: readonly number[];
}

/** Refuses beyond the limit where it is to be learned. */
async function startUpstream(latency: string): Promise<Upstream> {
  const limiter = bucketLimiter(LIMIT, LIMIT / 4);
  const [shortestMs = 0, longestMs = shortestMs] = latency.split('-').map(Number);
  const random = seeded(2);
  const executedAt: number[] = [];
  const server = createServer((message, response) => {
    message.resume();
    const at = performance.now();
    if (values.rate === 'auto' && !limiter(at).accepted) {
      response.writeHead(429).end();
      return;
    }
    executedAt.push(at);
    setTimeout(() => response.end('{}'), shortestMs + (longestMs - shortestMs) * random());
  });
  server.keepAliveTimeout = 600_000;
  return { url: await listenOnLoopback(server), executedAt, [Symbol.asyncDispose]: () => closeServer(server) };
}

const agent = new Agent({ connections: 2000, pipelining: 0 });

async function play(latency: string): Promise<string[]> {
  await using tokens = await startTokenServer();
  await using upstream = await startUpstream(latency);
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_RATE: values.rate };
  await using sidecar = await startSidecar({ name: `deadlines-http-${latency}`, env });
  await waitUntilReady(sidecar);
  const random = seeded(1);
  const startedAt = performance.now();
  const [countedFrom, until] = [startedAt + from * 1000, startedAt + seconds * 1000];
  const counts = new Map<string, number>();
  const calls: Promise<void>[] = [];
  const call = async (at: number): Promise<void> => {
    const { statusCode, body } = await request(`${sidecar.proxyUrl}/calls`, {
      dispatcher: agent,
      headers: { 'x-sidecar-timeout-ms': `${deadlineMs}` },
    });
    const text = await body.text();
    const name = statusCode === 200 ? 'served' : (/"code":"(\w+)"/.exec(text)?.[1] ?? `${statusCode}`);
    if (at >= countedFrom) counts.set(name, (counts.get(name) ?? 0) + 1);
  };
  for (let nextAt = startedAt; nextAt < until; nextAt += (-Math.log(1 - random()) * 1000) / Number(values.offered)) {
    await sleep(Math.max(0, nextAt - performance.now()));
    calls.push(call(nextAt));
  }
  await Promise.all(calls);
  const executed = upstream.executedAt.filter((at) => at >= countedFrom && at < until).length;
  const possible = LIMIT * (seconds - from);
  const served = counts.get('served') ?? 0;
  counts.delete('served');
  const others = [...counts].map(([code, count]) => `${code} ${count}`).join(', ');
  return [
    ...[`${latency} ms`, formatShare(executed / possible), formatShare(served / possible)],
    ...[formatShare((counts.get('UPSTREAM_TIMEOUT') ?? 0) / Math.max(1, executed)), others],
  ];
}

const rows: string[][] = [];
for (const latency of values.latency) rows.push(await play(latency));
await agent.destroy();
console.log(
  `throttle.rate: ${values.rate}, limit ${LIMIT}/s, ${values.offered}/s offered, deadline ${deadlineMs} ms\n`,
);
console.log(formatTable(['latency', 'carried out', 'goodput', 'in vain', 'others'], rows));
