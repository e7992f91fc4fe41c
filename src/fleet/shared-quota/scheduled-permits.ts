/**
 * Leased permits (pure): each may be used at its own instant or a little later, so that all replicas together keep one even rate.
 * A permit not used by then is lost.
 */

/** How late a permit may be used: timers fire late. */
const GRACE_MS = 50;

export class ScheduledPermits {
  #times: number[] = [];

  /** Permits that may still be used. */
  count(now: number): number {
    this.#dropExpired(now);
    return this.#times.length;
  }

  /** Permits that may be used now. */
  due(now: number): number {
    this.#dropExpired(now);
    const ahead = this.#times.findIndex((at) => at > now);
    return ahead < 0 ? this.#times.length : ahead;
  }

  /** Permits of the past may be used at once: the offset of the clocks is not exact. */
  add(times: readonly number[]): void {
    this.#times = [...this.#times, ...times].sort((one, other) => one - other);
  }

  tryTake(now: number): boolean {
    if (this.due(now) === 0) return false;
    this.#times.shift();
    return true;
  }

  /** Infinity without one. */
  nextAt(now: number): number {
    this.#dropExpired(now);
    return Math.max(now, this.#times[0] ?? Infinity);
  }

  /** When the permit behind `ahead` others may be used; undefined when it is not leased yet. */
  nthAt(now: number, ahead: number): number | undefined {
    this.#dropExpired(now);
    return this.#times[ahead];
  }

  /** When the last permit may be used; -Infinity without one. */
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
