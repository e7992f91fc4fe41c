/** The offered load: instants of arrival, relative to what the limiter admits at the time. Deterministic for a random source. */
import type { Random } from '../../../src/platform/clock.ts';
import type { LimiterModel } from './limiter-model.ts';

/** Poisson arrivals in phases: for `onMs` at `on` times the limit, for `offMs` at `off` times it. */
export interface OnOffLoad {
  readonly onMs: number;
  readonly on: number;
  readonly offMs: number;
  readonly off: number;
}

/** A number of calls at one instant, repeated. */
export interface AtOnceLoad {
  /** A number, or as many as the limiter admits in `secondsWorth`. */
  readonly calls?: number;
  readonly secondsWorth?: number;
  readonly everyMs: number;
}

/** Poisson arrivals per second, independent of the limit. */
export interface AbsoluteLoad {
  readonly perSecond: number;
}

/** Clients that each make the next call some time after the end of their last one, on average `thinkMs`. */
export interface ClosedLoad {
  readonly clients: number;
  readonly thinkMs: number;
}

/** A number is a multiple of the limit (Poisson arrivals). */
export type LoadSpec = number | 'on-off' | 'at-once' | OnOffLoad | AtOnceLoad | AbsoluteLoad | ClosedLoad;

export function isClosed(load: LoadSpec): load is ClosedLoad {
  return typeof load === 'object' && 'clients' in load;
}

/** How long a client of a closed loop waits before its next call: exponentially distributed. */
export function thinkTimeMs({ thinkMs }: ClosedLoad, random: Random): number {
  return -Math.log(1 - random()) * thinkMs;
}

const ON_OFF: OnOffLoad = { onMs: 10_000, on: 3, offMs: 20_000, off: 0.02 };
const AT_ONCE: AtOnceLoad = { secondsWorth: 20, everyMs: 60_000 };
/** The clients of a closed loop start within this time. */
const FIRST_CALLS_MS = 1000;
/** Below the longest queue, so that the queue's length rejects no call. */
const MOST_AT_ONCE = 900;

/** The name of a load in tables. */
export function nameLoad(load: LoadSpec): string {
  if (typeof load === 'number') return `${load}×`;
  if (typeof load === 'string') return load;
  if ('perSecond' in load) return `${load.perSecond}/s`;
  if ('clients' in load) return `${load.clients} clients`;
  if ('everyMs' in load) return `${load.calls ?? `${load.secondsWorth ?? 0} s worth`} each ${load.everyMs / 1000} s`;
  return `${load.on}× ${load.onMs / 1000} s, ${load.off}× ${load.offMs / 1000} s`;
}

/** @returns instants in order, from 0 up to `durationMs`; of a closed loop the first calls of its clients */
export function createArrivals(load: LoadSpec, model: LimiterModel, durationMs: number, random: Random): number[] {
  if (typeof load === 'number') return poisson((at) => load * model.rateAt(at), durationMs, random);
  if (load === 'on-off') return createArrivals(ON_OFF, model, durationMs, random);
  if (load === 'at-once') return createArrivals(AT_ONCE, model, durationMs, random);
  if ('perSecond' in load) return poisson(() => load.perSecond / 1000, durationMs, random);
  if ('everyMs' in load) return atOnce(load, model, durationMs);
  if ('clients' in load) return Array.from({ length: load.clients }, () => random() * FIRST_CALLS_MS).sort(ascending);
  const { onMs, on, offMs, off } = load;
  const factorAt = (at: number): number => (at % (onMs + offMs) < onMs ? on : off);
  return poisson((at) => factorAt(at) * model.rateAt(at), durationMs, random);
}

function atOnce({ calls, secondsWorth = 0, everyMs }: AtOnceLoad, model: LimiterModel, durationMs: number): number[] {
  const arrivals: number[] = [];
  for (let at = 0; at < durationMs; at += everyMs) {
    const count = calls ?? Math.max(2, Math.round(secondsWorth * 1000 * model.rateAt(at)));
    for (let call = 0; call < Math.min(count, MOST_AT_ONCE); call++) arrivals.push(at);
  }
  return arrivals;
}

function ascending(one: number, other: number): number {
  return one - other;
}

/** The rate is constant within this time. */
const SLICE_MS = 100;

/** @param rateAt calls per millisecond */
function poisson(rateAt: (at: number) => number, durationMs: number, random: Random): number[] {
  const arrivals: number[] = [];
  // One exponential unit is consumed at the current rate: exact for a rate that changes at slices.
  let left = -Math.log(1 - random());
  for (let sliceAt = 0; sliceAt < durationMs; sliceAt += SLICE_MS) {
    const rate = rateAt(sliceAt);
    let at = sliceAt;
    const end = Math.min(sliceAt + SLICE_MS, durationMs);
    while (left <= (end - at) * rate) {
      at += left / rate;
      arrivals.push(at);
      left = -Math.log(1 - random());
    }
    left -= (end - at) * rate;
  }
  return arrivals;
}
