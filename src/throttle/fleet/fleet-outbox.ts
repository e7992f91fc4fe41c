/**
 * What a member has to tell its fleet with the next question (pure): its calls, and a refusal that nobody was told of. What was on
 * its way when an answer did not come is not told again, but for the refusal: calls counted twice would do more harm than calls
 * not counted.
 */
import type { QuotaRequest } from './fleet-board.ts';
import type { FleetClock } from './fleet-clock.ts';
import { FleetReport, type ReportedCalls } from './fleet-report.ts';

/** Whoever has called within this time is active. */
const ACTIVE_MS = 10_000;
/** When the fleet is joined again, older calls are not told any more. */
const OLDEST_TOLD_MS = 1_000;

type Refusal = QuotaRequest['refusal'];

export class FleetOutbox {
  readonly report = new FleetReport();
  readonly #clock: FleetClock;
  #refusal: Refusal;
  #tellSince = -Infinity;
  #activeAt = -Infinity;

  constructor(clock: FleetClock) {
    this.#clock = clock;
  }

  isActive(now: number): boolean {
    if (this.report.size > 0) this.#activeAt = now;
    return now - this.#activeAt < ACTIVE_MS;
  }

  /** A call was refused. */
  refused(now: number, statedWaitMs: number | undefined): void {
    const at = this.#clock.toBoard(this.report.refusedAt ?? now);
    const longest = Math.max(statedWaitMs ?? 0, this.#refusal?.statedWaitMs ?? 0);
    this.#refusal = { at: Math.max(at, this.#refusal?.at ?? at), statedWaitMs: longest > 0 ? longest : undefined };
  }

  takeRefusal(): Refusal {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    return refusal;
  }

  /** One that may not have been heard of. */
  putBack(refusal: Refusal): void {
    this.#refusal ??= refusal;
  }

  takeCalls(): readonly ReportedCalls[] {
    if (!this.#clock.isSet) return [];
    const calls = this.report.take(this.#tellSince);
    this.#tellSince = -Infinity;
    return calls;
  }

  /** The fleet can be told again. */
  joined(now: number): void {
    this.#tellSince = now - OLDEST_TOLD_MS;
  }

  /** It cannot. */
  lost(): void {
    this.#refusal = undefined;
  }
}
