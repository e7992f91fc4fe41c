/**
 * The rule that finds a limit (pure): in windows of some length that end with a refusal, the number of accepted calls stays the same,
 * although the number of calls made in them varies. Random faults let it vary as much as the calls do, outages more.
 */
import type { CallLog } from '../adaptive/call-log.ts';

/** Neighbours differ by so little that a limit shows in one of them, whatever its window is. */
const WINDOWS_MS = [
  ...[0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 45],
  ...[60, 90, 120, 180, 300, 420, 600, 900, 1200, 1800, 2700, 3600],
].map((seconds) => seconds * 1000);
/** Of a window, in which the last refusal is looked for. */
const SAMPLED_SHARE = 0.25;
/** Windows that must agree, twice. */
const SAMPLES = 8;
/** Smaller numbers vary too coarsely; they are found in a longer window. */
const MIN_ACCEPTED = 8;
/** The calls must vary so many times more than the accepted ones, */
const MIN_RATIO = 4;
/** or, where at least this share is refused, chance would vary the accepted ones so many times more. */
const MIN_SHARE_FOR_CHANCE = 0.6;
/** Of the calls made when so many were accepted already, at least this share must be refused. */
const MIN_REFUSED_SHARE = 0.25;
/** Two numbers from different windows agree when they differ by no more. */
const AGREEMENT = 0.1;

/** The figures behind a proposal. */
export interface WindowFigures {
  readonly windowMs: number;
  /** Windows with refusals that agree. */
  readonly windows: number;
  /** Accepted calls in a window that ends with a refusal, the median. */
  readonly acceptedPerWindow: number;
  /** Of the calls made when about as many had been accepted within the window, the share that was refused. */
  readonly shareAtHighRate: number;
  /** Of the calls made when fewer had been; undefined where there were none. */
  readonly shareAtLowRate: number | undefined;
}

/** The attempts made so far, those that were accepted, and those that are no retries. */
export interface CallLogs {
  readonly made: CallLog;
  readonly accepted: CallLog;
  readonly offered: CallLog;
}

/** How many of each were in one window. */
type Sample = Readonly<Record<keyof CallLogs, number>>;

/** The evidence in windows of one length. They do not overlap. */
export class WindowEvidence {
  static ofAllLengths(calls: CallLogs): readonly WindowEvidence[] {
    return WINDOWS_MS.map((windowMs) => new WindowEvidence(windowMs, calls));
  }

  readonly #windowMs: number;
  readonly #calls: CallLogs;
  #samples: Sample[] = [];
  /** The window that is being sampled ends about here. */
  #sampledAt = -Infinity;
  #sampled: Sample | undefined;
  /** The number that the windows before showed, which later ones must confirm. */
  #candidate = NaN;
  #high = { calls: 0, refused: 0 };
  #low = { calls: 0, refused: 0 };

  private constructor(windowMs: number, calls: CallLogs) {
    this.#windowMs = windowMs;
    this.#calls = calls;
  }

  /** The next call, not yet in the log. @returns the figures when a fixed number of accepted calls is confirmed */
  add(sentAt: number, isRefused: boolean, isRetry: boolean): WindowFigures | undefined {
    const figures = this.#endSample(sentAt);
    const from = sentAt - this.#windowMs;
    const { made, accepted, offered } = this.#calls;
    if (isRefused && this.#isSampling(sentAt) && from >= made.completeSinceAt) {
      if (this.#sampled === undefined) this.#sampledAt = sentAt;
      this.#sampled = {
        made: made.count(from, Infinity) + 1,
        accepted: accepted.count(from, Infinity),
        offered: offered.count(from, Infinity) + (isRetry ? 0 : 1),
      };
    }
    this.#countAtCandidate(from, isRefused);
    return figures;
  }

  /** From the first refusal after the last window, for a part of a window: by then the calls that the limit refuses have been made. */
  #isSampling(at: number): boolean {
    return this.#sampled !== undefined || at >= this.#sampledAt + this.#windowMs;
  }

  #endSample(at: number): WindowFigures | undefined {
    if (this.#sampled === undefined || at <= this.#sampledAt + SAMPLED_SHARE * this.#windowMs) return undefined;
    this.#samples.push(this.#sampled);
    this.#sampled = undefined;
    return this.#samples.length === SAMPLES ? this.#evaluate() : undefined;
  }

  #countAtCandidate(from: number, isRefused: boolean): void {
    if (Number.isNaN(this.#candidate)) return;
    const isAtCandidate = this.#calls.accepted.count(from, Infinity) >= 0.97 * this.#candidate - 1;
    const counts = isAtCandidate ? this.#high : this.#low;
    counts.calls++;
    if (isRefused) counts.refused++;
  }

  /** Begins anew with the number that is found. */
  #evaluate(): WindowFigures | undefined {
    const limit = median(this.#samples.map(({ accepted }) => accepted));
    const [high, low] = [this.#high, this.#low];
    const isFound = isNumberFixed(this.#samples);
    const isConfirmed =
      isFound && Math.abs(limit / this.#candidate - 1) <= AGREEMENT && high.refused >= MIN_REFUSED_SHARE * high.calls;
    this.#candidate = isFound ? limit : NaN;
    this.#samples = [];
    this.#high = { calls: 0, refused: 0 };
    this.#low = { calls: 0, refused: 0 };
    if (!isConfirmed) return undefined;
    return {
      ...{ windowMs: this.#windowMs, windows: 2 * SAMPLES, acceptedPerWindow: limit },
      shareAtHighRate: high.refused / high.calls,
      shareAtLowRate: low.calls === 0 ? undefined : low.refused / low.calls,
    };
  }
}

function isNumberFixed(samples: readonly Sample[]): boolean {
  const accepted = samples.map((sample) => sample.accepted);
  const limit = median(accepted);
  // A number of calls is known to within one.
  const required = MIN_RATIO * ((narrowestHalf(accepted) + 0.5) / limit);
  // Faults that are repeated until they succeed vary the attempts beside even calls; a dead node by turns varies the calls beside even attempts.
  const [made, offered] = [samples.map((sample) => sample.made), samples.map((sample) => sample.offered)];
  const varied = Math.min(...[made, offered].map((calls) => narrowestHalf(calls) / median(calls)));
  const refusedShare = Math.max(0, 1 - limit / median(offered));
  const byChance = refusedShare > MIN_SHARE_FOR_CHANCE ? Math.sqrt(refusedShare / limit) : 0;
  return limit >= MIN_ACCEPTED && Math.max(varied, byChance) >= required;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;
}

/** The range of the half of the values that lie closest together: robust against windows in which a limit is not reached. */
function narrowestHalf(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const half = Math.ceil(sorted.length / 2);
  return Math.min(...sorted.slice(half).map((value, index) => value - (sorted[index] ?? value)));
}
