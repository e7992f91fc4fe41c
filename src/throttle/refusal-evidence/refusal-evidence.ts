/**
 * Collects the evidence that an upstream's bare 503 or 403 is a rate limit that no setting names (pure). It sees when each attempt was sent
 * and how it ended, and has no way to delay, repeat or pace a call. How a number of accepted calls is found is in window-evidence.ts.
 */
import { SUSPECT_STATUSES, type SuspectStatus } from '../../telemetry/events.ts';
import { describeEndpoint } from '../endpoint.ts';
import { AttemptSequence, type SequencedAttempt } from './attempt-sequence.ts';
import { GapEvidence } from './gap-evidence.ts';
import { QueueDetector } from './queue-detector.ts';
import { WindowEvidence, type WindowFigures } from './window-evidence.ts';

/** Whether the status is one of them. */
export function isSuspectStatus(status: number): status is SuspectStatus {
  return status >= 403 && (SUSPECT_STATUSES as readonly number[]).includes(status);
}

/**
 * How an attempt ended. `fault`: no response, or 502 or 504. `other`: a response that says nothing here, such as 401 or 429, or an attempt
 * that the sidecar ended itself. A number is a bare suspect status that no setting names.
 */
export type AttemptSign = 'accepted' | 'fault' | 'other' | SuspectStatus;

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

/** Where limits are usual, milliseconds; a number is found at a multiple of its window too. */
const WINDOWS_MS = [
  ...[1000, 2000, 3000, 5000, 10_000, 15_000, 20_000, 30_000],
  ...[60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000],
];
/** Without a refusal for so long, all evidence is dropped. */
const FORGET_AFTER_MS = 86_400_000;

/** Of one call in the moving average of latencies: slow to rise, so that a growing queue does not pass for calm. */
const FALL_WEIGHT = 0.01;
const RISE_WEIGHT = 0.002;
/** Calls in calm take at most so many times what the quickest took. */
const MAX_TIMES_LOWEST = 10;
/** Before that, the plain mean. */
const FIRST_CALLS = 50;
/** Consecutive refusals after which an accepted call begins a new cycle. */
const REFUSALS_OF_A_CYCLE = 3;

/** Numbers of endpoints are below this. */
const MAX_ENDPOINTS = 64;

const CODES = { accepted: 2, fault: 3, other: 4 } as const;

export class RefusalEvidence {
  readonly #sequence = new AttemptSequence();
  readonly #endpoints = new EndpointTable();
  readonly #byStatus = new Map<number, StatusEvidence>();
  #lastRefusedAt = 0;
  /** Of accepted calls before the first refusal, moving average. */
  #calmLatencyMs = 0;
  #calmCalls = 0;
  /** Of any accepted call so far. */
  #lowestLatencyMs = Infinity;

  /** Suspect responses have come. */
  get isCollecting(): boolean {
    return this.#byStatus.size > 0;
  }

  /** An attempt is sent. @returns its number for `end` */
  start(now: number, isRetry: boolean): number {
    return this.#sequence.start(now, isRetry);
  }

  /**
   * An attempt has ended, or its response head has come.
   * @param path without or with its query
   */
  end(attempt: number, now: number, sign: AttemptSign, method: string, path: string): void {
    const code = typeof sign === 'number' ? sign : CODES[sign];
    if (!this.isCollecting && typeof sign === 'string') {
      const latencyMs = this.#sequence.end(attempt, now, code, 0);
      if (sign === 'accepted') this.recordCalm(latencyMs);
      this.#sequence.discardEnded();
      return;
    }
    if (typeof sign === 'number') {
      this.#lastRefusedAt = now;
      if (!this.#byStatus.has(sign))
        this.#byStatus.set(sign, new StatusEvidence(sign, this.#readCalmLatency(), this.#lowestLatencyMs));
    } else if (now - this.#lastRefusedAt > FORGET_AFTER_MS) {
      this.#byStatus.clear();
      this.#endpoints.clear();
    }
    this.#sequence.end(attempt, now, code, this.#endpoints.find(method, path));
    for (let next = this.#sequence.take(); next !== undefined; next = this.#sequence.take())
      for (const evidence of this.#byStatus.values()) evidence.add(next);
  }

  /** What accepted calls take without refusals; Infinity: too few were seen. */
  #readCalmLatency(): number {
    return this.#calmCalls < FIRST_CALLS ? Infinity : this.#calmLatencyMs;
  }

  /** A call was accepted while no suspect response has come. */
  recordCalm(latencyMs: number): void {
    this.#lowestLatencyMs = Math.min(this.#lowestLatencyMs, latencyMs);
    const change = latencyMs - this.#calmLatencyMs;
    const weight = change < 0 ? FALL_WEIGHT : RISE_WEIGHT;
    this.#calmLatencyMs += change * (this.#calmCalls < FIRST_CALLS ? 1 / ++this.#calmCalls : weight);
  }

  /** One for each status that is likely a rate limit. */
  get findings(): readonly RefusalFinding[] {
    const found: RefusalFinding[] = [];
    for (const { finding } of this.#byStatus.values()) if (finding !== undefined) found.push(finding);
    return found;
  }
}

/** What is known of one status. */
class StatusEvidence {
  finding: RefusalFinding | undefined;
  readonly #status: SuspectStatus;
  readonly #windows = WINDOWS_MS.map((windowMs) => new WindowEvidence(windowMs));
  readonly #acceptedBy = new Float64Array(MAX_ENDPOINTS);
  readonly #refusedBy = new Float64Array(MAX_ENDPOINTS);
  /** From one recovery to the next: windows of a length that is not in the list. */
  readonly #cycle = new WindowEvidence(Infinity);
  readonly #all = [...this.#windows, this.#cycle];
  readonly #gap = new GapEvidence();
  readonly #calmLatencyMs: number;
  readonly #queue: QueueDetector;
  /** Since the gaps were evaluated. */
  #faults = 0;
  #refusedInARow = 0;
  #refused = 0;
  #firstAt: number | undefined;
  #lastAt = 0;

  constructor(status: SuspectStatus, calmLatencyMs: number, lowestLatencyMs: number) {
    this.#calmLatencyMs = calmLatencyMs;
    this.#queue = new QueueDetector(lowestLatencyMs);
    this.#status = status;
  }

  add({ sentAt, latencyMs, code, endpoint, isRetry }: SequencedAttempt): void {
    const isRefused = code === this.#status;
    if (isRefused) {
      this.#refused++;
      this.#firstAt ??= sentAt;
      this.#lastAt = sentAt;
    } else if (code !== CODES.accepted && code !== CODES.fault) return;
    if (code !== CODES.fault) {
      const counts = isRefused ? this.#refusedBy : this.#acceptedBy;
      counts[endpoint] = (counts[endpoint] ?? 0) + 1;
      if (!this.#isMixed(endpoint)) return;
      if (isRefused) this.#queue.addRefused();
      else this.#queue.addAccepted(latencyMs);
    }
    const isRecovery = code === CODES.accepted && this.#refusedInARow >= REFUSALS_OF_A_CYCLE;
    if (isRecovery && this.#cycle.startBlock(sentAt)) this.#evaluate(this.#cycle);
    this.#refusedInARow = isRefused ? this.#refusedInARow + 1 : 0;
    for (const window of this.#windows) if (window.advance(sentAt)) this.#evaluate(window);
    this.#addToWindows(code, sentAt, latencyMs, isRetry);
    if (code === CODES.fault) this.#faults++;
    else if (this.#gap.add(sentAt, isRefused)) this.#evaluateGap();
  }

  #addToWindows(code: number, sentAt: number, latencyMs: number, isRetry: boolean): void {
    for (const window of this.#all) {
      if (code === this.#status) window.addRefused(latencyMs, isRetry);
      else if (code === CODES.accepted) window.addAccepted(sentAt, latencyMs, isRetry);
      else window.addFault();
    }
  }

  /** An endpoint that is always refused is forbidden or broken, and one that never is has no part in the limit. */
  #isMixed(endpoint: number): boolean {
    return (this.#acceptedBy[endpoint] ?? 0) > 0 && (this.#refusedBy[endpoint] ?? 0) > 0;
  }

  #evaluate(window: WindowEvidence): void {
    this.#setFinding(window.evaluate(Math.min(this.#calmLatencyMs, MAX_TIMES_LOWEST * this.#queue.lowestMs)));
  }

  #evaluateGap(): void {
    const hasFaults = this.#faults > 0;
    this.#faults = 0;
    this.#setFinding(this.#gap.evaluate(hasFaults));
  }

  #setFinding(figures: WindowFigures | undefined): void {
    if (figures === undefined || this.#queue.isQueueing) return;
    const perMs = figures.acceptedPerWindow / figures.windowMs;
    if (this.#windows.some((window) => window.windowMs < figures.windowMs && window.refutes(perMs))) return;
    this.finding = {
      ...figures,
      status: this.#status,
      refused: this.#refused,
      accepted: this.#countAccepted(),
      firstAt: this.#firstAt ?? 0,
      lastAt: this.#lastAt,
    };
  }

  #countAccepted(): number {
    return this.#acceptedBy.reduce(
      (sum, accepted, endpoint) => sum + ((this.#refusedBy[endpoint] ?? 0) > 0 ? accepted : 0),
      0,
    );
  }
}

/** Numbers for endpoints. Bounded: what does not fit shares the number 0. */
class EndpointTable {
  readonly #numbers = new Map<string, number>();

  /** 0 when the table is full. */
  find(method: string, path: string): number {
    const form = describeEndpoint(method, path);
    const known = this.#numbers.get(form);
    if (known !== undefined) return known;
    const next = this.#numbers.size + 1;
    if (next >= MAX_ENDPOINTS) return 0;
    this.#numbers.set(form, next);
    return next;
  }

  clear(): void {
    this.#numbers.clear();
  }
}
