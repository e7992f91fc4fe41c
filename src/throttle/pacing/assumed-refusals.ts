/**
 * Decides whether a bare 503, 403, 420, 509 or 529, which no setting names, is taken for a refusal (pure). A limit refuses calls in a row once
 * as many were accepted as ever; an outage, a dead node and random faults do so at any number. What is assumed is wrong at times, so that it
 * may delay a call and never reject it: see `MAX_ASSUMED_WAIT_MS`.
 */
import type { SuspectStatus } from '../../telemetry/events.ts';
import type { CallLog } from '../adaptive/call-log.ts';
import type { RefusalRule } from '../refusal-rule.ts';

/** A call that has waited for an assumed limit so long is sent. */
export const MAX_ASSUMED_WAIT_MS = 5000;

/** Accepted calls are counted by the slot in which they were sent. */
const SLOT_MS = 100;
const SLOTS = 1024;
/** Responses come later than their calls were sent: only older slots are compared with the most accepted so far. */
const LAG_SLOTS = 20;
/** The most accepted so far is that of the last half hour to hour. */
const PEAK_SLOTS = 18_000;
/** A refusal with fewer accepted calls before it than this part of the most accepted so far is not a limit's. */
const WINDOWS = [
  { slots: 10, peakShare: 0.6 },
  { slots: 100, peakShare: 0.9 },
  { slots: 600, peakShare: 0.95 },
] as const;
/** Refusals in a row from which on they are assumed to be a limit's ... */
const LEAST_RUN = 3;
/** ... if random refusals are so unlikely to come in a row of this length. */
const MAX_CHANCE = 1e-6;
/** Weight of one response in the moving average of the refused share. */
const SHARE_WEIGHT = 0.01;
/** They come within so many slots. */
const RUN_SLOTS = 100;
/** Refusals that are not a limit's end the assumption when they are more than a third, by so much. */
const MAX_CONTRADICTIONS = 20;
const CONTRADICTION = 2;
/** Where calls have to be sent in spite of the limit for so long, pacing only delays them, which ends the assumption too. */
const MAX_OVERDUE_MS = 2000;
/** After that nothing is assumed for a while; twice as long after each time. */
const FIRST_BLOCK_MS = 600_000;
const LONGEST_BLOCK_MS = 21_600_000;
const MAX_ENDPOINTS = 64;
const MAX_SHOWN_ENDPOINTS = 8;

/** A status that is taken for a rate-limit refusal although no setting names it. */
export interface AssumedRefusal {
  readonly status: SuspectStatus;
  /** Endpoints of the refused calls, at most 8. */
  readonly endpoints: readonly string[];
  /** Refused calls. */
  readonly count: number;
  /** Epoch milliseconds. */
  readonly since: number;
  /** The line of the file that makes it certain. It contains the configured rules too, since it replaces them. */
  readonly setting: string;
  /** The same as an environment variable, quoted for a shell. */
  readonly variable: string;
}

/** `contradicted`: what was assumed so far is wrong. */
export type Suspicion = 'assumed' | 'not assumed' | 'contradicted';

export class AssumedRefusals {
  readonly #inFlightCalls: CallLog;
  readonly #accepted = new Uint32Array(SLOTS);
  #newestSlot = -1;
  #firstSlot = -1;
  readonly #windows = WINDOWS.map((window) => ({ ...window, sum: 0, peak: 0, formerPeak: 0 }));
  #peaksSince = 0;
  #hasBegun = false;
  #run = 0;
  #runSlot = 0;
  #runStatus: SuspectStatus | undefined;
  #lastOverdueAt = -Infinity;
  #overdueSince = -Infinity;
  #blockedUntil = -Infinity;
  #blockMs = FIRST_BLOCK_MS;
  #contradictions = 0;
  #refusedShare = 0;
  /** Endpoints that accepted a call, once there was a 403. */
  #acceptedEndpoints: Set<string> | undefined;
  readonly #seen = new Map<SuspectStatus, { readonly since: number; readonly endpoints: Set<string>; count: number }>();

  /** @param inFlightCalls calls without a response */
  constructor(inFlightCalls: CallLog) {
    this.#inFlightCalls = inFlightCalls;
  }

  /** @param sentAt monotonic */
  recordAccepted(sentAt: number, endpoint: string): void {
    const slot = Math.floor(sentAt / SLOT_MS);
    if (slot > this.#newestSlot) this.#advance(slot);
    // Older slots have been counted.
    const index = Math.max(slot, this.#newestSlot - LAG_SLOTS + 1) % SLOTS;
    this.#accepted[index] = (this.#accepted[index] ?? 0) + 1;
    if (this.#run > 0) this.#endRun();
    this.#refusedShare -= this.#refusedShare * SHARE_WEIGHT;
    if (this.#acceptedEndpoints !== undefined && this.#acceptedEndpoints.size < MAX_ENDPOINTS)
      this.#acceptedEndpoints.add(endpoint);
  }

  /** @param sentAt monotonic */
  recordSuspect(sentAt: number, status: SuspectStatus, endpoint: string): Suspicion {
    // An endpoint that is always refused is forbidden, and reached by no waiting.
    if (status === 403) this.#acceptedEndpoints ??= new Set();
    this.#refusedShare += (1 - this.#refusedShare) * SHARE_WEIGHT;
    if (status === 403 && this.#acceptedEndpoints?.has(endpoint) !== true) return 'not assumed';
    if (sentAt < this.#blockedUntil) return 'not assumed';
    const slot = Math.floor(sentAt / SLOT_MS);
    if (slot > this.#newestSlot) this.#advance(slot);
    if (!this.#isAtPeak(slot)) {
      this.#run = 0;
      this.#contradictions += CONTRADICTION;
      if (!this.#hasBegun || this.#contradictions < MAX_CONTRADICTIONS) return 'not assumed';
      this.#block(sentAt);
      return 'contradicted';
    }
    this.#contradictions = Math.max(0, this.#contradictions - 1);
    const isInRun = status === this.#runStatus && slot - this.#runSlot < RUN_SLOTS;
    this.#run = isInRun ? this.#run + 1 : 1;
    if (!isInRun) this.#runSlot = slot;
    this.#runStatus = status;
    if (!this.#hasBegun && this.#countAccepted(slot, RUN_SLOTS) > 0) this.#begin();
    if (!this.#hasBegun) return 'not assumed';
    this.#show(sentAt, status, endpoint);
    return 'assumed';
  }

  /** A call had to be sent in spite of the limit. @returns true when pacing does not help: nothing is assumed any more */
  recordOverdue(now: number): boolean {
    if (now - this.#lastOverdueAt > MAX_ASSUMED_WAIT_MS) this.#overdueSince = now;
    this.#lastOverdueAt = now;
    const isUseless = this.#hasBegun && now - this.#overdueSince > MAX_OVERDUE_MS;
    if (isUseless) this.#block(now);
    return isUseless;
  }

  /** Nothing is assumed any more. */
  reset(): void {
    this.#hasBegun = false;
    this.#run = this.#contradictions = 0;
    this.#seen.clear();
  }

  /**
   * @param configured the rules that `throttle.refusals` has now
   * @param wallAt turns a monotonic instant into epoch milliseconds
   */
  list(configured: readonly RefusalRule[], wallAt: (at: number) => number): readonly AssumedRefusal[] {
    return Array.from(this.#seen, ([status, { since, endpoints, count }]) => {
      const rules = JSON.stringify([...configured, { status }]);
      return {
        status,
        endpoints: [...endpoints],
        count,
        since: wallAt(since),
        // JSON is valid in a YAML file and in a JSON one.
        setting: `throttle: { refusals: ${rules} }`,
        variable: `SIDECAR_THROTTLE_REFUSALS='${rules.replaceAll("'", "'\\''")}'`,
      };
    });
  }

  #block(now: number): void {
    this.reset();
    this.#blockedUntil = now + this.#blockMs;
    this.#blockMs = Math.min(LONGEST_BLOCK_MS, 2 * this.#blockMs);
  }

  #begin(): void {
    this.#hasBegun = this.#run >= LEAST_RUN && this.#refusedShare ** this.#run < MAX_CHANCE;
    if (this.#hasBegun) this.#contradictions = 0;
  }

  /** Refused calls take less time than accepted ones: of calls sent at once, the responses of the accepted may come last. */
  #endRun(): void {
    if (!this.#hasBegun && this.#newestSlot - this.#runSlot < RUN_SLOTS) this.#begin();
    this.#run = 0;
  }

  #show(at: number, status: SuspectStatus, endpoint: string): void {
    const seen = this.#seen.get(status) ?? { since: at, endpoints: new Set<string>(), count: 0 };
    this.#seen.set(status, seen);
    seen.count++;
    if (endpoint !== '' && seen.endpoints.size < MAX_SHOWN_ENDPOINTS) seen.endpoints.add(endpoint);
  }

  #isAtPeak(slot: number): boolean {
    return this.#windows.some(({ slots, peakShare, peak, formerPeak }, index) => {
      // While a window fills for the first time, each number is the most so far.
      if (index > 0 && slot - this.#firstSlot < 2 * slots) return false;
      const from = (slot - slots + 1) * SLOT_MS;
      const calls = this.#countAccepted(slot, slots) + this.#inFlightCalls.count(from, (slot + 1) * SLOT_MS);
      return calls >= Math.max(1, peakShare * Math.max(peak, formerPeak));
    });
  }

  #countAccepted(lastSlot: number, slots: number): number {
    let count = 0;
    for (let slot = Math.max(0, lastSlot - slots + 1); slot <= lastSlot; slot++)
      count += this.#accepted[slot % SLOTS] ?? 0;
    return count;
  }

  #advance(slot: number): void {
    if (this.#firstSlot < 0) this.#firstSlot = this.#newestSlot = slot;
    if (slot - this.#peaksSince >= PEAK_SLOTS) {
      for (const window of this.#windows) {
        window.formerPeak = window.peak;
        window.peak = 0;
      }
      this.#peaksSince = slot;
    }
    const until = Math.min(slot, this.#newestSlot + SLOTS);
    for (let next = this.#newestSlot + 1; next <= until; next++) {
      this.#accepted[next % SLOTS] = 0;
      const last = next - LAG_SLOTS;
      if (last < 0) continue;
      for (const window of this.#windows) {
        const left = last < window.slots ? 0 : (this.#accepted[(last - window.slots) % SLOTS] ?? 0);
        window.sum += (this.#accepted[last % SLOTS] ?? 0) - left;
        window.peak = Math.max(window.peak, window.sum);
      }
    }
    // After so long a time without calls all slots are empty.
    this.#newestSlot = slot;
  }
}
