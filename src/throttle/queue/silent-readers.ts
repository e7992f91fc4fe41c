/**
 * Takes the places for reading from requests whose bodies stop coming while others wait for a place: a client that stalls within its
 * upload must not keep the others from theirs. It costs nothing while no request waits for a place.
 */
import { Alarm, type SetTimer } from '../pacing/alarm.ts';
import type { WaitingRoom } from './waiting-room.ts';

/** A body of which no byte has come for this long has stalled. */
const STALLED_AFTER_MS = 1000;
/** Bodies that come in drips are looked at no more often than this. */
const SHORTEST_LOOK_MS = 50;

export class SilentReaders {
  readonly #room: WaitingRoom;
  readonly #nextLook: Alarm;
  #lookAt = -Infinity;

  /** @param look calls `takePlaces`, and gives the places that it frees to others */
  constructor(room: WaitingRoom, setTimer: SetTimer, look: () => void) {
    this.#room = room;
    this.#nextLook = new Alarm(setTimer, look);
  }

  /** To be called whenever a request may have begun or ended to wait for a place. */
  takePlaces(now: number): void {
    if (this.#room.outside === 0) {
      this.#nextLook.set(Infinity);
      return;
    }
    if (now >= this.#lookAt) {
      const earliest = this.#room.takePlacesOfSilent(now - STALLED_AFTER_MS);
      this.#lookAt = Math.max(now + SHORTEST_LOOK_MS, Math.min(earliest, now) + STALLED_AFTER_MS);
    }
    this.#nextLook.set(this.#lookAt);
  }
}
