/**
 * Probing: when and how the learned limit is exceeded to find out whether it was raised (pure). A probe costs about one refusal, so
 * the interval doubles while probes are refused, up to `probeIntervalMs` once enough calls were sent. Within a probe, calls beyond the
 * limit go one at a time until enough of them were accepted.
 */
import type { LearningParameters } from './learning-parameters.ts';

/** The next call beyond the limit waits for the response to the last one for at most this time. */
const MAX_RESPONSE_WAIT_MS = 2_000;
/** Accepted calls beyond the limit after which the rate doubles each second. */
const PROBE_CALLS_BEFORE_DOUBLING = 6;
/** This many accepted calls beyond the limit allow one more at a time. */
const ACCEPTED_CALLS_PER_EXTRA_PROBE = 4;
const MIN_GAIN = 1.02;
/** A probe refused after fewer calls began too fast, one refused after more calls too slowly. */
const TOO_FAST_CALLS = 4;
const TOO_SLOW_CALLS = 8;

/** The schedule of probes, and the one in progress. */
export class LimitProbe {
  readonly #parameters: LearningParameters;
  #gain: number;
  #intervalMs: number;
  #dueAt = Infinity;
  #intervalStartedAt = 0;
  #callsInInterval = 0;
  #slowdown = 1;
  #afterChangeUntil = -Infinity;

  #rate = Infinity;
  #acceptedCalls = 0;
  #acceptedProbeCalls = 0;
  #unansweredProbeCalls = 0;
  #lastProbeCallAt = -Infinity;
  #lastIncreaseAt = 0;

  constructor(parameters: LearningParameters) {
    this.#parameters = parameters;
    this.#gain = parameters.probeGain;
    this.#intervalMs = parameters.firstProbeDelayMs;
  }

  /** When the next probe may begin; Infinity before the first refusal. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** Permits per second of the probe in progress. */
  get rate(): number {
    return this.#rate;
  }

  /** Calls accepted in the probe in progress. */
  get acceptedCalls(): number {
    return this.#acceptedCalls;
  }

  /**
   * @param isUnexpected no model explained the refusal: the interval starts again at its shortest
   * @param slowdown how many times more rarely a stable limit is probed
   */
  scheduleAfterRefusal(now: number, isUnexpected: boolean, slowdown = 1): void {
    const { firstProbeDelayMs, probeIntervalMs, probeIntervalCalls } = this.#parameters;
    this.#slowdown = slowdown;
    const maxIntervalMs = this.#callsInInterval > probeIntervalCalls * slowdown ? probeIntervalMs * slowdown : Infinity;
    this.#intervalMs = isUnexpected
      ? firstProbeDelayMs
      : Math.max(firstProbeDelayMs, Math.min(this.#intervalMs * 2, maxIntervalMs));
    this.#intervalStartedAt = now;
    this.#callsInInterval = 0;
    this.#dueAt = now + this.#intervalMs;
  }

  /** The model was restored. */
  scheduleFirst(now: number, delayMs: number): void {
    this.#intervalStartedAt = now;
    this.#dueAt = now + delayMs;
  }

  /** The limit has changed: for a while it is probed after fewer calls. */
  recordLimitChange(now: number): void {
    this.#afterChangeUntil = now + this.#parameters.afterChangeMs;
  }

  countCall(now: number): void {
    const { probeIntervalMs, probeIntervalCalls, probeIntervalCallsAfterChange } = this.#parameters;
    const minCalls = now < this.#afterChangeUntil ? probeIntervalCallsAfterChange : probeIntervalCalls;
    if (++this.#callsInInterval <= minCalls * this.#slowdown) return;
    this.#dueAt = Math.min(this.#dueAt, Math.max(now, this.#intervalStartedAt + probeIntervalMs * this.#slowdown));
  }

  /** Begins a probe at the learned rate times the gain. */
  start(learnedRate: number): void {
    this.continueFrom(learnedRate * this.#gain);
  }

  /** Begins a probe at a rate that was accepted. */
  continueFrom(rate: number): void {
    this.#rate = rate;
    this.#acceptedCalls = 0;
    this.#acceptedProbeCalls = 0;
  }

  /** A refusal ended the probe: adjusts the gain of the next one. */
  end(): void {
    const excess = this.#gain - 1;
    if (this.#acceptedCalls < TOO_FAST_CALLS) this.#gain = Math.max(MIN_GAIN, 1 + excess / 2);
    else if (this.#acceptedCalls > TOO_SLOW_CALLS) this.#gain = Math.min(this.#parameters.probeGain, 1 + excess * 1.5);
  }

  /** When the next call may go, as far as calls beyond the limit without a response delay it; -Infinity: now. */
  openAt(now: number): number {
    const allowed =
      this.#parameters.maxUnansweredProbeCalls + Math.floor(this.#acceptedProbeCalls / ACCEPTED_CALLS_PER_EXTRA_PROBE);
    const waitsUntil = this.#lastProbeCallAt + MAX_RESPONSE_WAIT_MS;
    return this.#unansweredProbeCalls >= allowed && now < waitsUntil ? waitsUntil : -Infinity;
  }

  recordProbeCallSent(now: number): void {
    this.#unansweredProbeCalls++;
    this.#lastProbeCallAt = now;
  }

  /** A call beyond the limit has ended, in this probe or a former one. */
  recordProbeCallEnded(): void {
    this.#unansweredProbeCalls--;
  }

  /**
   * @param isInUse a call waited for the permit
   * @param hasNoModel no model limits the rate
   */
  recordAccepted(now: number, isProbeCall: boolean, isInUse: boolean, hasNoModel: boolean): void {
    this.#acceptedCalls++;
    if (isProbeCall) this.#acceptedProbeCalls++;
    if (!isProbeCall && !isInUse) return;
    const ms = Math.min(now - this.#lastIncreaseAt, Math.max(100, 1000 / this.#rate));
    this.#lastIncreaseAt = now;
    const doubles = hasNoModel || (isProbeCall && this.#acceptedProbeCalls > PROBE_CALLS_BEFORE_DOUBLING);
    this.#rate *= (doubles ? 2 : 1 + (this.#gain - 1) * 0.6) ** (ms / 1000);
  }
}
