/**
 * What a replica reports to the leader about its calls (pure): when, how many, how long they took, and their outcome. A report is
 * a text of bounded length: where there are many calls, those near each other are merged.
 */

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

/** Collects calls until they are taken. */
export class CallCollector {
  #calls: ReportedCalls[] = [];
  #lastRefusedAt: number | undefined;

  /** Unreported entries, at most 1024. */
  get size(): number {
    return this.#calls.length;
  }

  /** Instant of the last unreported refused call. */
  get lastRefusedAt(): number | undefined {
    return this.#lastRefusedAt;
  }

  add(call: ReportedCalls): void {
    if (call.isRefused) this.#lastRefusedAt = call.at;
    this.#calls.push(call);
    if (this.#calls.length > MAX_BUFFERED)
      this.#calls = mergeCalls(this.#since(this.#newestAt - MAX_BUFFERED_AGE_MS), BUFFER_STEPS);
  }

  /** Removes all calls and returns those made at `since` or later, oldest first. */
  take(since: number): readonly ReportedCalls[] {
    const calls = this.#since(since);
    this.#calls = [];
    this.#lastRefusedAt = undefined;
    return mergeCalls(calls, REPORT_STEPS);
  }

  get #newestAt(): number {
    return this.#calls.reduce((newest, { at }) => Math.max(newest, at), -Infinity);
  }

  /** Sorted, since calls are added in the order of their responses. */
  #since(since: number): ReportedCalls[] {
    return this.#calls.filter(({ at }) => at >= since).sort((one, other) => one.at - other.at);
  }
}

/** @param toStoreTime converts an instant */
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
