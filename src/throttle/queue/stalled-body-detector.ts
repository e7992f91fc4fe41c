/**
 * Takes body slots from requests whose bodies stop coming while others wait for a slot, so that a stalled upload does not hold
 * up the others. It costs nothing while no request waits for a slot.
 */
import { OneShotTimer, type SetTimer } from '../pacing/one-shot-timer.ts';
import type { RequestQueue } from './request-queue.ts';

/** A body without a byte for this long has stalled. */
const STALLED_AFTER_MS = 1000;
/** Limits the checks when bodies come in drips. */
const MIN_CHECK_INTERVAL_MS = 50;

export class StalledBodyDetector {
  readonly #queue: RequestQueue;
  readonly #checkTimer: OneShotTimer;
  #checkAt = -Infinity;

  /** @param check calls `reclaimBodySlots`, and gives the freed slots to others */
  constructor(queue: RequestQueue, setTimer: SetTimer, check: () => void) {
    this.#queue = queue;
    this.#checkTimer = new OneShotTimer(setTimer, check);
  }

  /** To be called whenever a request may have started or stopped to wait for a body slot. */
  reclaimBodySlots(now: number): void {
    if (this.#queue.counts.queued === 0) {
      this.#checkTimer.set(Infinity);
      return;
    }
    if (now >= this.#checkAt) {
      const earliest = this.#queue.markStalledReaders(now - STALLED_AFTER_MS);
      this.#checkAt = Math.max(now + MIN_CHECK_INTERVAL_MS, Math.min(earliest, now) + STALLED_AFTER_MS);
    }
    this.#checkTimer.set(this.#checkAt);
  }
}
