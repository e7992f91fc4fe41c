/**
 * Permits of a throttle in a fleet (pure): leased ones while it is joined, the throttle's own otherwise, and both while it learns
 * alone and a `maxRate` holds for all. The own source is kept up to date all the time, so that it can take over at once.
 */
import type { PermitSource } from '../../throttle/pacing/permit-bucket.ts';
import type { QuotaLease } from './quota-lease.ts';

export class FleetPermitSource implements PermitSource {
  readonly #lease: QuotaLease;
  readonly #own: PermitSource;
  readonly #isOwnPaused: () => boolean;

  /** @param isOwnPaused whether the throttle itself is paused; during a pause of the fleet only its probe goes */
  constructor(lease: QuotaLease, own: PermitSource, isOwnPaused: () => boolean) {
    this.#lease = lease;
    this.#own = own;
    this.#isOwnPaused = isOwnPaused;
  }

  get rate(): number {
    const own = this.#needsOwn ? this.#own.rate : Infinity;
    return this.#isJoined ? Math.min(own, this.#lease.fleetRate) : own;
  }

  get isScarce(): boolean {
    return this.#needsOwn || this.#lease.isScarce;
  }

  tryTake(now: number): boolean {
    if (!this.#isJoined) return this.#own.tryTake(now);
    if (this.#isHeldByFleet || (this.#needsOwn && !this.#own.tryTake(now))) return false;
    if (this.#lease.tryTake(now)) return true;
    if (this.#needsOwn) this.#own.giveBack(now);
    return false;
  }

  nextAt(now: number, from = now): number {
    if (!this.#isJoined) return this.#own.nextAt(now, from);
    // Permits are asked for when they can be used, and not before.
    if (from > now) return from;
    if (this.#isHeldByFleet) return Infinity;
    return this.#needsOwn ? Math.max(this.#own.nextAt(now), this.#lease.nextAt(now)) : this.#lease.nextAt(now);
  }

  nthAt(from: number, ahead: number): number {
    const ownAt = this.#needsOwn ? this.#own.nthAt(from, ahead) : from;
    return this.#isJoined ? Math.max(ownAt, this.#lease.nthAt(from, ahead)) : ownAt;
  }

  available(now: number): number {
    const own = this.#needsOwn ? this.#own.available(now) : Infinity;
    return this.#isJoined ? Math.min(own, this.#lease.available(now)) : own;
  }

  minWaitMs(ahead: number): number | undefined {
    return this.#needsOwn ? this.#own.minWaitMs(ahead) : this.#lease.minWaitMs(ahead);
  }

  recordUse(now: number, takenAt: number): void {
    this.#own.recordUse(now, takenAt);
  }

  giveBack(now: number): void {
    this.#own.giveBack(now);
  }

  setRate(now: number, rate: number, burst: number): void {
    this.#own.setRate(now, rate, burst);
  }

  get #isJoined(): boolean {
    return this.#lease.state === 'joined';
  }

  get #needsOwn(): boolean {
    return !this.#isJoined || this.#lease.isLearningAlone;
  }

  get #isHeldByFleet(): boolean {
    return this.#lease.isFleetPaused && !this.#isOwnPaused();
  }
}
