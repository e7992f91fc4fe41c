/**
 * Trying for more (pure): when, and how. A limit that holds is tried again and again, or a raised one would never be found; each
 * trial costs about one refusal, so the time between them doubles while they are refused, up to a measure. Within a trial calls
 * beyond the known limit go out one at a time, until they have been accepted often enough to believe in more.
 */
import type { LearningParameters } from './learning-parameters.ts';

/** An unanswered call beyond the limit holds up the next one for at most so long. */
const MAX_RESPONSE_WAIT_MS = 2_000;
/** Accepted calls beyond the limit after which the rate doubles each second. */
const PROBE_CALLS_BEFORE_DOUBLING = 6;
/** Each so many accepted ones allow one more at a time. */
const ACCEPTED_CALLS_PER_EXTRA_PROBE = 4;
const MIN_GAIN = 1.02;
/** A trial refused within so many calls was too bold, one that outlasted so many too timid. */
const TOO_FAST_CALLS = 4;
const TOO_SLOW_CALLS = 8;

/** The schedule of trials, and the one that is under way. */
export class LimitProbe {
  readonly #parameters: LearningParameters;
  #gain: number;
  #intervalMs: number;
  #dueAt = Infinity;
  #intervalStartedAt = 0;
  #callsInInterval = 0;
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

  /** When the next one may begin. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** Permits per second of the one under way. */
  get rate(): number {
    return this.#rate;
  }

  /** Calls accepted in the one under way. */
  get acceptedCalls(): number {
    return this.#acceptedCalls;
  }

  /** A refusal has come. `surprised`: nothing that was believed had foreseen it. */
  scheduleAfterRefusal(now: number, surprised: boolean): void {
    const { firstProbeDelayMs, probeIntervalMs, probeIntervalCalls } = this.#parameters;
    const longest = this.#callsInInterval > probeIntervalCalls ? probeIntervalMs : Infinity;
    this.#intervalMs = surprised
      ? firstProbeDelayMs
      : Math.max(firstProbeDelayMs, Math.min(this.#intervalMs * 2, longest));
    this.#intervalStartedAt = now;
    this.#callsInInterval = 0;
    this.#dueAt = now + this.#intervalMs;
  }

  /** What is believed has been learned elsewhere: it is tried soon, yet not at once. */
  scheduleFirst(now: number, afterMs: number): void {
    this.#intervalStartedAt = now;
    this.#dueAt = now + afterMs;
  }

  /** A limit that held does so no longer: for a while it is tried more often. */
  recordLimitChange(now: number): void {
    this.#afterChangeUntil = now + this.#parameters.afterChangeMs;
  }

  /** A call was granted within the limit. */
  countCall(now: number): void {
    const { probeIntervalMs, probeIntervalCalls, probeIntervalCallsAfterChange } = this.#parameters;
    const enough =
      ++this.#callsInInterval > (now < this.#afterChangeUntil ? probeIntervalCallsAfterChange : probeIntervalCalls);
    if (enough) this.#dueAt = Math.min(this.#dueAt, Math.max(now, this.#intervalStartedAt + probeIntervalMs));
  }

  /** Begins at the known rate times the gain. */
  start(knownRate: number): void {
    this.#startFrom(knownRate * this.#gain);
  }

  /** The limit was raised: goes on from the rate that was accepted. */
  continueFrom(rate: number): void {
    this.#startFrom(rate);
  }

  /** A refusal has ended it. */
  end(): void {
    const excess = this.#gain - 1;
    if (this.#acceptedCalls < TOO_FAST_CALLS) this.#gain = Math.max(MIN_GAIN, 1 + excess / 2);
    else if (this.#acceptedCalls > TOO_SLOW_CALLS) this.#gain = Math.min(this.#parameters.probeGain, 1 + excess * 1.5);
  }

  /** When the next call may go, as far as unanswered ones beyond the limit hold it up. */
  openAt(now: number): number {
    const allowed =
      this.#parameters.maxUnansweredProbeCalls + Math.floor(this.#acceptedProbeCalls / ACCEPTED_CALLS_PER_EXTRA_PROBE);
    const holds = this.#unansweredProbeCalls >= allowed && now < this.#lastProbeCallAt + MAX_RESPONSE_WAIT_MS;
    return holds ? this.#lastProbeCallAt + MAX_RESPONSE_WAIT_MS : -Infinity;
  }

  recordProbeCallSent(now: number): void {
    this.#unansweredProbeCalls++;
    this.#lastProbeCallAt = now;
  }

  /** A call that was sent beyond the limit has ended, whenever that was. */
  recordProbeCallEnded(): void {
    this.#unansweredProbeCalls--;
  }

  /** @param isUnlimited no idea of a limit is left */
  recordAccepted(now: number, wasBeyond: boolean, inUse: boolean, isUnlimited: boolean): void {
    this.#acceptedCalls++;
    if (wasBeyond) this.#acceptedProbeCalls++;
    if (!wasBeyond && !inUse) return;
    const ms = Math.min(now - this.#lastIncreaseAt, Math.max(100, 1000 / this.#rate));
    this.#lastIncreaseAt = now;
    const convinced = isUnlimited || (wasBeyond && this.#acceptedProbeCalls > PROBE_CALLS_BEFORE_DOUBLING);
    this.#rate *= (convinced ? 2 : 1 + (this.#gain - 1) * 0.6) ** (ms / 1000);
  }

  #startFrom(rate: number): void {
    this.#rate = rate;
    this.#acceptedCalls = 0;
    this.#acceptedProbeCalls = 0;
  }
}
