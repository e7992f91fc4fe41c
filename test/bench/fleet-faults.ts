/**
 * Four sidecar processes that share 40 calls a second over a Redis that fails in one way after another, in real time: what they send
 * meanwhile, their parts of the rate while they are apart, what the API refuses, and the rate afterwards. About 80 seconds for each fault,
 * a configured and a learned rate at the same time; needs redis-server.
 * Run: npm run bench:fleet-faults -- [--faults maxmemory,edge,readonly,flush,restart,latency] [--rates 40,auto] [--seconds 25]
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '@redis/client';
import { Agent, request } from 'undici';
import { readSamples } from '../telemetry/metrics/exposition.ts';
import { startDelayingRelay } from '../support/delaying-relay.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startSidecar, waitUntilReady, type RunningSidecar } from '../support/sidecar-process.ts';
import { bucketLimiter } from '../throttle/simulation.ts';

const QUOTA = 40;
const OFFERED = 60;
const REPLICAS = 4;
const SETTLING_MS = 20_000;
/** From the end of the fault to the end of the run. */
const WATCHED_MS = 40_000;
const EDGE_STEP_MS = 40;
const EDGE_PASSING_SHARE = 0.1;

const FAULTS = ['maxmemory', 'edge', 'readonly', 'flush', 'restart', 'latency'] as const;
type Fault = (typeof FAULTS)[number];

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: FAULTS.join(',') },
    rates: { type: 'string', default: `${String(QUOTA)},auto` },
    seconds: { type: 'string', default: '25' },
  },
});

interface Arrival {
  readonly at: number;
  readonly replica: number;
  readonly isAccepted: boolean;
}

process.setMaxListeners(64);

async function startUpstream() {
  const limiter = bucketLimiter(QUOTA, 20);
  const arrivals: Arrival[] = [];
  const server = createServer((message, response) => {
    message.resume();
    if (message.url === '/oauth/token') {
      const token = { access_token: 'a-token-of-the-bench', token_type: 'Bearer', expires_in: 3600 };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
      return;
    }
    const at = performance.now();
    const isAccepted = limiter(at).accepted;
    arrivals.push({ at, replica: Number(message.url?.slice(1)), isAccepted });
    response.writeHead(isAccepted ? 200 : 429).end();
  });
  return { server, url: await listenOnLoopback(server), arrivals };
}

/** A Redis behind a relay, and the ways in which it fails. */
async function startFailingRedis() {
  const port = await freePort();
  let server = await startRedisServer(port);
  const relay = await startDelayingRelay(port, 0);
  const send = async (...command: string[]): Promise<void> => {
    const client = createClient({ url: `redis://127.0.0.1:${String(port)}`, socket: { reconnectStrategy: false } });
    client.on('error', () => undefined);
    await client.connect();
    await client.sendCommand(command);
    client.destroy();
  };
  const setMaxMemory = (bytes: number) => send('CONFIG', 'SET', 'maxmemory', String(bytes));
  const refuseMostWrites = async (forMs: number): Promise<void> => {
    const until = performance.now() + forMs;
    while (performance.now() < until) {
      await setMaxMemory(Math.random() < EDGE_PASSING_SHARE ? 0 : 1);
      await sleep(EDGE_STEP_MS);
    }
    await setMaxMemory(0);
  };
  type Change = () => Promise<unknown>;
  const setDelay = (roundTripMs: number): Promise<void> => {
    relay.roundTripMs = roundTripMs;
    return Promise.resolve();
  };
  const changes: Readonly<Record<Exclude<Fault, 'edge'>, readonly [begin: Change, end: Change]>> = {
    maxmemory: [() => setMaxMemory(1), () => setMaxMemory(0)],
    readonly: [() => send('REPLICAOF', '127.0.0.1', '1'), () => send('REPLICAOF', 'NO', 'ONE')],
    flush: [() => send('FLUSHALL'), () => Promise.resolve()],
    restart: [() => server.stop(), async () => (server = await startRedisServer(port))],
    latency: [() => setDelay(300), () => setDelay(0)],
  };
  const fail = async (fault: Fault, forMs: number): Promise<void> => {
    if (fault === 'edge') return refuseMostWrites(forMs);
    const [begin, end] = changes[fault];
    await begin();
    await sleep(forMs);
    await end();
  };
  return {
    url: `redis://127.0.0.1:${String(relay.port)}`,
    fail,
    async stop() {
      await relay[Symbol.asyncDispose]();
      await server.stop();
    },
  };
}

/** The parts of those that are apart, together. */
async function sumOfPartsApart(agent: Agent, replicas: readonly RunningSidecar[]): Promise<number> {
  const parts = await Promise.all(
    replicas.map(async ({ adminUrl }) => {
      const [status, metrics] = await Promise.all(
        ['status', 'metrics'].map(async (path) => {
          const { body } = await request(`${adminUrl}/${path}`, { dispatcher: agent });
          return body.text();
        }),
      );
      const { throttle } = JSON.parse(status ?? '') as { throttle: { fleet?: { state: string } } };
      if (throttle.fleet?.state !== 'apart') return 0;
      return readSamples(metrics ?? '').get('bearer_sidecar_permit_rate{route="default"}') ?? 0;
    }),
  );
  return parts.reduce((sum, part) => sum + part, 0);
}

async function offerCalls(agent: Agent, replicas: readonly RunningSidecar[], until: number): Promise<void> {
  const call = async (index: number): Promise<void> => {
    const { body } = await request(`${replicas[index]?.proxyUrl ?? ''}/${String(index)}`, { dispatcher: agent });
    await body.dump();
  };
  for (let index = 0, at = performance.now(); at < until; index++) {
    // What waits at the end fails with its sidecar.
    call(index % replicas.length).catch(() => undefined);
    at += (-Math.log(1 - Math.random()) * 1000) / OFFERED;
    await sleep(Math.max(0, at - performance.now()));
  }
}

async function runFault(fault: Fault, rate: string): Promise<string> {
  await using cleanup = new AsyncDisposableStack();
  const { server, url, arrivals } = await startUpstream();
  cleanup.defer(() => closeServer(server));
  const redis = await startFailingRedis();
  cleanup.defer(() => redis.stop());
  const agent = new Agent({ connections: 256 });
  cleanup.defer(() => agent.destroy());
  const env = {
    SIDECAR_BASE_URL: url,
    SIDECAR_AUTH_URL: url,
    SIDECAR_CLIENT_ID: 'client-of-the-bench',
    SIDECAR_CLIENT_SECRET: 'secret-of-the-bench',
    SIDECAR_SCOPE: 'a',
    SIDECAR_RATE: rate,
    ...(rate === 'auto' ? {} : { SIDECAR_BURST: '5' }),
    SIDECAR_QUEUE_TIMEOUT_MS: '10000',
    // On a busy machine a shorter one would make some replicas continue alone.
    SIDECAR_FLEET_TIMEOUT_MS: '150',
    SIDECAR_REDIS_URL: redis.url,
  };
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, async (_, index) => {
      const name = `bench-fleet-faults-${rate}-${String(index)}`;
      return cleanup.use(await startSidecar({ name, env }));
    }),
  );
  await Promise.all(replicas.map((replica) => waitUntilReady(replica)));

  const failMs = Number(values.seconds) * 1000;
  const offering = offerCalls(agent, replicas, performance.now() + SETTLING_MS + failMs + WATCHED_MS);
  await sleep(SETTLING_MS);
  const failedAt = performance.now();
  const failing = redis.fail(fault, failMs);
  let largestSum = 0;
  while (performance.now() < failedAt + failMs) {
    await sleep(200);
    largestSum = Math.max(largestSum, await sumOfPartsApart(agent, replicas));
  }
  await failing;
  const backAt = performance.now();
  await offering;

  const between = (from: number, to: number) => {
    const sent = arrivals.filter(({ at }) => at >= from && at < to);
    const accepted = sent.filter(({ isAccepted }) => isAccepted).length;
    const perSecond = (count: number): string => ((count * 1000) / (to - from)).toFixed(1).padStart(5);
    const each = replicas.map((_, index) => sent.filter(({ replica }) => replica === index).length);
    const refused = `${(((sent.length - accepted) * 100) / Math.max(1, sent.length)).toFixed(1)} %`.padStart(6);
    return { sent: perSecond(sent.length), accepted: perSecond(accepted), refused, each: each.map(perSecond).join('') };
  };
  const meanwhile = between(failedAt + 1_000, backAt);
  const first = between(backAt, backAt + 10_000);
  const last = between(backAt + 25_000, backAt + 35_000);
  return [
    fault.padEnd(10),
    rate.padStart(4),
    between(failedAt - 8_000, failedAt).accepted,
    largestSum.toFixed(1).padStart(7),
    `${meanwhile.sent} =${meanwhile.each}`,
    meanwhile.refused,
    `${first.accepted} ${first.refused}`,
    `${last.accepted} ${last.refused}`,
  ].join('  ');
}

console.log(
  `limit ${String(QUOTA)}/s, burst 20; offered ${String(OFFERED)}/s to ${String(REPLICAS)} replicas; calls a second`,
);
console.log('fault      rate before  parts  sent meanwhile, each        refused  10 s after    30 s after');
for (const fault of FAULTS.filter((one) => values.faults.split(',').includes(one))) {
  const lines = await Promise.all(values.rates.split(',').map((rate) => runFault(fault, rate)));
  for (const line of lines) console.log(line);
}
