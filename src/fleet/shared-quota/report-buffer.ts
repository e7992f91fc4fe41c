/**
 * What a replica reports with its next exchange (pure): its calls, and an unreported refusal. When a reply is missing only the
 * refusal is reported again: calls counted twice would do more harm than calls not counted.
 */
import type { QuotaRequest } from './quota-store.ts';
import type { ClockOffset } from './clock-offset.ts';
import { CallCollector, type ReportedCalls } from './call-report.ts';

/** A replica with calls within this time is active. */
const ACTIVE_MS = 10_000;
/** After a reconnection older calls are not reported. */
const MAX_REPORT_AGE_MS = 1_000;

type Refusal = QuotaRequest['refusal'];

export class ReportBuffer {
  readonly calls = new CallCollector();
  readonly #clockOffset: ClockOffset;
  #refusal: Refusal;
  #reportSince = -Infinity;
  #activeAt = -Infinity;

  constructor(clockOffset: ClockOffset) {
    this.#clockOffset = clockOffset;
  }

  isActive(now: number): boolean {
    if (this.calls.size > 0) this.#activeAt = now;
    return now - this.#activeAt < ACTIVE_MS;
  }

  recordRefusal(now: number, statedWaitMs: number | undefined): void {
    const at = this.#clockOffset.toStoreTime(this.calls.lastRefusedAt ?? now);
    const longestMs = Math.max(statedWaitMs ?? 0, this.#refusal?.statedWaitMs ?? 0);
    this.#refusal = { at: Math.max(at, this.#refusal?.at ?? at), statedWaitMs: longestMs > 0 ? longestMs : undefined };
  }

  takeRefusal(): Refusal {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    return refusal;
  }

  /** For a refusal whose reply is missing. */
  restoreRefusal(refusal: Refusal): void {
    this.#refusal ??= refusal;
  }

  takeCalls(): readonly ReportedCalls[] {
    if (!this.#clockOffset.isKnown) return [];
    const calls = this.calls.take(this.#reportSince);
    this.#reportSince = -Infinity;
    return calls;
  }

  onConnected(now: number): void {
    this.#reportSince = now - MAX_REPORT_AGE_MS;
  }

  onDisconnected(): void {
    this.#refusal = undefined;
  }
}
