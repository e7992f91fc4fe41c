/**
 * Permits of a throttle in a fleet (pure): leased ones while it is joined, the throttle's own otherwise. The own source is
 * kept up to date all the time, so that it can take over at once.
 */
import type { PermitSource } from '../../throttle/pacing/permit-source.ts';
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
    return this.#isJoined ? this.#lease.fleetRate : this.#own.rate;
  }

  get isScarce(): boolean {
    return !this.#isJoined || this.#lease.isScarce;
  }

  tryTake(now: number): boolean {
    if (!this.#isJoined) return this.#own.tryTake(now);
    return !this.#isHeldByFleet && this.#lease.tryTake(now);
  }

  nextAt(now: number, from = now): number {
    if (!this.#isJoined) return this.#own.nextAt(now, from);
    // Permits are asked for when they can be used, and not before.
    if (from > now) return from;
    return this.#isHeldByFleet ? Infinity : this.#lease.nextAt(now);
  }

  nthAt(from: number, ahead: number): number {
    return this.#isJoined ? this.#lease.nthAt(from, ahead) : this.#own.nthAt(from, ahead);
  }

  available(now: number): number {
    return this.#isJoined ? this.#lease.available(now) : this.#own.available(now);
  }

  minWaitMs(ahead: number): number | undefined {
    return this.#isJoined ? this.#lease.minWaitMs(ahead) : this.#own.minWaitMs(ahead);
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

  get #isHeldByFleet(): boolean {
    return this.#lease.isFleetPaused && !this.#isOwnPaused();
  }
}
