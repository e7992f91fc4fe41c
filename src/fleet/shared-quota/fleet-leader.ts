/**
 * What the leader does for its fleet (pure): it learns from the calls of all replicas, publishes the limit, and ends pauses. It ends a
 * pause for the others once its own probe was accepted, or at once when it has no call that could be a probe. With a configured rate
 * it learns nothing and ends pauses all the same.
 */
import { decodeCalls } from './call-report.ts';
import type { ClockOffset } from './clock-offset.ts';
import { FleetLimitLearner, type FleetLearnerOptions, type FleetLimit } from './fleet-limit-learner.ts';
import type { PublishedLimit, QuotaReply } from './quota-store.ts';
import { parseLearnedLimit } from '../../throttle/adaptive/limit-snapshot.ts';
import type { QuotaLease } from './quota-lease.ts';
import { tryRead } from '../../platform/try-read.ts';
import type { FleetHost } from '../../throttle/fleet-membership.ts';
import type { LearnedLimit } from '../../throttle/throttle.ts';

/** Smaller changes of the rate are not published. */
const MIN_RATE_CHANGE = 0.005;

/** At first the leader alone probes: for this time, and for this many calls. */
const MIN_LEADER_LIMIT_PROBE_MS = 2_000;
const LEADER_LIMIT_PROBE_CALLS = 8;

/** Calls of other replicas may seem to be this far ahead. */
const MAX_CLOCK_ERROR_MS = 1_000;

/** What is passed on from leader to leader, as JSON. A snapshot that was read is not checked yet. */
interface Model {
  readonly snapshot?: unknown;
  /** `since` is an instant of the store; the rate in force is not read from here. */
  readonly learned?: Omit<LearnedLimit, 'rate'> | undefined;
  /** The model knows the calls that ended before this instant of the store. */
  readonly until?: number | undefined;
  /** The reports from this position on give the same model; undefined when it knows more than they do. */
  readonly learnedFrom?: number | undefined;
}

/** The leader's own throttle. */
type LeaderHost = Pick<FleetHost, 'isPaused' | 'isIdle'>;

export class FleetLeader {
  readonly #clockOffset: ClockOffset;
  readonly #configured: FleetLimit | undefined;
  readonly #learner: FleetLimitLearner | undefined;
  readonly #unlearnedLimit: FleetLimit;
  readonly #learnedFrom: number | undefined;
  #settledEpoch = -1;
  /** Position of the last report that the leader has read. */
  reportsReadUpTo = 0;
  #limitProbeSince: number | undefined;

  /**
   * @param configured undefined where the limit is learned
   * @param learnedFrom position of the first report that the leader gets; undefined where it begins with a snapshot
   */
  constructor(
    clockOffset: ClockOffset,
    configured: FleetLimit | undefined,
    options: FleetLearnerOptions,
    learnedFrom: number | undefined,
  ) {
    this.#clockOffset = clockOffset;
    this.#learnedFrom = learnedFrom;
    this.#configured = configured;
    this.#learner = configured === undefined ? new FleetLimitLearner(options) : undefined;
    this.#unlearnedLimit = { rate: options.maxRate ?? Infinity, burst: 1 };
  }

  /** Begins with a snapshot, which knows the calls that ended before `knownUntil`. */
  restore(now: number, snapshot: unknown, knownUntil: number): void {
    this.#learner?.restore(now, snapshot, knownUntil);
  }

  /**
   * Learns from the reports that a reply brings.
   * @param isSettled all replicas have reported for the pause
   * @returns permits per second above the published limit, for its own calls: probes cost least while one replica makes them
   */
  applyReply(now: number, reply: QuotaReply, isSettled: boolean): number {
    const toLocalTime = (at: number): number => this.#clockOffset.toLocalTime(at);
    const { epoch, replicaCount, reports, reportsLostAt, oldestReportAt } = reply;
    this.reportsReadUpTo = reply.reportsReadUpTo;
    this.#settledEpoch = isSettled || this.#configured !== undefined ? epoch : -1;
    this.#learner?.recordLoss(toLocalTime(reportsLostAt));
    this.#learner?.addCalls(decodeCalls(reports, toLocalTime, now + MAX_CLOCK_ERROR_MS));
    const reportedUntil = isSettled || replicaCount === 1 ? now : Math.min(now, toLocalTime(oldestReportAt));
    this.#learner?.ingest(reportedUntil, replicaCount, isSettled);
    return reply.isFleetPaused ? 0 : this.#extraRate(now);
  }

  /** When the probe may go; Infinity while reports are missing. */
  nextAt(now: number, epoch: number): number {
    if (epoch !== this.#settledEpoch) return Infinity;
    return (this.#isPublishing ? this.#learner?.policy.nextAt(now, true) : undefined) ?? -Infinity;
  }

  /**
   * @param limitInForce the limit in the store; undefined without one
   * @returns undefined when there is nothing new
   */
  nextPublication(
    now: number,
    lease: QuotaLease,
    host: LeaderHost,
    limitInForce: (FleetLimit & { readonly isTentative: boolean }) | undefined,
  ): PublishedLimit | undefined {
    const { epoch } = lease;
    const limit = this.#configured ?? this.#limitAt(now);
    if (limit === undefined) return undefined;
    const isTentative = this.#isPublishing && this.#learner?.isTentative === true;
    const endsPause = this.canEndPause(now, lease, host);
    const isSame = !hasChanged(limit, limitInForce) && isTentative === limitInForce?.isTentative;
    if (!endsPause && isSame) return undefined;
    return {
      ...limit,
      isTentative,
      openAt: this.#clockOffset.toStoreTime(endsPause ? Math.max(now, this.nextAt(now, epoch)) : now),
      epoch: endsPause ? epoch : -1,
      model: this.#isPublishing ? this.#serializeModel(now) : '',
    };
  }

  canEndPause(now: number, { isFleetPaused, epoch, pausedUntil }: QuotaLease, host: LeaderHost): boolean {
    if (!isFleetPaused || epoch !== this.#settledEpoch || now < pausedUntil) return false;
    return !host.isPaused || host.isIdle;
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#isPublishing ? this.#learner?.policy.learned(wallAt) : undefined;
  }

  snapshot(now: number): object | undefined {
    return this.#isPublishing ? this.#learner?.policy.snapshot(now) : undefined;
  }

  /** A limit holds for all replicas. Until then each of them learns alone. */
  get #isPublishing(): boolean {
    return this.#learner?.isShared ?? true;
  }

  #extraRate(now: number): number {
    const rate = this.#isPublishing ? (this.#learner?.extraRate ?? 0) : 0;
    return rate > 0 && !this.#isLimitProbedByAll(now, rate) ? rate : 0;
  }

  #limitAt(now: number): FleetLimit | undefined {
    if (this.#learner === undefined) return undefined;
    if (!this.#isPublishing) return this.#unlearnedLimit;
    const { limit, extraRate } = this.#learner;
    if (extraRate === 0) this.#limitProbeSince = undefined;
    else this.#limitProbeSince ??= now;
    return this.#isLimitProbedByAll(now, extraRate) ? { ...limit, rate: limit.rate + extraRate } : limit;
  }

  /** The leader's own calls may be too few to show that the limit was raised. */
  #isLimitProbedByAll(now: number, extraRate: number): boolean {
    if (this.#limitProbeSince === undefined || !(extraRate > 0)) return false;
    return (
      now > this.#limitProbeSince + Math.max(MIN_LEADER_LIMIT_PROBE_MS, (LEADER_LIMIT_PROBE_CALLS * 1000) / extraRate)
    );
  }

  #serializeModel(now: number): string {
    if (this.#learner === undefined) return '';
    const model: Model = {
      snapshot: this.#learner.policy.snapshot(now),
      learned: this.#learner.policy.learned((at) => this.#clockOffset.toStoreTime(at)),
      until: this.#clockOffset.toStoreTime(this.#learner.learnedUntil),
      learnedFrom: this.#learnedFrom,
    };
    return JSON.stringify(model);
  }
}

/** Empty for a malformed text. */
export function parseModel(text: string): Model {
  if (text === '') return {};
  const parsed: unknown = Object(tryRead(() => JSON.parse(text) as unknown));
  const { snapshot, learned, until, learnedFrom } = parsed as Readonly<Record<string, unknown>>;
  return {
    snapshot,
    learned: parseLearnedLimit(learned),
    until: typeof until === 'number' ? until : undefined,
    learnedFrom: typeof learnedFrom === 'number' ? learnedFrom : undefined,
  };
}

function hasChanged({ rate, burst }: FleetLimit, published: FleetLimit | undefined): boolean {
  if (published?.burst !== burst) return true;
  if (!Number.isFinite(rate) || !Number.isFinite(published.rate)) return rate !== published.rate;
  return Math.abs(rate - published.rate) > published.rate * MIN_RATE_CHANGE;
}
