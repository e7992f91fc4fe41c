/**
 * Trying for more (pure): when, and how. A limit that holds is tried again and again, or a raised one would never be found; each
 * trial costs about one refusal, so the time between them doubles while they are refused, up to a measure. Within a trial calls
 * beyond the known limit go out one at a time, until they have been accepted often enough to believe in more.
 */
import type { LearningParameters } from './parameters.ts';

/** An unanswered call beyond the limit holds up the next one for at most so long. */
const PATIENCE_MS = 2_000;
/** Accepted calls beyond the limit after which the rate doubles each second. */
const CONVINCED = 6;
/** Each so many accepted ones allow one more at a time. */
const PER_CALL_MORE = 4;
const LEAST_GAIN = 1.02;
/** A trial refused within so many calls was too bold, one that outlasted so many too timid. */
const TOO_BOLD = 4;
const TOO_TIMID = 8;

/** The schedule of trials, and the one that is under way. */
export class Trial {
  readonly #parameters: LearningParameters;
  #gain: number;
  #gapMs: number;
  #dueAt = Infinity;
  #since = 0;
  #callsSince = 0;
  #unsettledUntil = -Infinity;

  #rate = Infinity;
  #accepted = 0;
  #beyondAccepted = 0;
  #beyondUnanswered = 0;
  #beyondAt = -Infinity;
  #grownAt = 0;

  constructor(parameters: LearningParameters) {
    this.#parameters = parameters;
    this.#gain = parameters.trialGain;
    this.#gapMs = parameters.firstTrialMs;
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
  get accepted(): number {
    return this.#accepted;
  }

  /** A refusal has come. `surprised`: nothing that was believed had foreseen it. */
  postpone(now: number, surprised: boolean): void {
    const { firstTrialMs, trialEveryMs, trialEveryCalls } = this.#parameters;
    const longest = this.#callsSince > trialEveryCalls ? trialEveryMs : Infinity;
    this.#gapMs = surprised ? firstTrialMs : Math.max(firstTrialMs, Math.min(this.#gapMs * 2, longest));
    this.#since = now;
    this.#callsSince = 0;
    this.#dueAt = now + this.#gapMs;
  }

  /** What is believed has been learned elsewhere: it is tried soon, yet not at once. */
  scheduleFirst(now: number, afterMs: number): void {
    this.#since = now;
    this.#dueAt = now + afterMs;
  }

  /** A limit that held does so no longer: for a while it is tried more often. */
  unsettle(now: number): void {
    this.#unsettledUntil = now + this.#parameters.unsettledMs;
  }

  /** A call was granted within the limit. */
  countCall(now: number): void {
    const { trialEveryMs, trialEveryCalls, unsettledCalls } = this.#parameters;
    const enough = ++this.#callsSince > (now < this.#unsettledUntil ? unsettledCalls : trialEveryCalls);
    if (enough) this.#dueAt = Math.min(this.#dueAt, Math.max(now, this.#since + trialEveryMs));
  }

  /** Begins at the known rate times the gain. */
  begin(knownRate: number): void {
    this.#goOn(knownRate * this.#gain);
  }

  /** The limit was raised: goes on from the rate that was accepted. */
  goOnFrom(rate: number): void {
    this.#goOn(rate);
  }

  /** A refusal has ended it. */
  end(): void {
    const excess = this.#gain - 1;
    if (this.#accepted < TOO_BOLD) this.#gain = Math.max(LEAST_GAIN, 1 + excess / 2);
    else if (this.#accepted > TOO_TIMID) this.#gain = Math.min(this.#parameters.trialGain, 1 + excess * 1.5);
  }

  /** When the next call may go, as far as unanswered ones beyond the limit hold it up. */
  opensAt(now: number): number {
    const allowed = this.#parameters.trialCallsAtOnce + Math.floor(this.#beyondAccepted / PER_CALL_MORE);
    const holds = this.#beyondUnanswered >= allowed && now < this.#beyondAt + PATIENCE_MS;
    return holds ? this.#beyondAt + PATIENCE_MS : -Infinity;
  }

  sentBeyond(now: number): void {
    this.#beyondUnanswered++;
    this.#beyondAt = now;
  }

  /** A call that was sent beyond the limit has ended, whenever that was. */
  beyondEnded(): void {
    this.#beyondUnanswered--;
  }

  /** @param isUnlimited no idea of a limit is left */
  grow(now: number, wasBeyond: boolean, inUse: boolean, isUnlimited: boolean): void {
    this.#accepted++;
    if (wasBeyond) this.#beyondAccepted++;
    if (!wasBeyond && !inUse) return;
    const ms = Math.min(now - this.#grownAt, Math.max(100, 1000 / this.#rate));
    this.#grownAt = now;
    const convinced = isUnlimited || (wasBeyond && this.#beyondAccepted > CONVINCED);
    this.#rate *= (convinced ? 2 : 1 + (this.#gain - 1) * 0.6) ** (ms / 1000);
  }

  #goOn(rate: number): void {
    this.#rate = rate;
    this.#accepted = 0;
    this.#beyondAccepted = 0;
  }
}
