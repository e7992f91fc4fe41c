/**
 * What the replica that leads does for its fleet (pure): it takes in the calls of all, says what to go by, and ends pauses. A pause
 * is over for the others once its own probe has been accepted, or at once when it has no call that could be one. With a configured rate
 * there is nothing to learn, and pauses are ended all the same.
 */
import type { PublishedLimit } from './quota-store.ts';
import { FleetLimitLearner, type FleetLearnerOptions, type FleetLimit } from './fleet-limit-learner.ts';
import type { ReportedCalls } from './call-report.ts';
import type { LearnedLimit } from '../../throttle/throttle.ts';

/** Smaller changes of a rate are not worth telling all. */
const MIN_RATE_CHANGE = 0.005;

/** A trial is made by the leader alone for so long, and for so many calls. */
const MIN_LEADER_PROBE_MS = 2_000;
const LEADER_PROBE_CALLS = 8;

/** What a leader knows besides: the state of its fleet, and of its own queue. */
export interface LeaderInputs {
  readonly epoch: number;
  readonly isFleetPaused: boolean;
  readonly pausedUntil: number;
  /** What the board says holds; undefined when it says nothing. */
  readonly limitInForce: FleetLimit | undefined;
  /** Its own pause is not over. */
  readonly isPaused: boolean;
  /** It has no call that could be a probe. */
  readonly isIdle: boolean;
}

/** What is passed on from leader to leader, as JSON. */
interface Model {
  readonly snapshot?: object | undefined;
  readonly learned?: LearnedLimit | undefined;
}

export class FleetLeader {
  readonly #configured: FleetLimit | undefined;
  readonly #learner: FleetLimitLearner | undefined;
  #settledEpoch = -1;
  #probeSince: number | undefined;

  /**
   * @param fixed the configured pace; undefined where it is learned
   * @param snapshot what is known already
   */
  constructor(fixed: FleetLimit | undefined, options: FleetLearnerOptions, now: number, snapshot: unknown) {
    this.#configured = fixed;
    this.#learner = fixed === undefined ? new FleetLimitLearner(options) : undefined;
    this.#learner?.restore(now, snapshot, 0);
  }

  /** Permits per second beyond what is published, for its own calls: trials cost least while one replica makes them. */
  extraRate(now: number): number {
    const rate = this.#learner?.extraRate ?? 0;
    return rate > 0 && !this.#isProbedByAll(now, rate) ? rate : 0;
  }

  addCalls(calls: readonly ReportedCalls[]): void {
    this.#learner?.addCalls(calls);
  }

  /**
   * @param until all calls made before this are known
   * @param settledEpoch the pause that all have reported for; -1 for none
   */
  ingest(until: number, settledEpoch: number): void {
    this.#learner?.ingest(until);
    this.#settledEpoch = settledEpoch;
  }

  /** When the probe may go; Infinity while the others have not reported. */
  openAt(now: number, epoch: number): number {
    if (epoch !== this.#settledEpoch) return Infinity;
    return this.#learner?.openAt(now) ?? -Infinity;
  }

  /**
   * Undefined when there is nothing new.
   * @param toBoard converts an instant
   */
  nextPublication(now: number, situation: LeaderInputs, toBoard: (at: number) => number): PublishedLimit | undefined {
    const { limitInForce, epoch } = situation;
    const setting = this.#configured ?? this.#limitAt(now);
    if (setting === undefined) return undefined;
    const resumes = this.canEndPause(now, situation);
    if (!resumes && !hasChanged(setting, limitInForce)) return undefined;
    const openAt = toBoard(resumes ? Math.max(now, this.#learner?.openAt(now) ?? now) : now);
    return {
      ...setting,
      openAt,
      epoch: resumes ? epoch : -1,
      model: this.#configured === undefined ? this.#serializeModel(now) : '',
    };
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#learner?.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#learner?.snapshot(now);
  }

  #limitAt(now: number): FleetLimit | undefined {
    if (this.#learner === undefined) return undefined;
    const { limit, extraRate } = this.#learner;
    if (extraRate === 0) this.#probeSince = undefined;
    else this.#probeSince ??= now;
    return this.#isProbedByAll(now, extraRate) ? { ...limit, rate: limit.rate + extraRate } : limit;
  }

  /** Its own calls may be too few to show that the limit was raised. */
  #isProbedByAll(now: number, extraRate: number): boolean {
    if (this.#probeSince === undefined || !(extraRate > 0)) return false;
    return now > this.#probeSince + Math.max(MIN_LEADER_PROBE_MS, (LEADER_PROBE_CALLS * 1000) / extraRate);
  }

  /** Whether the pause can be ended. */
  canEndPause(now: number, { isFleetPaused, epoch, pausedUntil, isPaused, isIdle }: LeaderInputs): boolean {
    if (!isFleetPaused || epoch !== this.#settledEpoch || now < pausedUntil) return false;
    return !isPaused || isIdle;
  }

  #serializeModel(now: number): string {
    const model: Model = { snapshot: this.#learner?.snapshot(now), learned: this.#learner?.learned(() => 0) };
    return JSON.stringify(model);
  }
}

/** Whatever is not a model has nothing in it. */
export function parseModel(text: string): { readonly snapshot?: unknown; readonly learned?: LearnedLimit } {
  if (text === '') return {};
  const { snapshot, learned } = Object(parse(text)) as Readonly<Record<string, unknown>>;
  return isLearnedLimit(learned) ? { snapshot, learned } : { snapshot };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isLearnedLimit(value: unknown): value is LearnedLimit {
  const { kind, confidence } = Object(value) as Readonly<Record<string, unknown>>;
  return typeof kind === 'string' && ['none', 'low', 'high'].includes(String(confidence));
}

function hasChanged({ rate, burst }: FleetLimit, told: FleetLimit | undefined): boolean {
  if (told?.burst !== burst) return true;
  if (!Number.isFinite(rate) || !Number.isFinite(told.rate)) return rate !== told.rate;
  return Math.abs(rate - told.rate) > told.rate * MIN_RATE_CHANGE;
}
