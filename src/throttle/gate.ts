/**
 * The gate: may a permit be granted now, and if not, when. It joins governor, bucket and in-flight slots, and keeps them in step
 * as attempts end. Time is a parameter; who waits, in which order and until when is the waiting room's.
 */
import { createGovernor, type Governor, type GovernorOptions, type Verdict } from './governor.ts';
import type { Grant } from './grant.ts';
import { PermitBucket } from './permit-bucket.ts';
import type { AttemptResult } from './throttle.ts';

/** What a gate is made from: the governor’s share, the bucket’s and the slots’. */
export interface GateOptions extends GovernorOptions {
  /** Permits; unused with `auto`, which spaces them evenly. */
  readonly burst: number;
  readonly maxStreams: number;
}

/** Grants permits one by one; takes back what attempts tell, slots and unspent permits. */
export class Gate {
  readonly #governor: Governor;
  readonly #bucket: PermitBucket;
  readonly #maxStreams: number;
  #bucketRate: number;
  #inFlight = 0;
  #streams = 0;

  constructor(options: GateOptions) {
    this.#governor = createGovernor(options);
    this.#bucketRate = this.#governor.rate;
    this.#bucket = new PermitBucket(this.#bucketRate, options.rate === 'auto' ? 1 : options.burst);
    this.#maxStreams = options.maxStreams;
  }

  get rate(): number {
    return this.#governor.rate;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get streams(): number {
    return this.#streams;
  }

  get inFlightLimit(): number {
    return this.#governor.inFlightLimit;
  }

  /** Grants if all three allow it. `hasWaited`: the taker was held up before. */
  tryGrant(now: number, hasWaited: boolean): Grant | undefined {
    if (this.#slotsLeft() <= 0 || this.#governor.openAt(now) > now) return undefined;
    // Held up by the pace itself, and not by slots or bodies: the permit did not lie about for long.
    const waitedFor = hasWaited && this.#bucket.fullForMs(now) < 1000 / this.#bucketRate;
    if (!this.#bucket.tryTake(now)) return undefined;
    this.#inFlight++;
    return this.#governor.granted(now, waitedFor);
  }

  /** When to try again; Infinity when only a freed slot can help. */
  nextTryAt(now: number): number {
    if (this.#slotsLeft() <= 0) return Infinity;
    return Math.max(this.#governor.openAt(now), this.#bucket.nextAt(now));
  }

  /** How many permits could be granted at this moment. */
  grantable(now: number): number {
    if (this.#governor.openAt(now) > now) return 0;
    return Math.max(0, Math.min(this.#slotsLeft(), this.#bucket.available(now)));
  }

  /** How long one would wait behind `ahead` others, as pause and present pace tell: under `auto` a guess. */
  estimateMs(now: number, ahead: number): number {
    return this.#bucket.nthAt(Math.max(now, this.#governor.hold(now).until), ahead) - now;
  }

  /** How long one behind `ahead` others will wait at least, by what was configured and what the upstream stated. */
  certainWaitMs(now: number, ahead: number): number {
    if (this.#governor.exact) return this.estimateMs(now, ahead);
    return this.statedHoldUntil(now) - now;
  }

  /** How long a retry behind `older` ones will wait at least; a learned pace counts for the next permit only. */
  retryWaitMs(now: number, older: number): number {
    return this.estimateMs(now, this.#governor.exact ? older : 0);
  }

  /** Until when the upstream itself said to wait; `now` when it says nothing. */
  statedHoldUntil(now: number): number {
    const hold = this.#governor.hold(now);
    return hold.stated ? Math.max(now, hold.until) : now;
  }

  pausedMs(now: number): number {
    return this.#governor.pausedMs(now);
  }

  turnsAway(now: number, probeIsTaken: boolean): boolean {
    return this.#governor.turnsAway(now, probeIsTaken);
  }

  report(now: number, grant: Grant, result: AttemptResult): Verdict {
    const verdict = this.#governor.reported(now, grant, result);
    if (this.#governor.rate !== this.#bucketRate) {
      this.#bucketRate = this.#governor.rate;
      this.#bucket.setRate(now, this.#bucketRate);
    }
    return verdict;
  }

  /** The attempt's request goes onto the wire. */
  used(now: number, grant: Grant): void {
    this.#bucket.used(now, grant.at);
  }

  /** The attempt ended without a result. */
  endUnreported(now: number, grant: Grant): void {
    this.#governor.ended(now, grant);
  }

  /** The attempt was never made: its permit is unspent. */
  takeBack(now: number, grant: Grant): void {
    this.#bucket.giveBack(now);
    this.#governor.withdrawn(now, grant);
  }

  freeSlot(): void {
    this.#inFlight--;
  }

  /** Moves a slot over to the streams; false when all of theirs are taken. */
  moveSlotToStreams(): boolean {
    if (this.#streams >= this.#maxStreams) return false;
    this.#streams++;
    this.#inFlight--;
    return true;
  }

  freeStream(): void {
    this.#streams--;
  }

  #slotsLeft(): number {
    return this.#governor.inFlightLimit - this.#inFlight;
  }
}
