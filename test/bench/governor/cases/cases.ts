/** The table of cases. Durations are multiples of ten minutes, so that halves of a run consist of whole spans of five. */
import type { LimiterRule } from '../limiters.ts';
import { allOf, bucket, counter, log, withPenalty } from '../products/notation.ts';
import {
  type CreateServer,
  limitedBy,
  nodesThatState,
  oneEach,
  retryAfterAlways,
  retryAfterTruth,
  type ServiceTime,
  statesQuota,
  unlimited,
  withNoise,
} from './servers.ts';

/** Calls that arrive by chance at a constant rate. */
export interface OpenLoad {
  readonly perSecond: number;
}

/** Workers that send one call after another until that many are served. */
export interface Batch {
  readonly workers: number;
  readonly calls: number;
  readonly thinkMs: number;
}

export interface Restart {
  readonly atMs: number;
  /** The new process begins with what the old one had learned. */
  readonly keepsState: boolean;
}

export interface Case {
  readonly name: string;
  readonly group: string;
  readonly durationMs: number;
  readonly load: OpenLoad | Batch;
  /** What the server admits at most. Default: everything. */
  readonly limit?: LimiterRule;
  readonly server: CreateServer;
  /** From the arrival of a call. Default: 60 s. */
  readonly deadlineMs?: number;
  /** The longest wait in the sidecar's queue. Default: 30 s. */
  readonly queueTimeoutMs?: number;
  readonly restart?: Restart;
}

type NamedCase = Omit<Case, 'group'>;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const SHARES = [0.01, 0.03, 0.1, 0.25, 0.5];
const LOG = log(100, 10);
const BUCKET = bucket(10, 20);

const NOISE: readonly NamedCase[] = [
  ...SHARES.map((share) => ({
    name: `${100 * share} %, no limit`,
    durationMs: 40 * MINUTE,
    load: { perSecond: 10 },
    server: withNoise({ share }, unlimited),
  })),
  ...['1', '30'].map((retryAfter) => ({
    name: `10 % with Retry-After ${retryAfter}, no limit`,
    durationMs: 40 * MINUTE,
    load: { perSecond: 10 },
    server: withNoise({ share: 0.1, retryAfter }, unlimited),
  })),
  ...SHARES.map((share) => ({
    name: `${100 * share} %, 100 per 10 s, load 15/s`,
    durationMs: 40 * MINUTE,
    load: { perSecond: 15 },
    limit: LOG,
    server: withNoise({ share }, limitedBy(LOG)),
  })),
  ...SHARES.map((share) => ({
    name: `${100 * share} %, 10/s b20, load 8/s`,
    durationMs: 40 * MINUTE,
    load: { perSecond: 8 },
    limit: BUCKET,
    server: withNoise({ share }, limitedBy(BUCKET)),
  })),
  {
    name: '10 % from minute 30 to 80, 100 per 10 s',
    durationMs: 2 * HOUR,
    load: { perSecond: 15 },
    limit: LOG,
    server: withNoise({ share: 0.1, fromMs: 30 * MINUTE, untilMs: 80 * MINUTE }, limitedBy(LOG)),
  },
  noiseAndLoweredLimit(),
];

const HOURS: readonly NamedCase[] = [
  changing('60 per min, 240 from hour 4, load 2/s', 6 * HOUR, 2, clock(60, 60), [[4 * HOUR, clock(240, 60)]]),
  changing('60 per min, 240 from hour 1, load 3/s', 3 * HOUR, 3, clock(60, 60), [[HOUR, clock(240, 60)]]),
  changing('60 and 240 per min by turns of 2 h, load 3/s', 8 * HOUR, 3, clock(60, 60), [
    [2 * HOUR, clock(240, 60)],
    [4 * HOUR, clock(60, 60)],
    [6 * HOUR, clock(240, 60)],
  ]),
];

const CHANGES: readonly NamedCase[] = [
  changing('raised from 100 to 300 per 10 s', HOUR, 25, LOG, [[30 * MINUTE, log(300, 10)]]),
  changing('raised from 60 to 180 per min', 4 * HOUR, 2.7, clock(60, 60), [[2 * HOUR, clock(180, 60)]]),
  raisedHourly(),
  changing('lowered from 300 to 50 per 10 s', HOUR, 25, log(300, 10), [[30 * MINUTE, log(50, 10)]]),
  changing('lowered from 180 to 30 per min', 3 * HOUR, 2.7, clock(180, 60), [[HOUR, clock(30, 60)]]),
];

const FIELDS: readonly NamedCase[] = [
  {
    name: 'remaining is always 0',
    durationMs: HOUR,
    load: { perSecond: 15 },
    limit: LOG,
    server: limitedBy(
      LOG,
      statesQuota(100, () => 0),
    ),
  },
  {
    name: 'remaining never falls',
    durationMs: HOUR,
    load: { perSecond: 15 },
    limit: LOG,
    server: limitedBy(
      LOG,
      statesQuota(1000, () => 999),
    ),
  },
  {
    name: 'half of the limit',
    durationMs: HOUR,
    load: { perSecond: 15 },
    limit: clock(100, 10),
    server: limitedBy(
      clock(100, 10),
      statesQuota(50, (left) => Math.max(0, left - 50)),
    ),
  },
  {
    name: 'used as remaining',
    durationMs: HOUR,
    load: { perSecond: 15 },
    limit: clock(100, 10),
    server: limitedBy(
      clock(100, 10),
      statesQuota(100, (left) => 100 - left),
    ),
  },
  {
    name: 'those of one node of 4',
    durationMs: HOUR,
    load: { perSecond: 15 },
    limit: clock(100, 10),
    server: nodesThatState(
      4,
      clock(25, 10),
      statesQuota(25, (left) => left),
    ),
  },
];

const WAITS: readonly NamedCase[] = [
  limited('always 1 s, 100 per min', HOUR, 2.5, clock(100, 60), retryAfterAlways(1)),
  limited('always 1 s, 1000 per h', 6 * HOUR, 0.42, clock(1000, 3600), retryAfterAlways(1)),
  limited('always 60 s, 100 per 10 s', HOUR, 15, LOG, retryAfterAlways(60)),
  limited('always 3600 s, 100 per 10 s', 2 * HOUR, 15, LOG, retryAfterAlways(3600)),
  limited('half of the truth, 100 per min', HOUR, 2.5, clock(100, 60), retryAfterTruth(0.5)),
];

const DELAYS: readonly NamedCase[] = [
  delayed('10/s, load 15/s', 20 * MINUTE, 10, 15),
  delayed('1/s, load 1.5/s', HOUR, 1, 1.5),
  delayed('1/s, load 3/s', HOUR, 1, 3),
];

const AIRTABLE = withPenalty(clock(5, 1), 30);
const GITHUB = withPenalty(clock(80, 60), 60);

const PENALTIES: readonly NamedCase[] = [
  limited('Airtable 5/s, 30 s, load 7.5/s', HOUR, 7.5, AIRTABLE),
  limited('Airtable 5/s, 30 s, load 4/s', 2 * HOUR, 4, AIRTABLE),
  limited('Airtable with Retry-After 30, load 7.5/s', HOUR, 7.5, AIRTABLE, retryAfterAlways(30)),
  limited('GitHub 80 per min, 60 s', 6 * HOUR, 2, GITHUB),
  limited('GitHub with Retry-After 60', 3 * HOUR, 2, GITHUB, retryAfterAlways(60)),
  limited('Cloudflare 50 per min, 60 s', 6 * HOUR, 1.25, withPenalty(counter(50, 60), 60)),
  limited('Cloudflare 100 per 10 s, 10 s', HOUR, 15, withPenalty(counter(100, 10), 10)),
];

const NIGHT = allOf(clock(100, 60), clock(5000, 3600));
const NIGHTLY: Omit<NamedCase, 'name' | 'server'> = {
  durationMs: 7 * HOUR,
  load: { workers: 10, calls: 20_000, thinkMs: 5 },
  limit: NIGHT,
};

const BATCHES: readonly NamedCase[] = [
  { ...NIGHTLY, name: '20 000 calls, 100 per min and 5000 per h', server: limitedBy(NIGHT) },
  { ...NIGHTLY, name: 'the same with Retry-After', server: limitedBy(NIGHT, retryAfterTruth()) },
];

const RESTARTS: readonly NamedCase[] = [true, false].flatMap((keepsState) => [
  restarted('1000 per h', limited('', 3 * HOUR, 0.4, clock(1000, 3600, 0)), 50 * MINUTE, keepsState),
  restarted('1000 per h', limited('', 3 * HOUR, 0.4, clock(1000, 3600, 0)), 95 * MINUTE, keepsState),
  restarted('100 per 10 s', limited('', 20 * MINUTE, 15, LOG), 10 * MINUTE, keepsState),
]);

const SLOW: readonly NamedCase[] = [
  ...[5, 20, 60].map((seconds) => ({
    ...slow('20/s of 1 to 3 s, load 60/s', 10 * MINUTE, 60, log(20, 1), [1000, 3000]),
    name: `20/s of 1 to 3 s, load 60/s, deadline ${seconds} s`,
    deadlineMs: seconds * SECOND,
  })),
  slow('200 per 10 s of 1 to 3 s, load 60/s', 10 * MINUTE, 60, log(200, 10), [1000, 3000]),
  slow('5/s b10 of 5 to 9 s, load 8/s', 20 * MINUTE, 8, bucket(5, 10), [5000, 9000]),
];

/** By group, in the order of the report. */
export const CASES: readonly Case[] = [
  ...grouped('noise', NOISE),
  ...grouped('hours of the day', HOURS),
  ...grouped('changed limit', CHANGES),
  ...grouped('wrong quota fields', FIELDS),
  ...grouped('stated wait', WAITS),
  ...grouped('delay only', DELAYS),
  ...grouped('penalty', PENALTIES),
  ...grouped('nightly batch', BATCHES),
  ...grouped('restart', RESTARTS),
  ...grouped('slow upstream', SLOW),
];

/** @throws RangeError when there is none of that name */
export function findCase(name: string): Case {
  const found = CASES.find((each) => each.name === name);
  if (found === undefined) throw new RangeError(`there is no case ${name}`);
  return found;
}

function grouped(group: string, cases: readonly NamedCase[]): Case[] {
  return cases.map((each) => ({ ...each, group, name: `${group}: ${each.name}` }));
}

/** Windows by the server's clock, which is ahead of ours by that part of one. */
function clock(calls: number, seconds: number, ahead = 0.37): LimiterRule {
  return {
    kind: 'fixed-window',
    calls,
    windowMs: seconds * SECOND,
    phaseMs: Math.round(seconds * SECOND * ahead),
  };
}

function limited(
  name: string,
  durationMs: number,
  perSecond: number,
  limit: LimiterRule,
  writeFields?: Parameters<typeof limitedBy>[1],
): NamedCase {
  return { name, durationMs, load: { perSecond }, limit, server: limitedBy(limit, writeFields) };
}

function changing(
  name: string,
  durationMs: number,
  perSecond: number,
  first: LimiterRule,
  later: readonly (readonly [number, LimiterRule])[],
): NamedCase {
  return limited(name, durationMs, perSecond, steps(first, later));
}

function steps(first: LimiterRule, later: readonly (readonly [number, LimiterRule])[]): LimiterRule {
  return {
    kind: 'steps',
    steps: [{ fromMs: 0, limiter: first }, ...later.map(([fromMs, limiter]) => ({ fromMs, limiter }))],
  };
}

function noiseAndLoweredLimit(): NamedCase {
  const limit = steps(LOG, [[HOUR, log(50, 10)]]);
  return {
    name: '10 %, limit lowered from 100 to 50 per 10 s',
    durationMs: 2 * HOUR,
    load: { perSecond: 15 },
    limit,
    server: withNoise({ share: 0.1 }, limitedBy(limit)),
  };
}

/** Calls wait for up to ten minutes, since one goes in six. */
function raisedHourly(): NamedCase {
  const limit = steps(log(10, 3600), [[12 * HOUR, log(100, 3600)]]);
  return {
    ...limited('raised from 10 to 100 per h', 72 * HOUR, 0.02, limit),
    deadlineMs: 15 * MINUTE,
    queueTimeoutMs: 10 * MINUTE,
  };
}

function delayed(name: string, durationMs: number, servedPerSecond: number, perSecond: number): NamedCase {
  return {
    name,
    durationMs,
    load: { perSecond },
    limit: bucket(servedPerSecond, 1),
    server: oneEach(SECOND / servedPerSecond),
  };
}

function restarted(title: string, played: NamedCase, atMs: number, keepsState: boolean): NamedCase {
  return {
    ...played,
    name: `${title}, after ${atMs / MINUTE} min ${keepsState ? 'with' : 'without'} state`,
    restart: { atMs, keepsState },
  };
}

function slow(
  name: string,
  durationMs: number,
  perSecond: number,
  limit: LimiterRule,
  service: ServiceTime,
): NamedCase {
  return { name, durationMs, load: { perSecond }, limit, server: limitedBy(limit, undefined, service) };
}
