/**
 * Declared limits under three times the load, over HTTP before an upstream that counts exactly and refuses what is beyond: sidecar processes
 * that share them over a real Redis, or one process. Prints the calls refused, the goodput beside an ideal client, and what the exchanges cost.
 * Run: npm run bench:fleet-limits -- [--seconds 40] [--replicas 4] [--limits '[{"calls":100,"per":"10s"},{"calls":450,"per":"1m"}]']
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '@redis/client';
import { Agent, request } from 'undici';
import { periodMs } from '../../src/throttle/declared/limit-window.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { exactLimiter } from '../throttle/simulation.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '40' },
    replicas: { type: 'string', default: '4' },
    limits: { type: 'string', default: '[{"calls":100,"per":"10s"},{"calls":450,"per":"1m"}]' },
    undeclared: { type: 'boolean', default: false },
  },
});
const DURATION_MS = Number(values.seconds) * 1000;
const REPLICAS = Number(values.replicas);
const LIMITS = (JSON.parse(values.limits) as { calls: number; per: string }[]).map((limit) => ({
  ...limit,
  window: 'sliding' as const,
}));
const TIGHTER_PER_SECOND = Math.min(...LIMITS.map(({ calls, per }) => (calls * 1000) / periodMs(per)));
const LOAD = 3;

/** Calls of a client that knows the limits and the upstream's clock. */
function countIdeal(): number {
  const limiter = exactLimiter(LIMITS);
  let accepted = 0;
  for (let at = 0; at < DURATION_MS; at++) while (limiter(at).accepted) accepted++;
  return accepted;
}

await using cleanup = new AsyncDisposableStack();
const limiter = exactLimiter(LIMITS);
let accepted = 0;
let refused = 0;
const server = createServer((message, response) => {
  message.resume();
  if (message.url === '/oauth/token') {
    const token = { access_token: 'a-token-of-the-bench', token_type: 'Bearer', expires_in: 36_000 };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
  } else if (limiter(performance.now()).accepted) {
    accepted++;
    response.writeHead(200).end('ok');
  } else {
    refused++;
    response.writeHead(429).end();
  }
});
const url = await listenOnLoopback(server);
cleanup.defer(() => closeServer(server));
const port = await freePort();
const redisServer = await startRedisServer(port);
cleanup.defer(() => redisServer.stop());
const redisUrl = `redis://127.0.0.1:${String(port)}`;
const redis = createClient({ url: redisUrl });
await redis.connect();
cleanup.defer(() => redis.destroy());
const agent = new Agent({ connections: 1024 });
cleanup.defer(() => agent.destroy());
const env = {
  SIDECAR_BASE_URL: url,
  SIDECAR_AUTH_URL: url,
  SIDECAR_CLIENT_ID: 'client-of-the-bench',
  SIDECAR_CLIENT_SECRET: 'secret-of-the-bench',
  SIDECAR_SCOPE: 'a',
  SIDECAR_RATE: 'auto',
  SIDECAR_QUEUE_TIMEOUT_MS: '10000',
  ...(values.undeclared ? {} : { SIDECAR_THROTTLE_LIMITS: JSON.stringify(LIMITS) }),
  ...(REPLICAS > 1 ? { SIDECAR_REDIS_URL: redisUrl } : {}),
};
const replicas = await Promise.all(
  Array.from({ length: REPLICAS }, async (_, index) =>
    cleanup.use(await startSidecar({ name: `bench-fleet-limits-${String(index)}`, env })),
  ),
);
await Promise.all(replicas.map((replica) => waitUntilReady(replica)));
await sleep(1000);
await redis.sendCommand(['CONFIG', 'RESETSTAT']);

const statuses = new Map<string, number>();
async function call(proxyUrl: string): Promise<void> {
  const { statusCode, body } = await request(proxyUrl, { dispatcher: agent });
  const text = await body.text();
  const status = statusCode === 200 ? 'ok' : (/"code":"(\w+)"/.exec(text)?.[1] ?? String(statusCode));
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
}
const calls: Promise<void>[] = [];
const startedAt = performance.now();
for (let at = startedAt, index = 0; at < startedAt + DURATION_MS; index++) {
  calls.push(call(`${replicas[index % REPLICAS]?.proxyUrl ?? ''}/things`).catch(() => undefined));
  at += (-Math.log(1 - Math.random()) * 1000) / (LOAD * TIGHTER_PER_SECOND);
  await sleep(Math.max(0, at - performance.now()));
}
const ideal = countIdeal();
console.log(`${String(REPLICAS)} replicas, ${values.limits}, ${String(LOAD)} times the load for ${values.seconds} s`);
console.log(`refused by the upstream ${String(refused)}`);
console.log(`accepted ${String(accepted)} of ${String(ideal)} possible: goodput ${(accepted / ideal).toFixed(3)}`);
const info = await redis.info('commandstats');
const [, scripts = '0', usec = '0'] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(info) ?? [];
const perSecond = (Number(scripts) * 1000) / DURATION_MS;
console.log(
  `exchanges per second ${perSecond.toFixed(1)}, microseconds of Redis each ${(Number(usec) / Math.max(1, Number(scripts))).toFixed(0)}`,
);
await Promise.all(replicas.map((replica) => replica.stop()));
await Promise.all(calls);
console.log('responses', JSON.stringify(Object.fromEntries(statuses)));
