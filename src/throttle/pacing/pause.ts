/**
 * The pause that all requests share after a refusal (pure). It ends with probes: one call at a time, until one is accepted. Which
 * response is a refusal is the governor's decision.
 */
import type { Random } from '../../platform/clock.ts';
import type { CallResult, PermitGrant } from './gate.ts';

/** Full jitter: the first pause is up to this; every refused probe in a row doubles it, up to the cap. */
export const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 30_000;
/** After this many refused probes in a row the next one waits for a share of the time that has passed, and not less than the cap. */
const MAX_EARLY_PAUSE_PROBES = 10;
const LATER_WAIT_SHARE = 0.1;
/** After so many refused probes in a row another request is the probe. */
const MIN_REFUSED_TO_CHANGE = 2;
/** A stated wait that was too short is extended to at most twice itself plus this. */
const MIN_STRETCH_MS = 1_000;
/** After this time without a response another probe goes, so that one slow call does not hold up all. */
const PAUSE_PROBE_TIMEOUT_MS = 2_000;
/** Under a limit in flight, a probe without a response for this many times as long as refusals took holds a slot: it was accepted. */
const REFUSAL_TIMES_WAITED = 2;
const MIN_SILENCE_MS = 100;
/** Part of the longest time of a refusal that counts at the next one. */
const REFUSAL_TIME_DECAY = 0.9;

/** Open, or closed until an instant, and after that for all calls but probes. */
export class SharedPause {
  #maxPauseMs: number;
  readonly #random: Random;
  readonly #limitsConcurrency: () => boolean;
  #isClosed = false;
  #closedSince = -Infinity;
  #pausedUntil = -Infinity;
  #isStated = false;
  #nextPauseProbeAt = -Infinity;
  #consecutiveRefusals = 0;
  #longestRefusalMs = 0;
  /** A probe was sent since the last refusal. */
  #isPauseProbed = false;

  /**
   * @param maxPauseMs a longer pause is probed once in each such interval, and no backoff is longer
   * @param limitsConcurrency whether refusals come from a limit in flight
   */
  constructor(maxPauseMs: number, random: Random, limitsConcurrency: () => boolean) {
    this.#maxPauseMs = maxPauseMs;
    this.#random = random;
    this.#limitsConcurrency = limitsConcurrency;
  }

  /** From a pause on until its probe is accepted. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The upstream stated the end of the pause. */
  get isStated(): boolean {
    return this.#isStated;
  }

  /** The request that was refused should not be the next probe: what it asks for may be refused alone. */
  get wantsAnotherProbe(): boolean {
    return this.#isClosed && this.#consecutiveRefusals >= MIN_REFUSED_TO_CHANGE;
  }

  /** When the next probe may go. */
  nextAt(): number {
    return this.#isClosed ? this.#nextPauseProbeAt : -Infinity;
  }

  /** As `nextAt`. While only a probe's response is awaited the end of the pause is unknown, so none is reported. */
  nthAt(now: number): number {
    return this.remainingMs(now) > 0 ? this.#nextPauseProbeAt : -Infinity;
  }

  /** Milliseconds left; 0 when open, or when only a probe's response is awaited. */
  remainingMs(now: number): number {
    return this.#isClosed ? Math.max(0, this.#pausedUntil - now) : 0;
  }

  /** True while the pause is longer than `maxPauseMs`: a new request should not wait for it, unless it is the probe that is due. */
  rejectsNew(now: number, pauseProbeIsTaken: boolean): boolean {
    return this.remainingMs(now) > this.#maxPauseMs && (pauseProbeIsTaken || now < this.#nextPauseProbeAt);
  }

  /**
   * Begins or lengthens the pause. Never shortens it.
   * @param isCurrent false for a call that was granted before the last pause: only the wait that its response states counts
   */
  begin(now: number, statedWaitMs: number | undefined, isCurrent: boolean): void {
    if (!isCurrent && statedWaitMs === undefined) return;
    // A server that states waits that are too short is not retried at that rate ...
    const backoffMs = statedWaitMs === undefined || this.#consecutiveRefusals > 0 ? this.#backoffMs(now) : 0;
    // ... but its statement stays the measure.
    const longestMs = statedWaitMs === undefined ? Infinity : 2 * statedWaitMs + MIN_STRETCH_MS;
    const until = now + Math.max(statedWaitMs ?? 0, Math.min(backoffMs, longestMs));
    if (!isCurrent && until <= this.#pausedUntil) return;
    if (until > this.#pausedUntil) {
      this.#pausedUntil = until;
      this.#isStated = statedWaitMs !== undefined && statedWaitMs >= backoffMs;
    }
    this.#close(now);
    this.#isPauseProbed = false;
    this.#nextPauseProbeAt = Math.min(this.#pausedUntil, now + this.#maxPauseMs);
  }

  /** Changes the interval of probes, also of the present pause. */
  setMaxPause(now: number, maxPauseMs: number): void {
    this.#maxPauseMs = maxPauseMs;
    this.#nextPauseProbeAt = Math.min(this.#nextPauseProbeAt, now + maxPauseMs);
  }

  /** What was taken for refusals were none. */
  end(): void {
    this.#consecutiveRefusals = 0;
    this.#open();
  }

  /** From `at` on a single call goes first, and the others wait for its response. */
  requirePauseProbe(at: number): void {
    if (this.#isClosed) return;
    this.#close(at);
    this.#pausedUntil = this.#nextPauseProbeAt = at;
  }

  /** @returns true when the granted call is a probe */
  take(now: number): boolean {
    if (!this.#isClosed) return false;
    const limitsConcurrency = this.#limitsConcurrency();
    if (limitsConcurrency && this.#isPauseProbed && this.#pausedUntil <= now) {
      this.#open();
      return false;
    }
    // A probe before the stated end proves nothing by its silence.
    this.#isPauseProbed = this.#pausedUntil <= now;
    const timeoutMs = limitsConcurrency ? this.#silenceMs : PAUSE_PROBE_TIMEOUT_MS;
    this.#nextPauseProbeAt = now + (this.#pausedUntil > now ? this.#maxPauseMs : timeoutMs);
    return true;
  }

  /** Where a probe was not sent, another may go instead. To be called for the calls granted after the last refusal. */
  giveBack(now: number, { isPauseProbe }: PermitGrant): void {
    if (!isPauseProbe) return;
    this.#isPauseProbed = false;
    if (this.#isClosed) this.#nextPauseProbeAt = now;
  }

  settle(now: number, { at, startedAt = at, isPauseProbe }: PermitGrant, { kind, isCurrent, wait }: CallResult): void {
    const isProbe = isCurrent && isPauseProbe;
    if (kind === 'refused') {
      this.#longestRefusalMs = Math.max(now - startedAt, this.#longestRefusalMs * REFUSAL_TIME_DECAY);
      if (isProbe) this.#consecutiveRefusals++;
      this.begin(now, wait?.statedWaitMs, isCurrent);
    } else if (isProbe && kind === 'accepted') {
      // The pause is over, even before its stated end.
      this.#consecutiveRefusals = 0;
      this.#open();
    } else if (isProbe && this.#pausedUntil <= now) {
      // A probe without a response proves nothing, and holds up no other call.
      this.#open();
    }
  }

  get #silenceMs(): number {
    if (this.#longestRefusalMs === 0) return PAUSE_PROBE_TIMEOUT_MS;
    return Math.min(PAUSE_PROBE_TIMEOUT_MS, Math.max(MIN_SILENCE_MS, this.#longestRefusalMs * REFUSAL_TIMES_WAITED));
  }

  #close(at: number): void {
    if (!this.#isClosed) this.#closedSince = at;
    this.#isClosed = true;
  }

  #open(): void {
    this.#isClosed = this.#isPauseProbed = false;
    this.#pausedUntil = -Infinity;
  }

  #backoffMs(now: number): number {
    if (this.#consecutiveRefusals >= MAX_EARLY_PAUSE_PROBES)
      return Math.min(this.#maxPauseMs, Math.max(BACKOFF_CAP_MS, (now - this.#closedSince) * LATER_WAIT_SHARE));
    const longestMs = Math.min(this.#maxPauseMs, BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#consecutiveRefusals);
    return this.#random() * longestMs;
  }
}
