/**
 * Three sidecar processes that share a limit of 40/s which they do not know, over a real Redis, in real time: the time from the first
 * call to half of the rate, and the longest gap in the accepted calls of the others after the leader was killed or suspended, in half of
 * the runs right after a refusal. About eight minutes; needs redis-server.
 * Run: npm run bench:fleet-processes -- [--runs 10] [--bursts 1,10] [--replicas 3]; one replica starts without a fleet, for comparison
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { findHalfRate, QUOTA } from '../fleet/shared-quota/fleet-start.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startSidecar, waitUntilReady, type RunningSidecar } from '../support/sidecar-process.ts';
import { bucketLimiter } from '../throttle/simulation.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10' },
    bursts: { type: 'string', default: '1,10' },
    replicas: { type: 'string', default: '3' },
  },
});
const REPLICAS = Number(values.replicas);
const CLIENTS_PER_REPLICA = 27 / REPLICAS;
const MAX_START_MS = 30_000;
/** From half of the rate, and from the start, to the loss of the leader. */
const MIN_SETTLED_MS = 4_000;
const MIN_RUN_MS = 12_000;
/** Watched before and after the loss. */
const WATCHED_MS = 4_000;

type Loss = 'SIGKILL' | 'SIGSTOP';

interface Arrival {
  readonly at: number;
  readonly replica: number;
}

interface RunResult {
  readonly burst: number;
  readonly loss: Loss;
  readonly isAfterRefusal: boolean;
  readonly halfRateMs: number;
  readonly refusedAtStart: number;
  /** Longest time without an accepted call of the others, before and after the loss. */
  readonly gapBeforeMs: number;
  readonly gapAfterMs: number;
  /** From the loss until another replica leads. */
  readonly replacedMs: number;
}

process.setMaxListeners(64);

/** An upstream and its authorization server. `/N` is a call of replica N. */
async function startUpstream(burst: number) {
  const limiter = bucketLimiter(QUOTA, burst);
  const accepted: Arrival[] = [];
  let refused = 0;
  let onForcedRefusal: (() => void) | undefined;
  const server = createServer((message, response) => {
    message.resume();
    if (message.url === '/oauth/token') {
      const token = { access_token: 'a-token-of-the-bench', token_type: 'Bearer', expires_in: 3600 };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
      return;
    }
    const at = performance.now();
    if (onForcedRefusal === undefined && limiter(at).accepted) {
      accepted.push({ at, replica: Number(message.url?.slice(1)) });
      response.writeHead(200).end('ok');
      return;
    }
    refused++;
    response.writeHead(429).end();
    onForcedRefusal?.();
    onForcedRefusal = undefined;
  });
  return {
    server,
    url: await listenOnLoopback(server),
    accepted,
    refused: () => refused,
    /** Resolves when the next call was refused. */
    refuseNext: () => new Promise<void>((resolve) => (onForcedRefusal = resolve)),
  };
}

/** Each client has one call at a time. */
async function callInLoop(agent: Agent, url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const { body } = await request(url, { dispatcher: agent, signal });
      await body.dump();
    } catch {
      await sleep(200);
    }
  }
}

async function findLeader(agent: Agent, replicas: readonly RunningSidecar[], except = -1): Promise<number> {
  const leads = await Promise.all(
    replicas.map(async ({ adminUrl }, index) => {
      if (index === except) return false;
      const { body } = await request(`${adminUrl}/status`, { dispatcher: agent });
      const { throttle } = (await body.json()) as { throttle: { fleet?: { leader: boolean } } };
      return throttle.fleet?.leader === true;
    }),
  );
  return leads.indexOf(true);
}

function findLongestGap(arrivals: readonly Arrival[], except: number, from: number, to: number): number {
  const instants = arrivals
    .filter(({ at, replica }) => replica !== except && at >= from && at < to)
    .map(({ at }) => at);
  const ends = [from, ...instants, to];
  return Math.max(...ends.slice(1).map((at, index) => at - (ends[index] ?? at)));
}

async function runOnce(burst: number, loss: Loss, isAfterRefusal: boolean): Promise<RunResult> {
  await using cleanup = new AsyncDisposableStack();
  const upstream = await startUpstream(burst);
  cleanup.defer(() => closeServer(upstream.server));
  const port = await freePort();
  const redis = await startRedisServer(port);
  cleanup.defer(() => redis.stop());
  const agent = new Agent({ connections: 64 });
  cleanup.defer(() => agent.destroy());
  const env = {
    SIDECAR_BASE_URL: upstream.url,
    SIDECAR_AUTH_URL: upstream.url,
    SIDECAR_CLIENT_ID: 'client-of-the-bench',
    SIDECAR_CLIENT_SECRET: 'secret-of-the-bench',
    SIDECAR_SCOPE: 'a',
    SIDECAR_RATE: 'auto',
    SIDECAR_QUEUE_TIMEOUT_MS: '60000',
    ...(REPLICAS > 1 ? { SIDECAR_REDIS_URL: `redis://127.0.0.1:${String(port)}` } : {}),
  };
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, async (_, index) => {
      const name = `bench-fleet-processes-${String(index)}`;
      return cleanup.use(await startSidecar({ name, env }));
    }),
  );
  await Promise.all(replicas.map((replica) => waitUntilReady(replica)));

  const calling = new AbortController();
  cleanup.defer(() => calling.abort());
  const startedAt = performance.now();
  for (const [index, { proxyUrl }] of replicas.entries())
    for (let client = 0; client < CLIENTS_PER_REPLICA; client++)
      void callInLoop(agent, `${proxyUrl}/${String(index)}`, calling.signal);
  const elapsedMs = (): number => performance.now() - startedAt;
  let halfRateMs = Infinity;
  while (halfRateMs === Infinity && elapsedMs() < MAX_START_MS) {
    await sleep(100);
    const instants = upstream.accepted.map(({ at }) => at - startedAt);
    halfRateMs = findHalfRate(instants, elapsedMs());
  }
  const refusedAtStart = upstream.refused();
  const start = { burst, loss, isAfterRefusal, halfRateMs, refusedAtStart };
  if (REPLICAS === 1) return { ...start, gapBeforeMs: NaN, gapAfterMs: NaN, replacedMs: NaN };
  await sleep(Math.max(MIN_SETTLED_MS, MIN_RUN_MS - elapsedMs()));

  const leader = await findLeader(agent, replicas);
  if (leader < 0) throw new Error('no replica leads');
  if (isAfterRefusal) await upstream.refuseNext();
  process.kill(replicas[leader]?.pid ?? NaN, loss);
  const lostAt = performance.now();
  let replacedMs = Infinity;
  while (performance.now() < lostAt + WATCHED_MS) {
    if (replacedMs === Infinity && (await findLeader(agent, replicas, leader)) >= 0)
      replacedMs = performance.now() - lostAt;
    await sleep(20);
  }
  return {
    ...start,
    gapBeforeMs: findLongestGap(upstream.accepted, leader, lostAt - WATCHED_MS, lostAt),
    gapAfterMs: findLongestGap(upstream.accepted, leader, lostAt, lostAt + WATCHED_MS),
    replacedMs,
  };
}

function describe(milliseconds: readonly number[]): string {
  const sorted = milliseconds.toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  return [median, sorted.at(-1) ?? NaN].map((value) => (value / 1000).toFixed(2).padStart(7)).join(' ');
}

const results: RunResult[] = [];
const bursts = values.bursts.split(',').map(Number);
for (const burst of bursts)
  for (let index = 0; index < Number(values.runs); index++) {
    const result = await runOnce(burst, index % 2 === 0 ? 'SIGKILL' : 'SIGSTOP', index % 4 >= 2);
    results.push(result);
    console.error(JSON.stringify(result));
  }

console.log(`limit ${String(QUOTA)}/s, ${String(REPLICAS)} replicas; seconds, median and worst`);
console.log('cold start            runs   to half of the rate');
for (const burst of bursts) {
  const starts = results.filter((one) => one.burst === burst);
  const half = describe(starts.map(({ halfRateMs }) => halfRateMs));
  console.log(`burst ${String(burst).padEnd(15)} ${String(starts.length).padStart(4)} ${half}`);
}
if (REPLICAS > 1) console.log('leader lost           runs   replaced after    longest gap       longest gap before');
for (const loss of REPLICAS > 1 ? (['SIGKILL', 'SIGSTOP'] as const) : [])
  for (const isAfterRefusal of [false, true]) {
    const runs = results.filter((one) => one.loss === loss && one.isAfterRefusal === isAfterRefusal);
    const columns = [
      runs.map((one) => one.replacedMs),
      runs.map((one) => one.gapAfterMs),
      runs.map((one) => one.gapBeforeMs),
    ];
    const name = `${loss}${isAfterRefusal ? ', refusal' : ''}`;
    console.log(
      `${name.padEnd(21)} ${String(runs.length).padStart(4)} ${columns.map((column) => describe(column)).join('   ')}`,
    );
  }
