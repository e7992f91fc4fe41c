/**
 * The pause that all share after a rate-limit signal, and the way out of it: one probe at a time, until one is accepted
 * (pure; chance is handed in). It judges no status and learns no rate: the governor and its pace do.
 */
import type { Random } from '../../platform/clock.ts';

/** Full jitter: a first pause of up to this, doubled by every refused probe in a row, at most the cap. */
const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 30_000;
/** A stated wait that keeps being too short is stretched to at most twice itself and this. */
const MIN_STRETCH_MS = 1_000;
/** A probe without an answer for so long is followed by another, so that one slow call does not hold up all. */
const PROBE_TIMEOUT_MS = 2_000;

/** What a pause is made from. */
export interface PauseOptions {
  /** A longer pause is probed once in each such interval. */
  readonly maxPauseMs: number;
  readonly random: Random;
}

/** Open, or closed until an instant and after that for all but probes. */
export class SharedPause {
  #maxPauseMs: number;
  readonly #random: Random;
  #isClosed = false;
  #pausedUntil = -Infinity;
  #isStated = false;
  #nextProbeAt = -Infinity;
  #consecutiveRefusals = 0;

  constructor(options: PauseOptions) {
    this.#maxPauseMs = options.maxPauseMs;
    this.#random = options.random;
  }

  /** The next instant at which a permit may be granted; -Infinity when open. */
  get openAt(): number {
    return this.#isClosed ? this.#nextProbeAt : -Infinity;
  }

  /** True when the end of the pause was stated by the upstream. */
  get isStated(): boolean {
    return this.#isStated;
  }

  /** Milliseconds left; 0 when open or when only a probe's answer is awaited. */
  remainingMs(now: number): number {
    return this.#isClosed ? Math.max(0, this.#pausedUntil - now) : 0;
  }

  /** True while the pause outlasts `maxPauseMs`: who arrives need not wait for it, unless as the probe that is due. */
  rejectsNew(now: number, probeIsTaken: boolean): boolean {
    return this.remainingMs(now) > this.#maxPauseMs && (probeIsTaken || now < this.#nextProbeAt);
  }

  /**
   * Closes, or stays closed longer. It never shortens a pause.
   * @param fresh false for the answer to an attempt that was granted before the last pause: it counts only with what it states
   */
  begin(now: number, statedWaitMs: number | undefined, fresh: boolean): void {
    if (!fresh && statedWaitMs === undefined) return;
    // A server that keeps stating a wait too short to help is not asked again at that pace.
    const backoffMs = statedWaitMs === undefined || this.#consecutiveRefusals > 0 ? this.#backoffMs() : 0;
    // Yet what it states stays the measure.
    const longestMs = statedWaitMs === undefined ? Infinity : 2 * statedWaitMs + MIN_STRETCH_MS;
    const until = now + Math.max(statedWaitMs ?? 0, Math.min(backoffMs, longestMs));
    if (!fresh && until <= this.#pausedUntil) return;
    if (until > this.#pausedUntil) {
      this.#pausedUntil = until;
      this.#isStated = statedWaitMs !== undefined && statedWaitMs >= backoffMs;
    }
    this.#isClosed = true;
    this.#nextProbeAt = Math.min(this.#pausedUntil, now + this.#maxPauseMs);
  }

  /** Another interval of probes, for a pause that holds already as well. */
  setMaxPause(now: number, maxPauseMs: number): void {
    this.#maxPauseMs = maxPauseMs;
    this.#nextProbeAt = Math.min(this.#nextProbeAt, now + maxPauseMs);
  }

  /** After `at` a single call goes first and the others wait for its answer. */
  requireProbe(at: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pausedUntil = this.#nextProbeAt = at;
  }

  /** A permit is granted at `now`; true when it is a probe. */
  recordGrant(now: number): boolean {
    if (!this.#isClosed) return false;
    this.#nextProbeAt = now + (this.#pausedUntil > now ? this.#maxPauseMs : PROBE_TIMEOUT_MS);
    return true;
  }

  /** A probe was not refused: the pause is over, whatever was stated. */
  recordProbeAccepted(): void {
    this.#consecutiveRefusals = 0;
    this.#open();
  }

  /** A probe was refused; `begin` follows. */
  recordProbeRefused(): void {
    this.#consecutiveRefusals++;
  }

  /** A probe ended without an answer: nothing learned, and nothing that would hold the others back any longer. */
  recordProbeEnded(now: number): void {
    if (this.#pausedUntil <= now) this.#open();
  }

  /** A probe was not sent after all: another may go in its stead. */
  recordProbeUnused(now: number): void {
    if (this.#isClosed) this.#nextProbeAt = now;
  }

  #open(): void {
    this.#isClosed = false;
    this.#pausedUntil = -Infinity;
  }

  #backoffMs(): number {
    return this.#random() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#consecutiveRefusals);
  }
}
