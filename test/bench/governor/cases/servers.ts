/** How the server of a case responds to one call. All its random draws come from the source that it is created with. */
import type { Random } from '../../../../src/platform/clock.ts';
import { type Allowance, type LimiterModel, TOLERANCE_MS } from '../limiter-model.ts';
import { create, type LimiterRule } from '../limiters.ts';

export interface ServerResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** From the arrival of the call until the response leaves. */
  readonly serviceMs: number;
}

/** @param at when the call arrives, milliseconds since the start of the run; it never decreases */
export type Server = (at: number) => ServerResponse;

export type CreateServer = (random: Random) => Server;

/** What a response with header fields is written from. */
interface Stated {
  readonly at: number;
  readonly isAccepted: boolean;
  /** Until the next call would be accepted. */
  readonly waitMs: number;
  readonly allowance: Allowance;
}

type WriteFields = (stated: Stated) => Readonly<Record<string, string>>;

/** The shortest and the longest time of an accepted call at the server, milliseconds. */
export type ServiceTime = readonly [number, number];

const QUICK: ServiceTime = [30, 50];
const REFUSAL_MS = 1;
const NOISE_MS = 20;
const NO_FIELDS: Readonly<Record<string, string>> = {};

/** Refuses what is beyond the limit. */
export function limitedBy(
  rule: LimiterRule,
  writeFields: WriteFields = () => NO_FIELDS,
  service: ServiceTime = QUICK,
): CreateServer {
  return (random) => {
    const { model } = create({ limiter: rule });
    return (at) => decide(model, at, writeFields, drawMs(service, random));
  };
}

/** Accepts every call. */
export function unlimited(random: Random): Server {
  return () => ({ status: 200, headers: NO_FIELDS, serviceMs: drawMs(QUICK, random) });
}

/** Accepts every call, and serves one after another. */
export function oneEach(intervalMs: number): CreateServer {
  return () => {
    let freeAt = 0;
    return (at) => {
      freeAt = Math.max(freeAt, at) + intervalMs;
      return { status: 200, headers: NO_FIELDS, serviceMs: freeAt - at + NOISE_MS };
    };
  };
}

/** Nodes with a limit each behind a balancer that chooses at random; each states its own quota. */
export function nodesThatState(count: number, rule: LimiterRule, writeFields: WriteFields): CreateServer {
  return (random) => {
    const models = Array.from({ length: count }, () => create({ limiter: rule }).model);
    return (at) => {
      const model = models[Math.floor(random() * count)];
      if (model === undefined) throw new RangeError('there is no such node');
      return decide(model, at, writeFields, drawMs(QUICK, random));
    };
  };
}

export interface Noise {
  /** Of the calls that arrive, whether within the limit or not. */
  readonly share: number;
  readonly retryAfter?: string;
  /** Default: the whole run. */
  readonly fromMs?: number;
  readonly untilMs?: number;
}

/** Refuses a share of the calls for no reason. */
export function withNoise(
  { share, retryAfter, fromMs = 0, untilMs = Infinity }: Noise,
  inner: CreateServer,
): CreateServer {
  const headers = retryAfter === undefined ? NO_FIELDS : { 'retry-after': retryAfter };
  return (random) => {
    const server = inner(random);
    return (at) => {
      const isNoise = at >= fromMs && at < untilMs && random() < share;
      return isNoise ? { status: 429, headers, serviceMs: NOISE_MS } : server(at);
    };
  };
}

/** Refusals with a part of the true wait, in whole seconds. */
export function retryAfterTruth(part = 1): WriteFields {
  return ({ isAccepted, waitMs }) =>
    isAccepted ? NO_FIELDS : { 'retry-after': `${Math.ceil((part * waitMs) / 1000)}` };
}

/** Refusals with always the same wait. */
export function retryAfterAlways(seconds: number): WriteFields {
  return ({ isAccepted }) => (isAccepted ? NO_FIELDS : { 'retry-after': `${seconds}` });
}

/** Every response with a quota. @param remaining of what is truly left */
export function statesQuota(limit: number, remaining: (left: number) => number): WriteFields {
  return ({ at, allowance }) => ({
    'ratelimit-limit': `${limit}`,
    'ratelimit-remaining': `${remaining(allowance.remaining)}`,
    'ratelimit-reset': `${Math.ceil((allowance.resetAt - at) / 1000)}`,
  });
}

function decide(model: LimiterModel, at: number, writeFields: WriteFields, serviceMs: number): ServerResponse {
  const waitMs = model.nextAt(at, 0) - at;
  const isAccepted = waitMs <= TOLERANCE_MS;
  if (isAccepted) model.take(at);
  else model.refuse(at);
  const headers = writeFields({ at, isAccepted, waitMs, allowance: model.allowance(at) ?? NOTHING_LEFT });
  if (isAccepted) return { status: 200, headers, serviceMs };
  return { status: 429, headers, serviceMs: REFUSAL_MS };
}

const NOTHING_LEFT: Allowance = { remaining: 0, resetAt: 0 };

function drawMs([shortest, longest]: ServiceTime, random: Random): number {
  return shortest + random() * (longest - shortest);
}
