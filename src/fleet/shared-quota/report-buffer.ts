/**
 * What a member has to tell its fleet with the next question (pure): its calls, and a refusal that nobody was told of. What was on
 * its way when an answer did not come is not told again, but for the refusal: calls counted twice would do more harm than calls
 * not counted.
 */
import type { QuotaRequest } from './quota-store.ts';
import type { ClockOffset } from './clock-offset.ts';
import { CallCollector, type ReportedCalls } from './call-report.ts';

/** Whoever has called within this time is active. */
const ACTIVE_MS = 10_000;
/** When the fleet is joined again, older calls are not told any more. */
const MAX_REPORT_AGE_MS = 1_000;

type Refusal = QuotaRequest['refusal'];

export class ReportBuffer {
  readonly calls = new CallCollector();
  readonly #clockOffset: ClockOffset;
  #refusal: Refusal;
  #reportSince = -Infinity;
  #activeAt = -Infinity;

  constructor(clock: ClockOffset) {
    this.#clockOffset = clock;
  }

  isActive(now: number): boolean {
    if (this.calls.size > 0) this.#activeAt = now;
    return now - this.#activeAt < ACTIVE_MS;
  }

  /** A call was refused. */
  recordRefusal(now: number, statedWaitMs: number | undefined): void {
    const at = this.#clockOffset.toStoreTime(this.calls.lastRefusedAt ?? now);
    const longest = Math.max(statedWaitMs ?? 0, this.#refusal?.statedWaitMs ?? 0);
    this.#refusal = { at: Math.max(at, this.#refusal?.at ?? at), statedWaitMs: longest > 0 ? longest : undefined };
  }

  takeRefusal(): Refusal {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    return refusal;
  }

  /** One that may not have been heard of. */
  restoreRefusal(refusal: Refusal): void {
    this.#refusal ??= refusal;
  }

  takeCalls(): readonly ReportedCalls[] {
    if (!this.#clockOffset.isKnown) return [];
    const calls = this.calls.take(this.#reportSince);
    this.#reportSince = -Infinity;
    return calls;
  }

  /** The fleet can be told again. */
  onConnected(now: number): void {
    this.#reportSince = now - MAX_REPORT_AGE_MS;
  }

  /** It cannot. */
  onDisconnected(): void {
    this.#refusal = undefined;
  }
}
