/**
 * Takes places in flight from responses whose clients take nothing, while a request waits for a place: the response becomes a stream, or
 * breaks off where it may not become one. While no request waits, nothing is taken and no timer runs.
 */
import type { Governor } from '../pacing/governor.ts';
import { OneShotTimer, type SetTimer } from '../pacing/one-shot-timer.ts';
import type { RateSettings, ResponseClient } from '../throttle.ts';

/** A client that has taken no byte for this long has stalled. */
const STALLED_AFTER_MS = 1000;
const BROKEN_OFF_AFTER_MS = 30_000;
/** Between two looks at the clients while a request waits. */
const CHECK_INTERVAL_MS = 100;

/** As active-permit.ts describes it. */
export interface StalledPermit {
  readonly slot: 'in-flight' | 'stream' | 'freed';
  moveToStreams(): boolean;
  freeSlot(): void;
}

interface Stall {
  readonly permit: StalledPermit;
  readonly client: ResponseClient;
  since: number;
  takenBytes: number;
}

export class StalledResponses {
  /** The one that has stalled longest comes first. */
  readonly #stalls = new Map<StalledPermit, Stall>();
  readonly #governor: Governor;
  readonly #settings: () => RateSettings;
  readonly #checkTimer: OneShotTimer;
  #checkAt = -Infinity;

  /** @param check calls `freePlace` for the request that waits */
  constructor(governor: Governor, settings: () => RateSettings, setTimer: SetTimer, check: () => void) {
    this.#governor = governor;
    this.#settings = settings;
    this.#checkTimer = new OneShotTimer(setTimer, check);
  }

  /** While it is true no other call is of use. */
  get isEmpty(): boolean {
    return this.#stalls.size === 0;
  }

  /** The connection to the client takes no more at the moment. @param isWaitedFor a request waits for a place */
  begin(permit: StalledPermit, client: ResponseClient, now: number, isWaitedFor: boolean): void {
    this.#stalls.set(permit, { permit, client, since: now, takenBytes: client.takenBytes });
    if (isWaitedFor) this.#checkTimer.setNoLaterThan(now + CHECK_INTERVAL_MS);
  }

  end(permit: StalledPermit): void {
    this.#stalls.delete(permit);
    if (this.#stalls.size === 0) this.stop();
  }

  /** How many have stalled, and how many of these are in flight. */
  count(now: number): { readonly all: number; readonly inFlight: number } {
    const stalled = [...this.#listStalled(now)];
    return { all: stalled.length, inFlight: stalled.filter(({ permit }) => permit.slot === 'in-flight').length };
  }

  /** A request waits. @returns true when a place in flight has become free for it; otherwise `check` is called when one may be */
  freePlace(now: number): boolean {
    const { inFlight, inFlightLimit } = this.#governor;
    if (inFlight < inFlightLimit) return false;
    if (now >= this.#checkAt) {
      if (this.#tryFree(now)) return true;
      this.#checkAt = now + CHECK_INTERVAL_MS;
    }
    this.#checkTimer.set(this.#checkAt);
    return false;
  }

  /** No request waits, or no response has stalled. */
  stop(): void {
    this.#checkTimer.set(Infinity);
  }

  #tryFree(now: number): boolean {
    // The upstream has the call in flight until its response ends.
    const isLimited = this.#settings().isMaxInFlightGiven === true || this.#governor.ratePolicy.limitsConcurrency;
    let [longest, inFlight]: [Stall | undefined, Stall | undefined] = [undefined, undefined];
    for (const stall of this.#listStalled(now)) {
      if (stall.permit.slot === 'in-flight') inFlight = stall;
      // Where none may become a stream, the end of a stream frees no place in flight.
      if (!isLimited || stall.permit.slot === 'in-flight') longest ??= stall;
      if (inFlight !== undefined) break;
    }
    if (longest === undefined || inFlight === undefined) return false;
    if (!isLimited && inFlight.permit.moveToStreams()) return true;
    const stalledMs = now - longest.since;
    // During a pause nothing would be gained.
    if (stalledMs < BROKEN_OFF_AFTER_MS || this.#governor.openAt(now) > now) return false;
    longest.permit.freeSlot();
    longest.client.breakOff(stalledMs);
    if (longest !== inFlight) inFlight.permit.moveToStreams();
    return true;
  }

  /** The longest first. A client that has taken bytes since it was last looked at begins anew. */
  *#listStalled(now: number): Iterable<Stall> {
    for (const [permit, stall] of this.#stalls) {
      if (now - stall.since < STALLED_AFTER_MS) return;
      const { takenBytes } = stall.client;
      if (takenBytes === stall.takenBytes) {
        yield stall;
      } else {
        Object.assign(stall, { takenBytes, since: now });
        this.#stalls.delete(permit);
        this.#stalls.set(permit, stall);
      }
    }
  }
}
