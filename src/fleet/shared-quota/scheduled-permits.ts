/**
 * The permits that a replica was given ahead (pure): each may be used at its own instant, and a little later, so that all replicas
 * together keep one even pace. What is not used then is lost, and never made up for.
 */

/** How late a slot may be used: for timers that fire late. */
const GRACE_MS = 50;

/** Slots in order. */
export class ScheduledPermits {
  #times: number[] = [];

  /** Slots that may still be used. */
  count(now: number): number {
    this.#dropExpired(now);
    return this.#times.length;
  }

  /** Slots that may be used now. */
  due(now: number): number {
    this.#dropExpired(now);
    const ahead = this.#times.findIndex((at) => at > now);
    return ahead < 0 ? this.#times.length : ahead;
  }

  /** Those before this instant may be used at once: nothing stands against it but how far the clocks are known. */
  add(slots: readonly number[]): void {
    this.#times = [...this.#times, ...slots].sort((one, other) => one - other);
  }

  tryTake(now: number): boolean {
    if (this.due(now) === 0) return false;
    this.#times.shift();
    return true;
  }

  /** Infinity when there is none. */
  nextAt(now: number): number {
    this.#dropExpired(now);
    return Math.max(now, this.#times[0] ?? Infinity);
  }

  /** When the one behind `ahead` others may be used; undefined when it has not been given yet. */
  nthAt(now: number, ahead: number): number | undefined {
    this.#dropExpired(now);
    return this.#times[ahead];
  }

  /** When the last one may be used; -Infinity without one. */
  get lastAt(): number {
    return this.#times.at(-1) ?? -Infinity;
  }

  clear(): void {
    this.#times = [];
  }

  #dropExpired(now: number): void {
    const usable = this.#times.findIndex((at) => at >= now - GRACE_MS);
    if (usable !== 0) this.#times = usable < 0 ? [] : this.#times.slice(usable);
  }
}
