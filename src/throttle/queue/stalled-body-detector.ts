/**
 * Takes the places for reading from requests whose bodies stop coming while others wait for a place: a client that stalls within its
 * upload must not keep the others from theirs. It costs nothing while no request waits for a place.
 */
import { OneShotTimer, type SetTimer } from '../pacing/one-shot-timer.ts';
import type { RequestQueue } from './request-queue.ts';

/** A body of which no byte has come for this long has stalled. */
const STALLED_AFTER_MS = 1000;
/** Bodies that come in drips are looked at no more often than this. */
const MIN_CHECK_INTERVAL_MS = 50;

export class StalledBodyDetector {
  readonly #queue: RequestQueue;
  readonly #checkTimer: OneShotTimer;
  #checkAt = -Infinity;

  /** @param look calls `takePlaces`, and gives the places that it frees to others */
  constructor(room: RequestQueue, setTimer: SetTimer, look: () => void) {
    this.#queue = room;
    this.#checkTimer = new OneShotTimer(setTimer, look);
  }

  /** To be called whenever a request may have begun or ended to wait for a place. */
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
