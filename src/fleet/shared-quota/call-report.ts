/**
 * What a replica tells its leader of its calls (pure): when they were made, how many, how long they took, and what came of them. A
 * report is a text of bounded length: calls near each other are told as one where there are many, and nothing old is kept.
 */

/** Calls that were made at one instant, as far as can be told apart. */
export interface ReportedCalls {
  /** Monotonic here, the board's in a report; milliseconds. */
  readonly at: number;
  readonly count: number;
  /** To the answer, milliseconds. */
  readonly tookMs: number;
  readonly isRefused: boolean;
  /** The application offered as much as the rate allows. */
  readonly isWaitedFor: boolean;
  /** The first after a pause. */
  readonly isProbe: boolean;
}

/** Steps of time into which the calls of one report are put together where there are many. */
const REPORT_STEPS = 64;
/** Entries kept until they are told, and the steps into which they are put together when there are more. */
const MAX_BUFFERED = 1024;
const BUFFER_STEPS = 128;
/** Whoever is joined tells its calls more often; until then older ones are of no use to anyone. */
const MAX_BUFFERED_AGE_MS = 10_000;
const REFUSED = 1;
const WAITED_FOR = 2;
const PROBE = 4;

/** Collects calls until they are taken. */
export class CallCollector {
  #calls: ReportedCalls[] = [];
  #lastRefusedAt: number | undefined;

  /** Entries that nobody was told of, at most 1024. */
  get size(): number {
    return this.#calls.length;
  }

  /** When the last refused call was made that nobody was told of. */
  get lastRefusedAt(): number | undefined {
    return this.#lastRefusedAt;
  }

  add(call: ReportedCalls): void {
    if (call.isRefused) this.#lastRefusedAt = call.at;
    this.#calls.push(call);
    if (this.#calls.length > MAX_BUFFERED)
      this.#calls = mergeCalls(this.#since(this.#newestAt - MAX_BUFFERED_AGE_MS), BUFFER_STEPS);
  }

  /** Everything made at `since` or later, oldest first; nothing is kept. */
  take(since: number): readonly ReportedCalls[] {
    const calls = this.#since(since);
    this.#calls = [];
    this.#lastRefusedAt = undefined;
    return mergeCalls(calls, REPORT_STEPS);
  }

  get #newestAt(): number {
    return this.#calls.reduce((newest, { at }) => Math.max(newest, at), -Infinity);
  }

  /** In order: calls are noted as they are answered. */
  #since(since: number): ReportedCalls[] {
    return this.#calls.filter(({ at }) => at >= since).sort((one, other) => one.at - other.at);
  }
}

/** @param toBoard converts an instant */
export function encodeCalls(calls: readonly ReportedCalls[], toBoard: (at: number) => number): string {
  return calls
    .map(({ at, count, tookMs, isRefused, isWaitedFor, isProbe }) => {
      const traits = (isRefused ? REFUSED : 0) + (isWaitedFor ? WAITED_FOR : 0) + (isProbe ? PROBE : 0);
      return `${toBoard(at).toFixed(1)} ${String(count)} ${tookMs.toFixed(0)} ${String(traits)};`;
    })
    .join('');
}

/** Reads reports one after the other; what cannot be read is passed over. */
export function decodeCalls(mail: string, toLocal: (boardAt: number) => number): ReportedCalls[] {
  const calls: ReportedCalls[] = [];
  for (const entry of mail.split(';')) {
    const [boardAt, count, tookMs, traits] = entry.split(' ').map(Number);
    if (boardAt === undefined || count === undefined || tookMs === undefined || traits === undefined) continue;
    const at = toLocal(boardAt);
    if (!Number.isFinite(at) || !(count >= 1 && count <= 1e6) || !(tookMs >= 0) || !Number.isInteger(traits)) continue;
    calls.push({
      at,
      count,
      tookMs,
      isRefused: (traits & REFUSED) > 0,
      isWaitedFor: (traits & WAITED_FOR) > 0,
      isProbe: (traits & PROBE) > 0,
    });
  }
  return calls;
}

/**
 * Puts calls together where there are more than `steps` of them: those of one step become one, at the first one's instant. Refused
 * ones stay apart and part those around them, refused probes apart from both: at most five entries a step, and mostly one.
 */
function mergeCalls(calls: readonly ReportedCalls[], steps: number): ReportedCalls[] {
  if (calls.length <= steps) return [...calls];
  const merged: ReportedCalls[] = [];
  const stepMs = ((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)) / steps;
  /** Where calls of a kind can be added: refused ones, and refused probes. */
  const refusedIndex = new Map<boolean, number>();
  for (const call of calls) {
    const index = (call.isRefused ? refusedIndex.get(call.isProbe) : merged.length - 1) ?? -1;
    const one = merged[index];
    if (one?.isRefused === call.isRefused && call.at - one.at <= stepMs) {
      const isWaitedFor = one.isWaitedFor || call.isWaitedFor;
      merged[index] = { ...one, count: one.count + call.count, isWaitedFor };
    } else {
      const length = merged.push(call);
      if (call.isRefused) refusedIndex.set(call.isProbe, length - 1);
    }
  }
  return merged;
}
