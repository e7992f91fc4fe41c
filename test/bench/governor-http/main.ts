/**
 * `rate: auto` in real time and over HTTP against limits that are not stated, with calls at one and a half times the limit: one limit after
 * another, two minutes each, the first half for learning. TESTED_MAIN=dist/main.js takes what was built.
 * Run: npm run bench:governor-http [-- --only nginx --seconds 120]
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent } from 'undici';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, type RunningSidecar, startSidecar, waitUntilReady } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { readSamples } from '../../telemetry/metrics/exposition.ts';
import { seeded } from '../../throttle/simulation.ts';
import { formatGoodput, formatShare, formatTable } from '../governor/format.ts';
import { type HttpLimit, LIMITS, type LimitedUpstream } from './limits.ts';
import { type Load, offerCalls } from './load.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
  },
});

const LOAD = 1.5;
/** queue.timeoutMs: a call that came less than this before the end may still wait for its turn. */
const LONGEST_WAIT_MS = 30_000;
const durationMs = Number(values.seconds) * 1000;

/** Attempts of the sidecar up to an instant. */
interface Attempts {
  readonly all: number;
  readonly refused: number;
}

const agent = new Agent({ connections: 4000, pipelining: 0, headersTimeout: 120_000 });
const rows: string[][] = [];
let altered = 0;
for (const limit of LIMITS.filter(({ name }) => values.only?.includes(name) !== false)) {
  await using tokens = await startTokenServer();
  await using upstream = await limit.start();
  rows.push(await play(limit, upstream, tokens.url));
}
console.log(
  `rate: auto, ${LOAD} × the limit, ${durationMs / 1000} s each, the first ${durationMs / 2000} s for learning\n`,
);
const HEADER = ['limit', 'goodput', 'refused', 'failed', 'refusals passed on', 'bodies', 'altered', 'learned'];
console.log(formatTable(HEADER, rows));
await agent.destroy();
process.exitCode = altered === 0 ? 0 : 1;

async function play(limit: HttpLimit, upstream: LimitedUpstream, tokenUrl: string): Promise<string[]> {
  const measuredMs = Math.floor(durationMs / 2 / limit.periodMs) * limit.periodMs;
  if (measuredMs === 0) throw new Error(`${limit.name} needs --seconds of at least ${(2 * limit.periodMs) / 1000}`);
  const env = { ...baseSettings(upstream.url, tokenUrl, newCredential()), SIDECAR_RATE: 'auto' };
  await using sidecar = await startSidecar({ name: `governor-http-${limit.name}`, env });
  await waitUntilReady(sidecar);
  // Windows by the clock are then measured whole.
  if (limit.periodStart === 'clock') await sleep(limit.periodMs - (performance.now() % limit.periodMs));
  const until = performance.now() + durationMs;
  const from = until - measuredMs;
  const whenLearned = new Promise<Attempts>((resolve, reject) => {
    setTimeout(() => void readAttempts(sidecar).then(resolve, reject), from - performance.now());
  });
  const load = await offerCalls({
    dispatcher: agent,
    url: `${sidecar.proxyUrl}/policies`,
    perSecond: LOAD * limit.perSecond,
    until,
    random: seeded(Number(values.seed)),
  });
  const [before, after, learned] = await Promise.all([whenLearned, readAttempts(sidecar), readLearned(sidecar)]);
  const faults = [...upstream.stats.altered, ...load.altered];
  for (const fault of faults.slice(0, 20)) console.error(fault);
  altered += faults.length;
  if (load.leftOut > 0) console.error(`${limit.name}: ${load.leftOut} calls were left out, too many waited`);
  return [
    limit.title,
    formatGoodput(measureGoodput(limit, upstream.acceptedAt, from, until)),
    formatShare((after.refused - before.refused) / (after.all - before.all)),
    ...describeFailures(load, from, until),
    `${upstream.stats.wholeBodies}`,
    `${faults.length}`,
    learned,
  ];
}

/** Accepted calls ÷ what the sustained rate admits in the same time. */
function measureGoodput(limit: HttpLimit, acceptedAt: readonly number[], from: number, until: number): number {
  let [start, end] = [from, until];
  if (limit.periodStart === 'first-call') {
    const openings = findOpenings(acceptedAt, limit.periodMs).filter((at) => at >= from && at < until);
    [start, end] = [openings[0] ?? from, openings.at(-1) ?? until];
  }
  const accepted = acceptedAt.filter((at) => at >= start && at < end).length;
  return (accepted * 1000) / (limit.perSecond * (end - start));
}

/** Calls that opened a window. */
function findOpenings(acceptedAt: readonly number[], windowMs: number): number[] {
  const openings: number[] = [];
  for (const at of acceptedAt) if (at >= (openings.at(-1) ?? -Infinity) + windowMs) openings.push(at);
  return openings;
}

/** The share of calls that were not served, and the number that got the upstream's refusal in the whole run. */
function describeFailures({ calls }: Load, from: number, until: number): string[] {
  const due = calls.filter(({ madeAt }) => madeAt >= from && madeAt < until - LONGEST_WAIT_MS);
  const served = due.filter(({ outcome, endedAt }) => outcome === 'served' && endedAt < until);
  const passedOn = calls.filter(({ outcome, endedAt }) => outcome === '429' && endedAt < until);
  return [due.length === 0 ? '–' : formatShare(1 - served.length / due.length), `${passedOn.length}`];
}

async function readAttempts(sidecar: RunningSidecar): Promise<Attempts> {
  const samples = readSamples(await (await fetch(`${sidecar.adminUrl}/metrics`)).text());
  let [all, refused] = [0, 0];
  for (const [name, value] of samples) {
    if (!name.startsWith('bearer_sidecar_upstream_attempts_total{')) continue;
    all += value;
    if (name.includes('outcome="rate_limited"')) refused += value;
  }
  return { all, refused };
}

async function readLearned(sidecar: RunningSidecar): Promise<string> {
  const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as {
    throttle: { learned?: { kind: string; limit: string | null } };
  };
  const { learned } = status.throttle;
  return learned === undefined ? 'nothing' : `${learned.kind} ${learned.limit ?? ''}`;
}
