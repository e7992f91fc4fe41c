/**
 * Who leads, as one replica sees it (pure): takes up the lead when the board gives it, lays it down when another has it, and keeps what
 * it knew while the board is gone, so that it need not be learned again. What a leader does is fleet-leader's.
 */
import type { QuotaReply } from './quota-store.ts';
import { FleetLeader, parseModel, type LeaderInputs } from './fleet-leader.ts';
import type { PublishedLimit } from './quota-store.ts';
import type { ClockOffset } from './clock-offset.ts';
import { decodeCalls, type ReportedCalls } from './call-report.ts';
import { DEFAULT_LEARNING } from '../../throttle/adaptive/learning-parameters.ts';
import type { LearnedLimit, RateSettings } from '../../throttle/throttle.ts';

/** All are pushed a pause and report at once; so long the leader waits for that. */
const REPORT_WAIT_MS = 60;
/** Joined again, who led before leads again if it comes within this time: it knows most. */
const FORMER_LEADER_PRIORITY_MS = 3_000;

export class LeaderElection {
  readonly #clockOffset: ClockOffset;
  #settings: RateSettings;
  #leader: FleetLeader | undefined;
  /** What it knew when it lost the board. */
  #formerLeader: FleetLeader | undefined;
  #model = '';
  #reconnectedAt = -Infinity;
  #reportsCompleteAt = Infinity;

  constructor(clock: ClockOffset, settings: RateSettings) {
    this.#clockOffset = clock;
    this.#settings = settings;
  }

  /** This replica leads. */
  get isLeader(): boolean {
    return this.#leader !== undefined;
  }

  /** From when on all have reported for the last pause. */
  get reportsCompleteAt(): number {
    return this.#reportsCompleteAt;
  }

  reconfigure(terms: RateSettings): void {
    const isSame = hasSameLimit(terms, this.#settings);
    this.#settings = terms;
    if (isSame) return;
    // What was learned is passed on with the model.
    this.#leader = undefined;
    this.#formerLeader = undefined;
  }

  /** @param isBack it was joined before */
  onConnected(now: number, isBack: boolean): void {
    if (isBack) this.#reconnectedAt = now;
  }

  onDisconnected(): void {
    this.#formerLeader = this.#leader ?? this.#formerLeader;
    this.#leader = undefined;
  }

  onPaused(now: number): void {
    this.#reportsCompleteAt = now + REPORT_WAIT_MS;
  }

  /** Somebody else should lead for now. */
  isYielding(now: number): boolean {
    return this.#formerLeader === undefined && now < this.#reconnectedAt + FORMER_LEADER_PRIORITY_MS;
  }

  addCalls(calls: readonly ReportedCalls[]): void {
    this.#leader?.addCalls(calls);
  }

  /**
   * Takes up an answer of the board.
   * @param known what this process has learned by itself
   * @returns permits per second beyond the lease
   */
  applyReply(now: number, reply: QuotaReply, known: () => object | undefined): number {
    if (reply.model !== '') this.#model = reply.model;
    if (!reply.isLeader) {
      this.#leader = undefined;
      if (now > this.#reconnectedAt + FORMER_LEADER_PRIORITY_MS) this.#formerLeader = undefined;
      return 0;
    }
    const leader = (this.#leader ??= this.#formerLeader ?? this.#createLeader(now, reply.rate, known));
    leader.addCalls(decodeCalls(reply.peerReports, (at) => this.#clockOffset.toLocalTime(at)));
    if (reply.isFleetPaused && this.#reportsCompleteAt === Infinity) this.onPaused(now);
    const isSettled = reply.isFleetPaused && now >= this.#reportsCompleteAt;
    const knownUntil =
      reply.replicaCount === 1 ? now : Math.min(now, this.#clockOffset.toLocalTime(reply.oldestReportAt));
    leader.ingest(isSettled ? now : knownUntil, isSettled || this.#settings.rate !== 'auto' ? reply.epoch : -1);
    return reply.isFleetPaused ? 0 : leader.extraRate(now);
  }

  /** When the probe may go; Infinity while the others have not reported. */
  openAt(now: number, epoch: number): number {
    return this.#leader?.openAt(now, epoch) ?? Infinity;
  }

  canEndPause(now: number, situation: LeaderInputs): boolean {
    return this.#leader?.canEndPause(now, situation) ?? false;
  }

  nextPublication(now: number, situation: LeaderInputs): PublishedLimit | undefined {
    return this.#leader?.nextPublication(now, situation, (at) => this.#clockOffset.toStoreTime(at));
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    return this.#leader?.learned(wallAt) ?? parseModel(this.#model).learned;
  }

  snapshot(now: number): object | undefined {
    const known = this.#leader?.snapshot(now) ?? parseModel(this.#model).snapshot;
    return typeof known === 'object' && known !== null ? known : undefined;
  }

  #createLeader(now: number, told: number | undefined, known: () => object | undefined): FleetLeader {
    const { rate, burst } = this.#settings;
    const fixed = rate === 'auto' ? undefined : { rate, burst };
    const snapshot = parseModel(this.#model).snapshot ?? (isFiniteRate(told) ? createRateSnapshot(told) : known());
    return new FleetLeader(fixed, { ...this.#settings, learning: DEFAULT_LEARNING }, now, snapshot);
  }
}

/** A burst is unused where the rate is learned, and how many are in flight is each replica's own. */
function hasSameLimit(one: RateSettings, other: RateSettings): boolean {
  if (one.rate !== other.rate) return false;
  return one.rate === 'auto' ? one.maxRate === other.maxRate : one.burst === other.burst;
}

function isFiniteRate(rate: number | undefined): rate is number {
  return rate !== undefined && Number.isFinite(rate);
}

/** What a leader goes on from when the one before believed in no limit, and paced all the same. */
function createRateSnapshot(rate: number): object {
  return { kind: 'bucket', windowMs: 0, limit: 1, rate, margin: 1, used: 0 };
}
