/**
 * What a replica tells its leader of its calls (pure): when they were made, how many, how long they took, and what came of them. A
 * report is a text of bounded length; calls near each other are told as one where there are many.
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

/** Entries of one report. */
const MOST_ENTRIES = 64;
/** Entries kept until they are told, all together. */
const MOST_KEPT = 1024;
const REFUSED = 1;
const WAITED_FOR = 2;
const PROBE = 4;

/** Collects calls until they are taken. */
export class FleetReport {
  #calls: ReportedCalls[] = [];
  #refusedAt: number | undefined;

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** When the last refused call was made that nobody was told of. */
  get refusedAt(): number | undefined {
    return this.#refusedAt;
  }

  note(call: ReportedCalls): void {
    if (call.isRefused) this.#refusedAt = call.at;
    this.#calls.push(call);
    if (this.#calls.length > MOST_KEPT) this.#calls = merge(this.#calls, MOST_KEPT / 2);
  }

  /** Everything made at `since` or later, oldest first; nothing is kept. */
  take(since: number): readonly ReportedCalls[] {
    const calls = this.#calls.filter(({ at }) => at >= since).sort((one, other) => one.at - other.at);
    this.#calls = [];
    this.#refusedAt = undefined;
    return merge(calls, MOST_ENTRIES);
  }
}

/** @param toBoard converts an instant */
export function writeCalls(calls: readonly ReportedCalls[], toBoard: (at: number) => number): string {
  return calls
    .map(({ at, count, tookMs, isRefused, isWaitedFor, isProbe }) => {
      const traits = (isRefused ? REFUSED : 0) + (isWaitedFor ? WAITED_FOR : 0) + (isProbe ? PROBE : 0);
      return `${toBoard(at).toFixed(1)} ${String(count)} ${tookMs.toFixed(0)} ${String(traits)};`;
    })
    .join('');
}

/** Reads reports one after the other; what cannot be read is passed over. */
export function readCalls(mail: string, toLocal: (boardAt: number) => number): ReportedCalls[] {
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

/** At most so many entries and the refused: accepted calls that are nearest each other become one, at the later instant. */
function merge(calls: readonly ReportedCalls[], most: number): ReportedCalls[] {
  const merged: ReportedCalls[] = [];
  const first = calls[0]?.at ?? 0;
  const stepMs = calls.length <= most ? 0 : ((calls.at(-1)?.at ?? first) - first) / most;
  for (const call of calls) {
    const last = merged.at(-1);
    const joins = last !== undefined && !last.isRefused && !call.isRefused && call.at - last.at < stepMs;
    if (!joins) merged.push(call);
    else {
      const isWaitedFor = last.isWaitedFor || call.isWaitedFor;
      merged[merged.length - 1] = { ...last, count: last.count + call.count, isWaitedFor };
    }
  }
  return merged;
}
