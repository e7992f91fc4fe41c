/**
 * A fleet of sidecar processes that share one quota over a real Redis, in real time: goodput, refusals, fairness and what it costs in
 * commands, for 1, 4 and 16 replicas, and with Redis killed for half a minute under load. Four minutes; needs redis-server.
 * Run: npm run bench:fleet
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { readSamples } from '../telemetry/metrics/exposition.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startSidecar, waitUntilReady, type RunningSidecar } from '../support/sidecar-process.ts';
import { callVerified } from '../support/witness-client.ts';
import { createVerificationStats, sendRequestedResponse, verifyRequest } from '../support/witness-upstream.ts';
import type { VerifiedOutcome } from '../support/witness-client.ts';
import { bucketLimiter, windowLimiter, type Limiter } from '../throttle/simulation.ts';

const QUOTA = 40;
const OFFERED = 60;

interface Arrival {
  readonly at: number;
  readonly isAccepted: boolean;
}

interface Run {
  readonly name: string;
  readonly replicas: number;
  readonly limiter: Limiter;
  readonly rate: string;
  readonly seconds: number;
  /** Learning the limit belongs to every run, and is measured separately. */
  readonly settlingMs: number;
  /** Seconds from the start at which Redis is killed and started again. */
  readonly outage?: readonly [number, number];
}

const agent = new Agent({ connections: 64 });
process.setMaxListeners(64);
const stats = createVerificationStats();
const altered: string[] = [];
const BODY_BYTES = 611;
let calls = 0;

async function startServer(limiter: Limiter, arrivals: Arrival[]) {
  const server = createServer((message, response) => {
    if (message.url === '/oauth/token') {
      const token = { access_token: 'a-token-of-the-bench', token_type: 'Bearer', expires_in: 3600 };
      message.resume();
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
      return;
    }
    const at = performance.now();
    const { accepted, fields = {} } = limiter(at);
    arrivals.push({ at, isAccepted: accepted });
    void verifyRequest(message, stats).then((attempt) => {
      if (accepted && attempt !== undefined) sendRequestedResponse(attempt.stated.id, message, response);
      else response.writeHead(429, fields).end();
    });
  });
  return { server, url: await listenOnLoopback(server) };
}

async function readMetric(replica: RunningSidecar, name: string): Promise<number> {
  const { body } = await request(`${replica.adminUrl}/metrics`, { dispatcher: agent });
  return readSamples(await body.text()).get(`bearer_sidecar_${name}`) ?? 0;
}

async function readMetrics(replicas: readonly RunningSidecar[], name: string): Promise<number[]> {
  return Promise.all(replicas.map((replica) => readMetric(replica, name)));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function outcomeNameOf({ status, text }: VerifiedOutcome): string {
  return status === 200 ? 'ok' : (/"code":"(\w+)"/.exec(text)?.[1] ?? String(status));
}

/** Offers calls evenly to all replicas until `until`, and counts how they end. */
async function offerCalls(
  replicas: readonly RunningSidecar[],
  until: number,
  statuses: Map<string, number>,
): Promise<void> {
  const call = async (replica: RunningSidecar): Promise<void> => {
    const sent = { id: `fleet-${String(calls++)}`, requestBytes: BODY_BYTES, responseBytes: BODY_BYTES };
    const outcome = await callVerified(agent, `${replica.proxyUrl}/things`, sent);
    if (outcome.alteration !== undefined) altered.push(outcome.alteration);
    const status = outcomeNameOf(outcome);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  for (let index = 0, at = performance.now(); at < until; index++) {
    const replica = replicas[index % replicas.length];
    if (replica !== undefined) void call(replica);
    at += (-Math.log(1 - Math.random()) * 1000) / OFFERED;
    await sleep(Math.max(0, at - performance.now()));
  }
}

/** The most by which arrivals were ever ahead of the quota: a burst, when the rate is kept. */
function largestBurst(arrivals: readonly Arrival[]): number {
  let debt = 0;
  let last = -Infinity;
  let largest = 0;
  for (const { at } of arrivals) {
    debt = Math.max(0, debt - ((at - last) * QUOTA) / 1000) + 1;
    last = at;
    largest = Math.max(largest, debt);
  }
  return largest;
}

async function runFleet({ name, replicas: count, limiter, rate, seconds, settlingMs, outage }: Run): Promise<void> {
  const arrivals: Arrival[] = [];
  const { server, url } = await startServer(limiter, arrivals);
  const port = await freePort();
  let redis = await startRedisServer(port);
  const env = {
    SIDECAR_BASE_URL: url,
    SIDECAR_AUTH_URL: url,
    SIDECAR_CLIENT_ID: 'client-of-the-bench',
    SIDECAR_CLIENT_SECRET: 'secret-of-the-bench',
    SIDECAR_SCOPE: 'a',
    SIDECAR_RATE: rate,
    SIDECAR_BURST: '5',
    SIDECAR_QUEUE_TIMEOUT_MS: '60000',
    SIDECAR_REDIS_URL: `redis://127.0.0.1:${String(port)}`,
  };
  const replicas: RunningSidecar[] = [];
  for (let index = 0; index < count; index++)
    replicas.push(await startSidecar({ name: `bench-fleet-${String(index)}`, env }));
  await Promise.all(replicas.map((replica) => waitUntilReady(replica)));

  const startedAt = performance.now();
  const statuses = new Map<string, number>();
  const offering = offerCalls(replicas, startedAt + seconds * 1000, statuses);
  await sleep(settlingMs);
  const commandsBefore = sum(await readMetrics(replicas, 'fleet_commands_total{outcome="ok"}'));
  const permitsBefore = await readMetrics(replicas, 'permits_total{route="default"}');
  const from = performance.now();
  let joinedAfterMs = NaN;
  if (outage !== undefined) {
    await sleep(Math.max(0, startedAt + outage[0] * 1000 - performance.now()));
    await redis.stop();
    await sleep(Math.max(0, startedAt + outage[1] * 1000 - performance.now()));
    redis = await startRedisServer(port);
    const backAt = performance.now();
    while (sum(await readMetrics(replicas, 'fleet_connected')) < count) await sleep(50);
    joinedAfterMs = performance.now() - backAt;
  }
  await sleep(Math.max(0, startedAt + seconds * 1000 - performance.now()));
  const until = performance.now();
  const permits = (await readMetrics(replicas, 'permits_total{route="default"}')).map(
    (total, index) => total - (permitsBefore[index] ?? 0),
  );
  const commands = sum(await readMetrics(replicas, 'fleet_commands_total{outcome="ok"}')) - commandsBefore;
  await offering;
  // What waits still, for there was more than the quota, is not looked at.
  const failed = [...statuses].filter(([status]) => status !== 'ok');
  await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
  await redis.stop();
  await closeServer(server);

  const measured = arrivals.filter(({ at }) => at >= from && at < until);
  const refused = measured.filter(({ isAccepted }) => !isAccepted).length;
  const first = arrivals.filter(({ at, isAccepted }) => at < from && !isAccepted).length;
  const jain = sum(permits) ** 2 / (count * sum(permits.map((one) => one * one)));
  const goodput = ((measured.length - refused) * 1000) / (until - from) / QUOTA;
  console.log(
    [
      name.padEnd(28),
      String(count).padStart(3),
      goodput.toFixed(3).padStart(8),
      `${((refused * 100) / measured.length).toFixed(2)} %`.padStart(8),
      String(first).padStart(6),
      jain.toFixed(4).padStart(7),
      (commands / measured.length).toFixed(3).padStart(8),
      largestBurst(arrivals).toFixed(1).padStart(7),
      String(sum(failed.map(([, times]) => times))).padStart(7),
      Number.isNaN(joinedAfterMs) ? '' : `${(joinedAfterMs / 1000).toFixed(1)} s`.padStart(7),
      JSON.stringify(Object.fromEntries(failed)),
    ].join(' '),
  );
}

const bucket = (): Limiter => bucketLimiter(QUOTA, 20);
const fixedWindow = (): Limiter => windowLimiter(QUOTA * 10, 10_000, false);
const all = (): { accepted: boolean } => ({ accepted: true });
const auto = { rate: 'auto', settlingMs: 10_000 };
const outage = [12, 42] as const;
console.log(`quota ${String(QUOTA)}/s, offered ${String(OFFERED)}/s; (first): refused while the limit was learned`);
console.log('limiter                        N  goodput  refused  (first)  Jain  cmd/req   burst  failed  joined');
await runFleet({ ...auto, name: 'bucket 40/s b20', replicas: 1, limiter: bucket(), seconds: 20 });
await runFleet({ ...auto, name: 'bucket 40/s b20', replicas: 4, limiter: bucket(), seconds: 20 });
await runFleet({ ...auto, name: 'bucket 40/s b20', replicas: 16, limiter: bucket(), seconds: 45, settlingMs: 15_000 });
await runFleet({
  ...auto,
  name: 'window 400/10 s',
  replicas: 4,
  limiter: fixedWindow(),
  seconds: 60,
  settlingMs: 25_000,
});
await runFleet({ ...auto, name: 'bucket, Redis killed', replicas: 4, limiter: bucket(), seconds: 50, outage });
await runFleet({
  ...auto,
  name: 'rate 40 b5, Redis killed',
  replicas: 4,
  limiter: all,
  rate: '40',
  seconds: 50,
  outage,
});
await agent.close();
altered.push(...stats.altered);
console.log(`bodies compared: ${String(stats.wholeBodies)}, altered: ${String(altered.length)}`);
for (const fault of altered.slice(0, 20)) console.error(fault);
if (altered.length > 0) process.exitCode = 1;
