/**
 * What a replica reports to the leader about its calls (pure): when, how many, how long they took, and their outcome. A report is
 * a text of bounded length: where there are many calls, those near each other are merged.
 */
import type { ClockOffset } from './clock-offset.ts';
import type { QuotaRequest } from './quota-store.ts';

/** Calls merged into one instant. */
export interface ReportedCalls {
  /** Milliseconds: monotonic here, the store's clock in a report. */
  readonly at: number;
  readonly count: number;
  /** Milliseconds to the response. */
  readonly tookMs: number;
  readonly isRefused: boolean;
  /** The application used the whole rate. */
  readonly isWaitedFor: boolean;
  /** The first call after a pause. */
  readonly isPauseProbe: boolean;
}

/** Time steps into which a report with many calls is merged. */
const REPORT_STEPS = 64;
/** Entries kept for the next report, and the time steps into which more of them are merged. */
const MAX_BUFFERED = 1024;
const BUFFER_STEPS = 128;
/** A joined replica reports more often than this; older calls are of no use after a reconnection. */
const MAX_BUFFERED_AGE_MS = 10_000;
/** Most calls of one entry, and of all entries that are read together. */
const MAX_COUNT = 10_000;
const MAX_DECODED_CALLS = 65_536;
const MAX_TOOK_MS = 86_400_000;
const REFUSED = 1;
const WAITED_FOR = 2;
const PAUSE_PROBE = 4;

/** A replica with calls within this time is active. */
const ACTIVE_MS = 10_000;
/** After a reconnection older calls are not reported. */
const MAX_REPORT_AGE_MS = 1_000;

type Refusal = QuotaRequest['refusal'];

/**
 * What a replica reports with its next exchange: its calls, and an unreported refusal. When a reply is missing only the refusal is
 * reported again: calls counted twice would do more harm than calls not counted.
 */
export class ReportBuffer {
  readonly #clockOffset: ClockOffset;
  #calls: ReportedCalls[] = [];
  /** The last refusal among the unreported calls. */
  #lastRefusedAt: number | undefined;
  #refusal: Refusal;
  #reportSince = -Infinity;
  #activeAt = -Infinity;

  constructor(clockOffset: ClockOffset) {
    this.#clockOffset = clockOffset;
  }

  /** Unreported entries, at most 1024. */
  get size(): number {
    return this.#calls.length;
  }

  isActive(now: number): boolean {
    if (this.size > 0) this.#activeAt = now;
    return now - this.#activeAt < ACTIVE_MS;
  }

  add(call: ReportedCalls): void {
    if (call.isRefused) this.#lastRefusedAt = call.at;
    this.#calls.push(call);
    if (this.#calls.length > MAX_BUFFERED)
      this.#calls = mergeCalls(this.#since(this.#newestAt - MAX_BUFFERED_AGE_MS), BUFFER_STEPS);
  }

  /** Oldest first; none while the offset of the store's clock is not known. */
  takeCalls(): readonly ReportedCalls[] {
    if (!this.#clockOffset.isKnown) return [];
    const calls = this.#since(this.#reportSince);
    this.#calls = [];
    this.#lastRefusedAt = undefined;
    this.#reportSince = -Infinity;
    return mergeCalls(calls, REPORT_STEPS);
  }

  recordRefusal(now: number, statedWaitMs: number | undefined): void {
    const at = this.#clockOffset.toStoreTime(this.#lastRefusedAt ?? now);
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

  onConnected(now: number): void {
    this.#reportSince = now - MAX_REPORT_AGE_MS;
  }

  onDisconnected(): void {
    this.#refusal = undefined;
  }

  get #newestAt(): number {
    return this.#calls.reduce((newest, { at }) => Math.max(newest, at), -Infinity);
  }

  /** Sorted, since calls are added in the order of their responses. */
  #since(since: number): ReportedCalls[] {
    return this.#calls.filter(({ at }) => at >= since).sort((one, other) => one.at - other.at);
  }
}

export function encodeCalls(calls: readonly ReportedCalls[], toStoreTime: (at: number) => number): string {
  return calls
    .map(({ at, count, tookMs, isRefused, isWaitedFor, isPauseProbe }) => {
      const traits = (isRefused ? REFUSED : 0) + (isWaitedFor ? WAITED_FOR : 0) + (isPauseProbe ? PAUSE_PROBE : 0);
      return `${toStoreTime(at).toFixed(1)} ${String(count)} ${tookMs.toFixed(0)} ${String(traits)};`;
    })
    .join('');
}

/**
 * Reads concatenated reports; malformed entries are skipped, and so are calls after 65,536.
 * @param latest local instant; later calls have not been made
 */
export function decodeCalls(
  reports: string,
  toLocalTime: (storeAt: number) => number,
  latest: number,
): ReportedCalls[] {
  const calls: ReportedCalls[] = [];
  let total = 0;
  for (const entry of reports.split(';')) {
    const [storeAt, count, tookMs, traits] = entry.split(' ').map(Number);
    if (storeAt === undefined || count === undefined || tookMs === undefined || traits === undefined) continue;
    const at = toLocalTime(storeAt);
    if (!(at > -Infinity && at <= latest) || !(count >= 1 && count <= MAX_COUNT)) continue;
    if (!(tookMs >= 0 && tookMs <= MAX_TOOK_MS) || !Number.isInteger(traits)) continue;
    total += count;
    if (total > MAX_DECODED_CALLS) break;
    calls.push({
      at,
      count,
      tookMs,
      isRefused: (traits & REFUSED) > 0,
      isWaitedFor: (traits & WAITED_FOR) > 0,
      isPauseProbe: (traits & PAUSE_PROBE) > 0,
    });
  }
  return calls;
}

/**
 * Merges calls when there are more than `steps`: those of one time step become one entry at the instant of the first. Refused calls
 * and refused probes have entries of their own and separate those around them: at most five entries per step, mostly one.
 */
function mergeCalls(calls: readonly ReportedCalls[], steps: number): ReportedCalls[] {
  if (calls.length <= steps) return [...calls];
  const merged: ReportedCalls[] = [];
  const stepMs = ((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)) / steps;
  /** Index of the open entry of refused calls, and of refused probes. */
  const refusedIndex = new Map<boolean, number>();
  for (const call of calls) {
    const index = (call.isRefused ? refusedIndex.get(call.isPauseProbe) : merged.length - 1) ?? -1;
    const one = merged[index];
    if (one?.isRefused === call.isRefused && call.at - one.at <= stepMs) {
      const isWaitedFor = one.isWaitedFor || call.isWaitedFor;
      merged[index] = { ...one, count: one.count + call.count, isWaitedFor };
    } else {
      const length = merged.push(call);
      if (call.isRefused) refusedIndex.set(call.isPauseProbe, length - 1);
    }
  }
  return merged;
}
