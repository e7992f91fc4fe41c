/** The evidence that the bare responses with one status are refusals, in the order in which their attempts were sent (pure). */
import type { SuspectStatus } from '../../telemetry/events.ts';
import { CallLog } from '../adaptive/call-log.ts';
import { describeEndpoint } from '../endpoint.ts';
import { GapEvidence } from './gap-evidence.ts';
import { FullQueueDetector, RunsTest } from './other-causes.ts';
import { WindowEvidence, type CallLogs, type WindowFigures } from './window-evidence.ts';

/**
 * How an attempt ended. `fault`: no response, or 502 or 504. `other`: a response that says nothing here, such as 401 or 429, or an attempt
 * that the sidecar ended itself. A number is a bare suspect status that no setting names.
 */
export type AttemptSign = 'accepted' | 'fault' | 'other' | SuspectStatus;

/** An attempt that has ended, or whose response head has come. Instants are monotonic milliseconds. */
export interface ObservedAttempt {
  readonly sentAt: number;
  readonly endedAt: number;
  readonly sign: AttemptSign;
  readonly method: string;
  /** Without or with its query. */
  readonly path: string;
  /** The sidecar has sent the same call before. */
  readonly isRetry: boolean;
}

/** A status that is likely a rate limit, with the figures. */
export interface RefusalFinding extends WindowFigures {
  readonly status: SuspectStatus;
  /** Bare responses with the status since `firstAt`. */
  readonly refused: number;
  /** Accepted calls since then, to the endpoints that gave both. */
  readonly accepted: number;
  /** Monotonic instants of the first and the last one. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** Calls whose instants are kept, and for how long: the longest window. */
const MAX_CALLS = 16_384;
const MAX_AGE_MS = 3_600_000;
/** Of recent faults and suspect responses, the share of faults from which the others are a sign of trouble too. */
const MAX_FAULT_SHARE = 0.02;
/** Of one of them in the moving average. */
const FAULT_WEIGHT = 0.002;
/** Further endpoints count as one. */
const MAX_ENDPOINTS = 64;

/** What is known of one status. */
export class StatusEvidence {
  /** Undefined: it is not likely a rate limit, as far as is known. */
  finding: RefusalFinding | undefined;
  readonly #status: SuspectStatus;
  readonly #calls: CallLogs = {
    made: new CallLog(MAX_CALLS, MAX_AGE_MS),
    accepted: new CallLog(MAX_CALLS, MAX_AGE_MS),
    offered: new CallLog(MAX_CALLS, MAX_AGE_MS),
  };
  readonly #windows = WindowEvidence.ofAllLengths(this.#calls);
  readonly #gap = new GapEvidence();
  readonly #runs = new RunsTest();
  readonly #queue: FullQueueDetector;
  readonly #endpoints = new Map<string, { accepted: number; refused: number }>();
  #faultShare = 0;
  #faults = 0;
  #refused = 0;
  #firstAt = NaN;

  /** @param shortestMs what an accepted attempt took at least, before the first suspect response */
  constructor(status: SuspectStatus, shortestMs: number) {
    this.#status = status;
    this.#queue = new FullQueueDetector(shortestMs);
  }

  add({ sentAt, endedAt, sign, method, path, isRetry }: ObservedAttempt): void {
    const isRefused = sign === this.#status;
    if (isRefused || sign === 'fault') this.#countFault(sentAt, !isRefused);
    if (!isRefused && sign !== 'accepted') return;
    if (!this.#isMixed(describeEndpoint(method, path), isRefused)) return;
    for (const window of this.#windows) this.#conclude(window.add(sentAt, isRefused, isRetry), sentAt);
    this.#calls.made.add(sentAt);
    if (!isRetry) this.#calls.offered.add(sentAt);
    if (!isRefused) this.#calls.accepted.add(sentAt);
    this.#queue.add(isRefused, endedAt - sentAt);
    this.#runs.add(isRefused);
    this.#conclude(this.#gap.add(sentAt, isRefused), sentAt);
  }

  #countFault(sentAt: number, isFault: boolean): void {
    if (isFault) this.#faults++;
    else {
      this.#refused++;
      if (Number.isNaN(this.#firstAt)) this.#firstAt = sentAt;
    }
    const weight = Math.max(FAULT_WEIGHT, 1 / (this.#faults + this.#refused));
    this.#faultShare += ((isFault ? 1 : 0) - this.#faultShare) * weight;
  }

  /** An endpoint that is always refused is forbidden or broken, and one that never is has no part in the limit. */
  #isMixed(endpoint: string, isRefused: boolean): boolean {
    const isListed = this.#endpoints.has(endpoint) || this.#endpoints.size < MAX_ENDPOINTS;
    const name = isListed ? endpoint : '';
    const counts = this.#endpoints.get(name) ?? { accepted: 0, refused: 0 };
    this.#endpoints.set(name, counts);
    counts[isRefused ? 'refused' : 'accepted']++;
    return counts.accepted > 0 && counts.refused > 0;
  }

  #conclude(figures: WindowFigures | undefined, lastAt: number): void {
    if (figures === undefined || this.#faultShare > MAX_FAULT_SHARE) return;
    if (this.#queue.isFull || this.#runs.isByChance) return;
    let accepted = 0;
    for (const counts of this.#endpoints.values()) if (counts.refused > 0) accepted += counts.accepted;
    const [status, refused, firstAt] = [this.#status, this.#refused, this.#firstAt];
    this.finding = { ...figures, status, refused, accepted, firstAt, lastAt };
  }
}
