/**
 * How long the upstream takes to respond, from the permit to the response head, by endpoint (pure). Endpoints apart, so that quick calls are not
 * rejected for slow ones. Bounded in number, and each endpoint forgets by itself.
 */
import type { AcceptedCall } from '../pacing/rate-policy.ts';

/** Endpoints with times of their own. */
const MAX_ENDPOINTS = 64;
export const OTHERS = 'others';
/** Fewer calls say nothing about the next one. */
const MIN_CALLS = 20;
const ALMOST_ALL = 0.995;
/** The newest accepted calls of an endpoint that are kept, and those by whose durations the spread is judged. */
const MAX_CALLS = 1024;
const SPREAD_CALLS = 20;
const MIN_SPREAD_CALLS = 5;

export class ResponseTimes {
  readonly #byEndpoint = new Map<string, AgedTimes>();
  /** The endpoints that found no place share these. */
  readonly #others = new AgedTimes(undefined);
  #keepsCalls = false;

  /** From now on the newest calls of each endpoint can be asked for. */
  keepCalls(): void {
    this.#keepsCalls = true;
    for (const times of this.#byEndpoint.values()) times.calls ??= [];
  }

  /**
   * Records a call that has ended.
   * @param endpoint as `describeEndpoint` names it
   * @param hasResponded false: the sidecar ended the call before its response, which would have taken longer than `ms`
   */
  record(now: number, endpoint: string, ms: number, hasResponded: boolean): void {
    const times = this.#byEndpoint.get(endpoint) ?? this.#addEndpoint(now, endpoint);
    times.add(now, ms, hasResponded);
  }

  /** The endpoint's own, or those of all that found no place. */
  timesOf(endpoint: string): AgedTimes {
    return this.#byEndpoint.get(endpoint) ?? this.#others;
  }

  /** Responses of each endpoint that has a place, since it has one, and of all others together as `OTHERS`. */
  *listAccepted(): Generator<readonly [endpoint: string, total: number]> {
    for (const [endpoint, { acceptedCount }] of this.#byEndpoint) yield [endpoint, acceptedCount];
    yield [OTHERS, this.#others.acceptedCount];
  }

  /** Calls per second of an endpoint, from its first to its last response of late. */
  rateOf(endpoint: string): number {
    return this.#byEndpoint.get(endpoint)?.rate ?? 0;
  }

  /** Another endpoint than these had a response since. Needs `keepCalls`, as all that follow. */
  hasOther(endpoints: ReadonlySet<string>, since: number): boolean {
    for (const [endpoint, { calls }] of this.#byEndpoint)
      if (!endpoints.has(endpoint) && calls?.some(({ at }) => at >= since) === true) return true;
    return false;
  }

  /** Calls of all endpoints per millisecond, of the last second or of the last five, where these were more. */
  callsPerMs(now: number): number {
    const count = (ms: number): number => {
      let sum = 0;
      for (const { calls = [] } of this.#byEndpoint.values()) sum += calls.filter(({ at }) => at >= now - ms).length;
      return sum / ms;
    };
    return Math.max(count(1000), count(5000));
  }

  /** In order of their grants. */
  callsOf(endpoint: string): readonly AcceptedCall[] {
    return inOrder(this.#byEndpoint.get(endpoint)?.calls ?? []);
  }

  /** By how much the newest durations of an endpoint differ at most, without the longest and the shortest; 0 while there are too few. */
  spreadMs(): number {
    let spreadMs = 0;
    for (const { calls = [] } of this.#byEndpoint.values()) {
      const newest = inOrder(calls).slice(-SPREAD_CALLS);
      const durations = newest.map(({ ms }) => ms).sort((one, other) => one - other);
      if (newest.length >= MIN_SPREAD_CALLS)
        spreadMs = Math.max(spreadMs, (durations.at(-2) ?? 0) - (durations[1] ?? 0));
    }
    return spreadMs;
  }

  /** Only an endpoint without calls of late gives its place to another. */
  #addEndpoint(now: number, endpoint: string): AgedTimes {
    if (this.#byEndpoint.size >= MAX_ENDPOINTS) {
      const [first] = this.#byEndpoint;
      if (first === undefined) return this.#others;
      const [oldest, times] = first;
      this.#byEndpoint.delete(oldest);
      if (times.count(now) > 0) {
        this.#byEndpoint.set(oldest, times);
        return this.#others;
      }
    }
    const times = new AgedTimes(this.#keepsCalls ? [] : undefined);
    this.#byEndpoint.set(endpoint, times);
    return times;
  }
}

/** In order of their grants; they are kept in that of their responses. */
function inOrder(calls: readonly AcceptedCall[]): readonly AcceptedCall[] {
  return calls.toSorted((one, other) => one.at - other.at);
}

/** Bounds double every four buckets, from 1 ms to 4 minutes; the last bucket has the rest. */
const PER_DOUBLING = 4;
const BUCKETS = 18 * PER_DOUBLING + 1;
/** A generation ends after the longer time, or after the shorter one if it has enough durations. */
const MIN_GENERATION_MS = 15_000;
const MAX_GENERATION_MS = 300_000;
const ENOUGH = 100;

class Generation {
  readonly whole = new Uint32Array(BUCKETS);
  readonly cut = new Uint32Array(BUCKETS);
  readonly startedAt: number;
  lastAt = 0;
  count = 0;

  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }
}

const NO_CALLS = new Generation(0);

/**
 * A histogram of durations that forgets. Two generations: when the younger one has lasted long enough, it takes the place of the older.
 * Durations that were cut off count as longer than they lasted (Kaplan and Meier 1958): calls that were given up for being slow must not
 * make the others look quick.
 */
class AgedTimes {
  calls: AcceptedCall[] | undefined;
  acceptedCount = 0;
  #current: Generation | undefined;
  #former: Generation | undefined;
  /** Cached until the next change, because a queue reads them at each permit. */
  #shares: readonly number[] | undefined;

  /** @param calls gets the newest calls; undefined: they are not kept */
  constructor(calls: AcceptedCall[] | undefined) {
    this.calls = calls;
  }

  /** @param isWhole false for a duration that was cut off at `ms` */
  add(now: number, ms: number, isWhole: boolean): void {
    if (this.#current !== undefined && now - this.#current.startedAt >= MIN_GENERATION_MS) this.#age(now);
    const bucket = ms <= 1 ? 0 : Math.min(BUCKETS - 1, Math.ceil(PER_DOUBLING * Math.log2(ms)));
    const generation = (this.#current ??= new Generation(now));
    const counts = isWhole ? generation.whole : generation.cut;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    generation.count++;
    generation.lastAt = now;
    this.#shares = undefined;
    if (!isWhole) return;
    this.acceptedCount++;
    if (this.calls === undefined) return;
    this.calls.push({ at: now - ms, ms });
    if (this.calls.length > MAX_CALLS) this.calls.shift();
  }

  get rate(): number {
    const generation = this.#former ?? this.#current ?? NO_CALLS;
    return (generation.count * 1000) / Math.max(MIN_GENERATION_MS, generation.lastAt - generation.startedAt);
  }

  /** Durations of late, both kinds. */
  count(now: number): number {
    this.#age(now);
    return (this.#current?.count ?? 0) + (this.#former?.count ?? 0);
  }

  /** Milliseconds within which almost every call responds, at most 19 % too high; 0 while too little is known, Infinity when too few respond. */
  longestMs(now: number): number {
    if (this.count(now) < MIN_CALLS) return 0;
    this.#shares ??= this.#computeShares();
    const bucket = this.#shares.findIndex((share) => share >= ALMOST_ALL);
    return bucket === -1 ? Infinity : 2 ** (bucket / PER_DOUBLING);
  }

  /**
   * Share of the calls that respond within `ms`, rounded down; 1 while too little is known, or none was given as long.
   * @param ms Infinity: the share of those that respond at all, as far as is known
   */
  shareWithin(now: number, ms: number): number {
    if (this.count(now) < MIN_CALLS) return 1;
    const shares = (this.#shares ??= this.#computeShares());
    const bucket = ms === Infinity ? shares.length - 1 : Math.floor(PER_DOUBLING * Math.log2(Math.max(1, ms)));
    return shares[bucket] ?? 1;
  }

  /** The share of the durations that do not exceed the bound, for each bucket that durations have reached. */
  #computeShares(): readonly number[] {
    const current = this.#current ?? NO_CALLS;
    const former = this.#former ?? NO_CALLS;
    const shares: number[] = [];
    let atRisk = current.count + former.count;
    let longer = 1;
    for (let bucket = 0; bucket < BUCKETS - 1 && atRisk > 0; bucket++) {
      const ended = (current.whole[bucket] ?? 0) + (former.whole[bucket] ?? 0);
      longer *= 1 - ended / atRisk;
      shares.push(1 - longer);
      atRisk -= ended + (current.cut[bucket] ?? 0) + (former.cut[bucket] ?? 0);
    }
    return shares;
  }

  #age(now: number): void {
    const current = this.#current;
    if (current !== undefined && isOver(now - current.startedAt, current.count)) {
      this.#former = current;
      this.#current = undefined;
      this.#shares = undefined;
    }
    if (this.#former !== undefined && isForgotten(now - this.#former.startedAt)) {
      this.#former = undefined;
      this.#shares = undefined;
    }
  }
}

/** A clock that jumps back keeps no generation for ever. */
function isOver(ageMs: number, count: number): boolean {
  return ageMs < 0 || ageMs >= MAX_GENERATION_MS || (ageMs >= MIN_GENERATION_MS && count >= ENOUGH);
}

function isForgotten(ageMs: number): boolean {
  return ageMs < 0 || ageMs >= 2 * MAX_GENERATION_MS;
}
