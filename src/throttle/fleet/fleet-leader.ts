/**
 * What the replica that leads does for its fleet (pure): it takes in the calls of all, says what to go by, and ends pauses. A pause
 * is over for the others once its own probe has been accepted, or at once when it has no call that could be one. With a configured rate
 * there is nothing to learn, and pauses are ended all the same.
 */
import type { Publication } from './fleet-board.ts';
import { FleetMind, type FleetPaceSetting } from './fleet-mind.ts';
import type { ReportedCalls } from './fleet-report.ts';
import type { LearnedPaceOptions } from '../adaptive/learned-pace.ts';
import type { LearnedLimit } from '../throttle.ts';

/** Smaller changes of a rate are not worth telling all. */
const LEAST_CHANGE = 0.005;

/** A trial is made by the leader alone for so long, and for so many calls. */
const LEAST_ALONE_MS = 2_000;
const CALLS_ALONE = 8;

/** What a leader knows besides: the state of its fleet, and of its own queue. */
export interface Situation {
  readonly epoch: number;
  readonly isHeld: boolean;
  readonly pausedUntil: number;
  /** What the board says holds; undefined when it says nothing. */
  readonly told: FleetPaceSetting | undefined;
  /** Its own pause is not over. */
  readonly isClosed: boolean;
  /** It has no call that could be a probe. */
  readonly isIdle: boolean;
}

/** What is passed on from leader to leader, as JSON. */
interface Model {
  readonly snapshot?: object | undefined;
  readonly learned?: LearnedLimit | undefined;
}

export class FleetLeader {
  readonly #fixed: FleetPaceSetting | undefined;
  readonly #mind: FleetMind | undefined;
  #digestedEpoch = -1;
  #trialSince: number | undefined;

  /**
   * @param fixed the configured pace; undefined where it is learned
   * @param snapshot what is known already
   */
  constructor(fixed: FleetPaceSetting | undefined, options: LearnedPaceOptions, now: number, snapshot: unknown) {
    this.#fixed = fixed;
    this.#mind = fixed === undefined ? new FleetMind(options) : undefined;
    this.#mind?.restore(now, snapshot, 0);
  }

  /** Permits per second beyond what is published, for its own calls: trials cost least while one replica makes them. */
  extraRate(now: number): number {
    const rate = this.#mind?.extraRate ?? 0;
    return rate > 0 && !this.#isTriedByAll(now, rate) ? rate : 0;
  }

  hear(calls: readonly ReportedCalls[]): void {
    this.#mind?.hear(calls);
  }

  /**
   * @param until all calls made before this are known
   * @param settledEpoch the pause that all have reported for; -1 for none
   */
  digest(until: number, settledEpoch: number): void {
    this.#mind?.digest(until);
    this.#digestedEpoch = settledEpoch;
  }

  /** When the probe may go; Infinity while the others have not reported. */
  opensAt(now: number, epoch: number): number {
    if (epoch !== this.#digestedEpoch) return Infinity;
    return this.#mind?.openAt(now) ?? -Infinity;
  }

  /**
   * Undefined when there is nothing new.
   * @param toBoard converts an instant
   */
  publication(now: number, situation: Situation, toBoard: (at: number) => number): Publication | undefined {
    const { told, epoch } = situation;
    const setting = this.#fixed ?? this.#settingAt(now);
    if (setting === undefined) return undefined;
    const resumes = this.mayResume(now, situation);
    if (!resumes && !differs(setting, told)) return undefined;
    const openAt = toBoard(resumes ? Math.max(now, this.#mind?.openAt(now) ?? now) : now);
    return {
      ...setting,
      openAt,
      epoch: resumes ? epoch : -1,
      model: this.#fixed === undefined ? this.#model(now) : '',
    };
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#mind?.learned(wallAt);
  }

  snapshot(now: number): object | undefined {
    return this.#mind?.snapshot(now);
  }

  #settingAt(now: number): FleetPaceSetting | undefined {
    if (this.#mind === undefined) return undefined;
    const { setting, extraRate } = this.#mind;
    if (extraRate === 0) this.#trialSince = undefined;
    else this.#trialSince ??= now;
    return this.#isTriedByAll(now, extraRate) ? { ...setting, rate: setting.rate + extraRate } : setting;
  }

  /** Its own calls may be too few to show that the limit was raised. */
  #isTriedByAll(now: number, extraRate: number): boolean {
    if (this.#trialSince === undefined || !(extraRate > 0)) return false;
    return now > this.#trialSince + Math.max(LEAST_ALONE_MS, (CALLS_ALONE * 1000) / extraRate);
  }

  /** Whether the pause can be ended. */
  mayResume(now: number, { isHeld, epoch, pausedUntil, isClosed, isIdle }: Situation): boolean {
    if (!isHeld || epoch !== this.#digestedEpoch || now < pausedUntil) return false;
    return !isClosed || isIdle;
  }

  #model(now: number): string {
    const model: Model = { snapshot: this.#mind?.snapshot(now), learned: this.#mind?.learned(() => 0) };
    return JSON.stringify(model);
  }
}

/** Whatever is not a model has nothing in it. */
export function readModel(text: string): { readonly snapshot?: unknown; readonly learned?: LearnedLimit } {
  if (text === '') return {};
  const { snapshot, learned } = Object(parse(text)) as Readonly<Record<string, unknown>>;
  return isLearned(learned) ? { snapshot, learned } : { snapshot };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isLearned(value: unknown): value is LearnedLimit {
  const { kind, confidence } = Object(value) as Readonly<Record<string, unknown>>;
  return typeof kind === 'string' && ['none', 'low', 'high'].includes(String(confidence));
}

function differs({ rate, burst }: FleetPaceSetting, told: FleetPaceSetting | undefined): boolean {
  if (told?.burst !== burst) return true;
  if (!Number.isFinite(rate) || !Number.isFinite(told.rate)) return rate !== told.rate;
  return Math.abs(rate - told.rate) > told.rate * LEAST_CHANGE;
}
