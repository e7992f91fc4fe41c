/**
 * Probing: when and how the learned limit is exceeded to find out whether it was raised (pure). A probe costs about one refusal, so a limit is
 * probed only after a time in use and a number of calls without a refusal. Within a probe, calls beyond the limit go one at a time, until more
 * of them were accepted than the limiter can have saved up.
 */

/** A stable limit is probed again after this time in use and this number of calls. */
export const PROBE_INTERVAL_MS = 30_000;
export const PROBE_INTERVAL_CALLS = 400;
/** After the limit has changed, fewer calls are enough for a time. */
export const PROBE_INTERVAL_CALLS_AFTER_CHANGE = 60;
const AFTER_CHANGE_MS = 900_000;
/**
 * In a fleet, a limit that has not explained enough refusals yet is probed after this time or this number of calls: the fleet begins from
 * less, what its replicas did alone. One process loses by early probes, docs/adr/0015 has the figures.
 */
export const UNTRUSTED_PROBE_MS = 10_000;
export const UNTRUSTED_PROBE_CALLS = 60;
/** A probe begins at the learned rate times this. */
export const PROBE_GAIN = 1.25;
/** A limit that allows only this part of what was accepted before is probed at that rate, first after this time without a refusal. */
const FALLEN_SHARE = 0.35;
const FIRST_FALLEN_DELAY_MS = 45_000;
const LONGEST_FALLEN_DELAY_MS = 1_800_000;
/** After so long a time without a refusal the delay begins anew. */
const QUIET_MS = 900_000;
/** The next call beyond the limit waits for the response to the last one for at most this time. */
const MAX_RESPONSE_WAIT_MS = 2_000;
/** This many accepted calls beyond what a limiter can save up allow one more at a time. */
const ACCEPTED_CALLS_PER_EXTRA_LIMIT_PROBE = 4;
/** At a rate from before, one more call at a time for so many accepted ones: a large limit leaves much that it can have saved up. */
const ACCEPTED_CALLS_PER_EXTRA_AT_FORMER_RATE = 50;
const MIN_GAIN = 1.02;
/** A probe refused after fewer calls began too fast, one refused after more calls too slowly. */
const TOO_FAST_CALLS = 4;
const TOO_SLOW_CALLS = 8;
/** A faster probe is refused by a raised limit before enough calls were accepted to show that it was raised. */
const MAX_RATE_FACTOR = 2;
/** Share of the gain by which the rate grows each second. */
const GROWTH_SHARE = 0.6;

/** The schedule of probes, and the one in progress. Its public fields are written here only. */
export class LimitProbe {
  readonly #isOfFleet: boolean;
  #gain = PROBE_GAIN;
  /** When the next probe may begin; Infinity while too few calls were sent since the last refusal. */
  dueAt = Infinity;
  #intervalStartedAt = 0;
  #callsInInterval = 0;
  #slowdown = 1;
  #fallenDelayMs = FIRST_FALLEN_DELAY_MS;
  #afterChangeUntil = -Infinity;

  /** Permits per second of the probe in progress. */
  rate = Infinity;
  #maxRate = Infinity;
  /** Calls accepted in the probe in progress. */
  acceptedCalls = 0;
  #acceptedLimitProbes = 0;
  #explainableCalls = 0;
  #openLimitProbes = 0;
  #lastLimitProbeAt = -Infinity;
  #lastIncreaseAt = 0;

  constructor(isOfFleet = false) {
    this.#isOfFleet = isOfFleet;
  }

  /** @param slowdown how many times more rarely the limit is probed */
  scheduleAfterRefusal(now: number, slowdown = 1): void {
    if (now - this.#intervalStartedAt > QUIET_MS) this.#fallenDelayMs = FIRST_FALLEN_DELAY_MS;
    this.#slowdown = slowdown;
    this.#intervalStartedAt = now;
    this.#callsInInterval = 0;
    this.dueAt = Infinity;
  }

  scheduleFirst(now: number, delayMs: number): void {
    this.#intervalStartedAt = now;
    this.dueAt = now + delayMs;
  }

  recordLimitChange(now: number): void {
    this.#afterChangeUntil = now + AFTER_CHANGE_MS;
  }

  /**
   * Each time that this was so doubles the time to the next.
   * @param learnedRate permits per second in use
   * @param formerRate calls per second that were accepted before
   */
  takeFallenDue(now: number, learnedRate: number, formerRate: number): boolean {
    if (learnedRate > FALLEN_SHARE * formerRate || now < this.#intervalStartedAt + this.#fallenDelayMs) return false;
    this.#fallenDelayMs = Math.min(LONGEST_FALLEN_DELAY_MS, 2 * this.#fallenDelayMs);
    return true;
  }

  /** @param isTrusted the limit has explained enough refusals */
  countCall(now: number, isTrusted: boolean): void {
    const minCalls = now < this.#afterChangeUntil ? PROBE_INTERVAL_CALLS_AFTER_CHANGE : PROBE_INTERVAL_CALLS;
    this.#callsInInterval++;
    const isLong = now - this.#intervalStartedAt >= UNTRUSTED_PROBE_MS * this.#slowdown;
    const isOften = this.#callsInInterval > UNTRUSTED_PROBE_CALLS * this.#slowdown;
    if (this.#isOfFleet && !isTrusted && (isLong || isOften)) this.dueAt = Math.min(this.dueAt, now);
    // A refusal that costs more time is made up for by time: the calls are few already.
    if (this.#callsInInterval <= minCalls) return;
    this.dueAt = Math.min(this.dueAt, Math.max(now, this.#intervalStartedAt + PROBE_INTERVAL_MS * this.#slowdown));
  }

  /**
   * Begins a probe at the learned rate times the gain.
   * @param limitRate permits per second that the limit allows: at less than that a probe would never be refused
   * @param explainableCalls calls beyond the limit that can be accepted although it was not raised
   */
  start(learnedRate: number, limitRate: number, explainableCalls: number): void {
    this.#explainableCalls = explainableCalls;
    this.#maxRate = limitRate * MAX_RATE_FACTOR;
    this.continueFrom(learnedRate * this.#gain);
  }

  /** The rate was accepted. */
  continueFrom(rate: number): void {
    this.rate = rate;
    this.acceptedCalls = 0;
    this.#acceptedLimitProbes = 0;
  }

  /** A refusal ended the probe: adjusts the gain of the next one. */
  end(): void {
    const excess = this.#gain - 1;
    if (this.acceptedCalls < TOO_FAST_CALLS) this.#gain = Math.max(MIN_GAIN, 1 + excess / 2);
    else if (this.acceptedCalls > TOO_SLOW_CALLS) this.#gain = Math.min(PROBE_GAIN, 1 + excess * 1.5);
  }

  /** When the next call may go, as far as calls beyond the limit without a response delay it; -Infinity: now. */
  openAt(now: number): number {
    const unexplained = Math.max(0, this.#acceptedLimitProbes - this.#explainableCalls);
    const isAtFormerRate = this.#maxRate === Infinity;
    const saved = isAtFormerRate ? this.#acceptedLimitProbes / ACCEPTED_CALLS_PER_EXTRA_AT_FORMER_RATE : 0;
    const allowed = 1 + Math.floor(Math.max(saved, unexplained / ACCEPTED_CALLS_PER_EXTRA_LIMIT_PROBE));
    const waitsUntil = this.#lastLimitProbeAt + MAX_RESPONSE_WAIT_MS;
    return this.#openLimitProbes >= allowed && now < waitsUntil ? waitsUntil : -Infinity;
  }

  recordLimitProbeSent(now: number): void {
    this.#openLimitProbes++;
    this.#lastLimitProbeAt = now;
  }

  /** A call beyond the limit has ended, in this probe or a former one. */
  recordLimitProbeEnded(): void {
    this.#openLimitProbes--;
  }

  /**
   * @param isInUse a call waited for the permit
   * @param hasNoLimit no limit is known: the rate doubles each second
   */
  recordAccepted(now: number, isLimitProbe: boolean, isInUse: boolean, hasNoLimit: boolean): void {
    this.acceptedCalls++;
    if (isLimitProbe) this.#acceptedLimitProbes++;
    if (!isLimitProbe && !isInUse) return;
    const ms = Math.min(now - this.#lastIncreaseAt, Math.max(100, 1000 / this.rate));
    this.#lastIncreaseAt = now;
    const rate = this.rate * (hasNoLimit ? 2 : 1 + (this.#gain - 1) * GROWTH_SHARE) ** (ms / 1000);
    this.rate = hasNoLimit ? rate : Math.max(this.rate, Math.min(this.#maxRate, rate));
  }
}
