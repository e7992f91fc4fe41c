/**
 * Who leads, as one replica sees it (pure): takes up the lead when the board gives it, lays it down when another has it, and keeps what
 * it knew while the board is gone, so that it need not be learned again. What a leader does is fleet-leader's.
 */
import type { QuotaReply } from './fleet-board.ts';
import { FleetLeader, readModel, type Situation } from './fleet-leader.ts';
import type { Publication } from './fleet-board.ts';
import type { FleetClock } from './fleet-clock.ts';
import { readCalls, type ReportedCalls } from './fleet-report.ts';
import type { FleetTerms } from './fleet-terms.ts';
import type { LearningParameters } from '../adaptive/parameters.ts';
import type { LearnedLimit } from '../throttle.ts';

/** All are pushed a pause and report at once; so long the leader waits for that. */
const SETTLE_MS = 60;
/** Joined again, who led before leads again if it comes within this time: it knows most. */
const FORMER_FIRST_MS = 3_000;

export class FleetLeadership {
  readonly #clock: FleetClock;
  readonly #learning: LearningParameters;
  #terms: FleetTerms;
  #leader: FleetLeader | undefined;
  /** What it knew when it lost the board. */
  #former: FleetLeader | undefined;
  #model = '';
  #joinedAt = -Infinity;
  #settlesAt = Infinity;

  constructor(clock: FleetClock, learning: LearningParameters, terms: FleetTerms) {
    this.#clock = clock;
    this.#learning = learning;
    this.#terms = terms;
  }

  /** This replica leads. */
  get isHeld(): boolean {
    return this.#leader !== undefined;
  }

  /** From when on all have reported for the last pause. */
  get settlesAt(): number {
    return this.#settlesAt;
  }

  reconfigure(terms: FleetTerms): void {
    const isSame = areSameToLeader(terms, this.#terms);
    this.#terms = terms;
    if (isSame) return;
    // What was learned is passed on with the model.
    this.#leader = undefined;
    this.#former = undefined;
  }

  /** @param isBack it was joined before */
  joined(now: number, isBack: boolean): void {
    if (isBack) this.#joinedAt = now;
  }

  lost(): void {
    this.#former = this.#leader ?? this.#former;
    this.#leader = undefined;
  }

  paused(now: number): void {
    this.#settlesAt = now + SETTLE_MS;
  }

  /** Somebody else should lead for now. */
  yields(now: number): boolean {
    return this.#former === undefined && now < this.#joinedAt + FORMER_FIRST_MS;
  }

  hear(calls: readonly ReportedCalls[]): void {
    this.#leader?.hear(calls);
  }

  /**
   * Takes up an answer of the board.
   * @param known what this process has learned by itself
   * @returns permits per second beyond the lease
   */
  absorb(now: number, reply: QuotaReply, known: () => object | undefined): number {
    if (reply.model !== '') this.#model = reply.model;
    if (!reply.isLeader) {
      this.#leader = undefined;
      if (now > this.#joinedAt + FORMER_FIRST_MS) this.#former = undefined;
      return 0;
    }
    const leader = (this.#leader ??= this.#former ?? this.#create(now, reply.rate, known));
    leader.hear(readCalls(reply.mail, (at) => this.#clock.toLocal(at)));
    if (reply.isHeld && this.#settlesAt === Infinity) this.paused(now);
    const isSettled = reply.isHeld && now >= this.#settlesAt;
    const knownUntil = reply.present === 1 ? now : Math.min(now, this.#clock.toLocal(reply.oldestReportAt));
    leader.digest(isSettled ? now : knownUntil, isSettled || this.#terms.rate !== 'auto' ? reply.epoch : -1);
    return reply.isHeld ? 0 : leader.extraRate(now);
  }

  /** When the probe may go; Infinity while the others have not reported. */
  opensAt(now: number, epoch: number): number {
    return this.#leader?.opensAt(now, epoch) ?? Infinity;
  }

  mayResume(now: number, situation: Situation): boolean {
    return this.#leader?.mayResume(now, situation) ?? false;
  }

  publication(now: number, situation: Situation): Publication | undefined {
    return this.#leader?.publication(now, situation, (at) => this.#clock.toBoard(at));
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#leader?.learned(wallAt) ?? readModel(this.#model).learned;
  }

  snapshot(now: number): object | undefined {
    const known = this.#leader?.snapshot(now) ?? readModel(this.#model).snapshot;
    return typeof known === 'object' && known !== null ? known : undefined;
  }

  #create(now: number, told: number | undefined, known: () => object | undefined): FleetLeader {
    const { rate, burst } = this.#terms;
    const fixed = rate === 'auto' ? undefined : { rate, burst };
    const snapshot = readModel(this.#model).snapshot ?? (isPaced(told) ? modelOf(told) : known());
    return new FleetLeader(fixed, { ...this.#terms, learning: this.#learning }, now, snapshot);
  }
}

/** A burst is unused where the rate is learned, and how many are in flight is each replica's own. */
function areSameToLeader(one: FleetTerms, other: FleetTerms): boolean {
  if (one.rate !== other.rate) return false;
  return one.rate === 'auto' ? one.maxRate === other.maxRate : one.burst === other.burst;
}

function isPaced(rate: number | undefined): rate is number {
  return rate !== undefined && Number.isFinite(rate);
}

/** What a leader goes on from when the one before believed in no limit, and paced all the same. */
function modelOf(rate: number): object {
  return { kind: 'bucket', windowMs: 0, limit: 1, rate, margin: 1, used: 0 };
}
