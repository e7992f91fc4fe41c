/**
 * What the leader of a fleet believes of the quota that all share (pure): one learned pace, fed with the calls of every replica in
 * the order in which they were made, as if one process had made them. Reports come late, so that it lives a little in the past; a
 * refusal brings it up to the present at once. It grants nothing: what it believes is published.
 */
import type { Grant } from '../pacing/grant.ts';
import type { ReportedCalls } from './fleet-report.ts';
import { LearnedPace, type LearnedPaceOptions } from '../adaptive/learned-pace.ts';
import type { LearnedLimit } from '../throttle.ts';

/** What the fleet is to go by. */
export interface FleetPaceSetting {
  /** Permits per second; Infinity while no limit is known. */
  readonly rate: number;
  readonly burst: number;
}

/** Of a window's limit: permits that may be saved up. A full window is seen too late to be waited for. */
const WINDOW_BURST_SHARE = 0.02;
/** Calls that took longer are told of later than they happened. */
const LONGEST_LAG_MS = 1_000;
const MOST_WAITING = 65_536;

/** One learned pace for all. */
export class FleetMind {
  readonly #pace: LearnedPace;
  #waiting: ReportedCalls[] = [];
  #lastAt = -Infinity;
  #cutAt = -Infinity;
  #tookMs = 0;
  #serial = 0;
  /** Of the limit as it is held, also while more is tried. */
  #burst = 1;

  constructor(options: LearnedPaceOptions) {
    // How many calls of other replicas are under way is not known to anyone.
    const kinds = options.learning.kinds.filter((kind) => kind !== 'concurrency');
    this.#pace = new LearnedPace({ ...options, learning: { ...options.learning, kinds } });
  }

  /** Calls of one replica, in whatever order. */
  hear(calls: readonly ReportedCalls[]): void {
    for (const call of calls) {
      this.#waiting.push(call);
      this.#tookMs = Math.max(call.tookMs, this.#tookMs * 0.95);
    }
    if (this.#waiting.length > MOST_WAITING) this.#waiting.splice(0, this.#waiting.length - MOST_WAITING);
  }

  /** @param until all calls made before this have been heard of, but for those that are not answered yet */
  digest(until: number): void {
    this.#waiting.sort((one, other) => one.at - other.at);
    const settledAt = until - Math.min(LONGEST_LAG_MS, 2 * this.#tookMs);
    const isUrgent = this.#waiting.some(({ at, isRefused }) => isRefused && at <= until);
    const end = this.#waiting.findIndex(({ at }) => at > (isUrgent ? until : settledAt));
    for (const calls of this.#waiting.splice(0, end < 0 ? this.#waiting.length : end)) this.#learn(calls);
    if (this.extraRate === 0) this.#burst = Math.max(1, this.#pace.burst);
  }

  /** What to publish. */
  get setting(): FleetPaceSetting {
    const rate = this.#pace.settledRate;
    const { kind, limit, windowMs } = this.#pace.learned(asItIs) ?? { kind: 'free' };
    if (limit === undefined || windowMs === undefined || !kind.endsWith('window')) return { rate, burst: this.#burst };
    const burst = Math.max(1, Math.floor(limit * WINDOW_BURST_SHARE));
    // All saved up and a window's worth together stay below the limit.
    const safe = Math.max(limit - burst, limit / 2) * (1000 / windowMs);
    return { rate: Math.min(rate, safe), burst };
  }

  /** Permits per second beyond what is published, while a trial for more is under way. */
  get extraRate(): number {
    const { rate, settledRate } = this.#pace;
    return Number.isFinite(rate) ? Math.max(0, rate - settledRate) : 0;
  }

  /** When the limit lets the next call through; past or -Infinity: now. */
  openAt(now: number): number {
    return this.#pace.openAt(now, true);
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#pace.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#pace.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#pace.restore(now, snapshot, ageMs);
  }

  #learn(calls: ReportedCalls): void {
    for (let count = 0; count < calls.count; count++) this.#learnOne(calls);
  }

  #learnOne({ at: madeAt, tookMs, isRefused, isWaitedFor, isProbe }: ReportedCalls): void {
    // One that comes too late for its place counts as made now.
    const at = Math.max(madeAt, this.#lastAt);
    this.#lastAt = at;
    const { rate } = this.#pace;
    const beyond = this.#pace.granted(at, isWaitedFor);
    const common = { at, serial: ++this.#serial, epoch: 0, rate, waitedFor: isWaitedFor, beyond, abreast: 0 };
    const grant: Grant = { ...common, probe: isProbe };
    const answeredAt = at + tookMs;
    if (!isRefused) this.#pace.accepted(answeredAt, grant, madeAt > this.#cutAt);
    else if (madeAt <= this.#cutAt && !isProbe) this.#pace.refusedLate(answeredAt, grant);
    else {
      this.#cutAt = answeredAt;
      this.#pace.refused(answeredAt, grant);
    }
  }
}

function asItIs(at: number): number {
  return at;
}
