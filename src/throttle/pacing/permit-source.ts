/** Where permits come from (pure): the local bucket implements it, a fleet wraps that. Time is a parameter. */
export interface PermitSource {
  /** Permits per second; Infinity while unlimited. */
  readonly rate: number;
  /** False while a request waits for the exchange with a fleet and not for a permit. */
  readonly isScarce: boolean;
  /** Takes a permit if one is available at `now`. */
  tryTake(now: number): boolean;
  /** The instant, not before `from`, at which a permit is available; Infinity when only the fleet can bring one. */
  nextAt(now: number, from?: number): number;
  /** The instant, not before `from`, at which the permit behind `ahead` others is available. */
  nthAt(from: number, ahead: number): number;
  /** Whole permits available at `now`; Infinity while unlimited. */
  available(now: number): number;
  /** Milliseconds that the one behind `ahead` others waits at least; undefined where `nthAt` is the best estimate. */
  minWaitMs(ahead: number): number | undefined;
  /** A permit taken at `takenAt` was used only now. */
  recordUse(now: number, takenAt: number): void;
  /** Puts an unspent permit back. */
  giveBack(now: number): void;
  /** From `now` on permits come at `rate`, and up to `burst` are saved up. */
  setRate(now: number, rate: number, burst: number): void;
}
