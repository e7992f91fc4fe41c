/**
 * The pace of a replica in a fleet (pure). While it is joined nothing is learned here: slots are the pace, and what became of calls is
 * noted for the leader. Apart it keeps to its part of the last known rate. Before anything is known it goes by a pace of its own,
 * as if there were no fleet.
 */
import type { FleetLeadership } from './fleet-leadership.ts';
import type { FleetReport } from './fleet-report.ts';
import type { FleetShare } from './fleet-share.ts';
import type { FleetTerms } from './fleet-terms.ts';
import type { Grant } from '../pacing/grant.ts';
import type { Pace } from '../pacing/pace.ts';
import type { LearnedLimit } from '../throttle.ts';

const FIRST_IN_FLIGHT = 4;

/** What a fleet’s pace is made from. */
export interface FleetPaceOptions {
  readonly share: FleetShare;
  readonly report: FleetReport;
  readonly leadership: FleetLeadership;
  /** The pace without a fleet. */
  readonly own: Pace;
  /** As they are now: they may change under a pace that stays. */
  readonly terms: () => FleetTerms;
}

export class FleetPace implements Pace {
  readonly #options: FleetPaceOptions;
  readonly #isFixed: boolean;
  #inFlightLimit: number;

  constructor(options: FleetPaceOptions) {
    this.#options = options;
    const { rate, maxInFlight } = options.terms();
    this.#isFixed = rate !== 'auto';
    this.#inFlightLimit = this.#isFixed ? maxInFlight : Math.min(FIRST_IN_FLIGHT, maxInFlight);
  }

  get rate(): number {
    const { share, own } = this.#options;
    if (share.state === 'joined') return Infinity;
    return share.state === 'apart' ? share.ownRate : own.rate;
  }

  get burst(): number {
    const { share, own } = this.#options;
    return share.state === 'unknown' ? own.burst : share.ownBurst;
  }

  get inFlightLimit(): number {
    const { share, own } = this.#options;
    return share.state === 'unknown' ? own.inFlightLimit : this.#inFlightLimit;
  }

  get limitsSlots(): boolean {
    return this.#options.share.state === 'unknown' && this.#options.own.limitsSlots;
  }

  get isConfident(): boolean {
    const { share, own } = this.#options;
    // What others will ask for is not known.
    return share.state === 'unknown' ? own.isConfident : this.#isFixed || share.state === 'apart';
  }

  get abreast(): number {
    return this.#options.own.abreast;
  }

  openAt(now: number, isPaused: boolean): number {
    const { share, own, leadership } = this.#options;
    if (share.state === 'unknown') return own.openAt(now, isPaused);
    if (share.state === 'apart') return share.opensApartAt;
    return share.isHeld && share.isLeader ? leadership.opensAt(now, share.epoch) : -Infinity;
  }

  granted(now: number, waitedFor: boolean): boolean {
    const { share, own } = this.#options;
    return share.state === 'unknown' ? own.granted(now, waitedFor) : share.tookExtra;
  }

  accepted(now: number, grant: Grant, fresh: boolean): void {
    const { share, own } = this.#options;
    this.#note(now, grant, false);
    if (this.#inFlightLimit < this.#options.terms().maxInFlight) this.#inFlightLimit++;
    if (share.state === 'unknown') own.accepted(now, grant, fresh);
    else if (share.state === 'apart') share.noteApart(false);
  }

  refused(now: number, grant: Grant): void {
    const { share, own } = this.#options;
    this.#note(now, grant, true);
    if (share.state === 'unknown') own.refused(now, grant);
    else if (share.state === 'apart') share.noteApart(true);
  }

  refusedLate(now: number, grant: Grant): void {
    const { share, own } = this.#options;
    this.#note(now, grant, true);
    if (share.state === 'unknown') own.refusedLate(now, grant);
  }

  ended(grant: Grant): void {
    const { share, own } = this.#options;
    if (grant.beyond) share.extraEnded();
    if (share.state === 'unknown') own.ended(grant);
  }

  withdrawn(grant: Grant): void {
    const { share, own } = this.#options;
    if (grant.beyond) share.extraEnded();
    if (share.state === 'unknown') own.withdrawn(grant);
  }

  learned(wallAt: (at: number) => number): LearnedLimit | undefined {
    if (this.#isFixed) return undefined;
    const { share, own, leadership } = this.#options;
    if (share.state === 'unknown') return own.learned(wallAt);
    const learned = leadership.learned(wallAt);
    return learned && { ...learned, rate: share.fleetRate };
  }

  snapshot(now: number): object | undefined {
    if (this.#isFixed) return undefined;
    const { share, own, leadership } = this.#options;
    return share.state === 'unknown' ? own.snapshot(now) : leadership.snapshot(now);
  }

  restore(now: number, snapshot: unknown, ageMs: number): void {
    this.#options.own.restore(now, snapshot, ageMs);
  }

  #note(now: number, { at, waitedFor, probe, beyond }: Grant, isRefused: boolean): void {
    const { share, report } = this.#options;
    if (beyond) share.extraEnded();
    const tookMs = Math.max(0, now - at);
    // What was sent beyond the limit was waited for by definition.
    report.note({ at, count: 1, tookMs, isRefused, isWaitedFor: waitedFor || beyond, isProbe: probe });
  }
}
