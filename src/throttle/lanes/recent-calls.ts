/** Accepted calls of late, by operation (pure): what a lane has to know of the time before it. */

const FIRST_CALLS = 64;
const MAX_CALLS = 1024;
/** Durations by which the spread is judged. */
const SPREAD_CALLS = 20;
const MIN_SPREAD_CALLS = 5;

/** The newest accepted calls of one operation, in order of their responses: instants of their grants, and durations. */
export class CallRing {
  #values = new Float64Array(2 * FIRST_CALLS);
  #recorded = 0;

  add(at: number, ms: number): void {
    const places = this.#values.length / 2;
    if (this.#recorded >= places && places < MAX_CALLS) this.#grow();
    const index = (2 * this.#recorded++) % this.#values.length;
    this.#values[index] = at;
    this.#values[index + 1] = ms;
  }

  count(since: number): number {
    let count = 0;
    for (let back = 1; back <= this.#size; back++) if (this.#at(this.#recorded - back) >= since) count++;
    return count;
  }

  /** In order of their grants. */
  list(): { readonly at: number; readonly ms: number }[] {
    const calls = Array.from({ length: this.#size }, (_, index) => {
      const place = (2 * (this.#recorded - this.#size + index)) % this.#values.length;
      return { at: this.#values[place] ?? 0, ms: this.#values[place + 1] ?? 0 };
    });
    return calls.sort((one, other) => one.at - other.at);
  }

  /** By how much the newest durations differ, without the longest and the shortest; 0 while there are too few. */
  spreadMs(): number {
    const newest = this.list()
      .slice(-SPREAD_CALLS)
      .map(({ ms }) => ms)
      .sort((one, other) => one - other);
    return newest.length < MIN_SPREAD_CALLS ? 0 : (newest.at(-2) ?? 0) - (newest[1] ?? 0);
  }

  #grow(): void {
    const oldest = (2 * this.#recorded) % this.#values.length;
    const longer = new Float64Array(2 * this.#values.length);
    longer.set(this.#values.subarray(oldest));
    longer.set(this.#values.subarray(0, oldest), this.#values.length - oldest);
    this.#recorded = this.#values.length / 2;
    this.#values = longer;
  }

  get #size(): number {
    return Math.min(this.#recorded, this.#values.length / 2);
  }

  #at(place: number): number {
    return this.#values[(2 * place) % this.#values.length] ?? 0;
  }
}
