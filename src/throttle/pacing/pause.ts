/**
 * The pause that all share after a rate-limit signal, and the way out of it: one probe at a time, until one is accepted
 * (pure; chance is handed in). It judges no status and learns no rate: the governor and its pace do.
 */
import type { Random } from '../../platform/clock.ts';

/** Full jitter: a first pause of up to this, doubled by every refused probe in a row, at most the cap. */
const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 30_000;
/** A stated wait that keeps being too short is stretched to at most twice itself and this. */
const LEAST_STRETCH_MS = 1_000;
/** A probe without an answer for so long is followed by another, so that one slow call does not hold up all. */
const PROBE_PATIENCE_MS = 2_000;

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
  #closed = false;
  #until = -Infinity;
  #stated = false;
  #probeAt = -Infinity;
  #refusedInARow = 0;

  constructor(options: PauseOptions) {
    this.#maxPauseMs = options.maxPauseMs;
    this.#random = options.random;
  }

  /** The next instant at which a permit may be granted; -Infinity when open. */
  get openAt(): number {
    return this.#closed ? this.#probeAt : -Infinity;
  }

  /** True when the end of the pause was stated by the upstream. */
  get stated(): boolean {
    return this.#stated;
  }

  /** Milliseconds left; 0 when open or when only a probe's answer is awaited. */
  leftMs(now: number): number {
    return this.#closed ? Math.max(0, this.#until - now) : 0;
  }

  /** True while the pause outlasts `maxPauseMs`: who arrives need not wait for it, unless as the probe that is due. */
  turnsAway(now: number, probeIsTaken: boolean): boolean {
    return this.leftMs(now) > this.#maxPauseMs && (probeIsTaken || now < this.#probeAt);
  }

  /**
   * Closes, or stays closed longer. It never shortens a pause.
   * @param fresh false for the answer to an attempt that was granted before the last pause: it counts only with what it states
   */
  begin(now: number, statedWaitMs: number | undefined, fresh: boolean): void {
    if (!fresh && statedWaitMs === undefined) return;
    // A server that keeps stating a wait too short to help is not asked again at that pace.
    const backoffMs = statedWaitMs === undefined || this.#refusedInARow > 0 ? this.#backoffMs() : 0;
    // Yet what it states stays the measure.
    const longestMs = statedWaitMs === undefined ? Infinity : 2 * statedWaitMs + LEAST_STRETCH_MS;
    const until = now + Math.max(statedWaitMs ?? 0, Math.min(backoffMs, longestMs));
    if (!fresh && until <= this.#until) return;
    if (until > this.#until) {
      this.#until = until;
      this.#stated = statedWaitMs !== undefined && statedWaitMs >= backoffMs;
    }
    this.#closed = true;
    this.#probeAt = Math.min(this.#until, now + this.#maxPauseMs);
  }

  /** Another interval of probes, for a pause that holds already as well. */
  setMaxPause(now: number, maxPauseMs: number): void {
    this.#maxPauseMs = maxPauseMs;
    this.#probeAt = Math.min(this.#probeAt, now + maxPauseMs);
  }

  /** After `at` a single call goes first and the others wait for its answer. */
  demandProbe(at: number): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#until = this.#probeAt = at;
  }

  /** A permit is granted at `now`; true when it is a probe. */
  granted(now: number): boolean {
    if (!this.#closed) return false;
    this.#probeAt = now + (this.#until > now ? this.#maxPauseMs : PROBE_PATIENCE_MS);
    return true;
  }

  /** A probe was not refused: the pause is over, whatever was stated. */
  probeAccepted(): void {
    this.#refusedInARow = 0;
    this.#open();
  }

  /** A probe was refused; `begin` follows. */
  probeRefused(): void {
    this.#refusedInARow++;
  }

  /** A probe ended without an answer: nothing learned, and nothing that would hold the others back any longer. */
  probeEnded(now: number): void {
    if (this.#until <= now) this.#open();
  }

  /** A probe was not sent after all: another may go in its stead. */
  probeWithdrawn(now: number): void {
    if (this.#closed) this.#probeAt = now;
  }

  #open(): void {
    this.#closed = false;
    this.#until = -Infinity;
  }

  #backoffMs(): number {
    return this.#random() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#refusedInARow);
  }
}
