/** A declared limit of some operations, and its counts: one, or with `each` one for each value of the `*` segments of its path. */
import { describeMatch, findMatch, hashText, type CallMatch } from './call-match.ts';
import { CountedLimit, type LimitPart } from './counted-limit.ts';
import type { DeclaredLimit, DeclaredLimitState } from './declared-limit.ts';

/** Further values share one count. */
const MAX_VALUES = 64;
/** Replaces the terms of a limit that is no longer declared, for calls that still wait for it. */
const NO_LIMIT = { calls: Infinity, reserve: 0, spread: 'none' } as const;

export class OperationLimit {
  /** Counts every call; with `each` those whose values have no count of their own. */
  readonly shared: CountedLimit;
  #terms: DeclaredLimit;
  readonly #match: CallMatch;
  readonly #matchHash: string;
  /** By the hash of the value, the least recently used first. */
  readonly #byValue = new Map<string, CountedLimit>();

  constructor(terms: DeclaredLimit, match: CallMatch, part: LimitPart | undefined) {
    this.#terms = terms;
    this.#match = match;
    const { methods, path } = match;
    this.#matchHash = hashText(JSON.stringify([methods?.toSorted(), path, terms.each === true]));
    this.shared = new CountedLimit(terms, part, this.#matchHash);
  }

  get key(): string {
    return this.shared.key;
  }

  get counts(): readonly CountedLimit[] {
    return [this.shared, ...this.#byValue.values()];
  }

  /** The count of a call, which may replace an idle one; undefined when the limit does not count it. */
  find(method: string, readings: readonly (readonly string[])[], at: number): CountedLimit | undefined {
    const value = findMatch(this.#match, method, readings);
    if (value === undefined || this.#terms.each !== true) return value === undefined ? undefined : this.shared;
    return this.#countOf(hashText(value), at) ?? this.shared;
  }

  /** The count of a key that an earlier process has written. */
  restore(key: string, at: number): CountedLimit | undefined {
    if (key === this.shared.key) return this.shared;
    const prefix = `${this.shared.key} `;
    return key.startsWith(prefix) ? this.#countOf(key.slice(prefix.length), at) : undefined;
  }

  /** @param terms undefined: the limit is no longer declared */
  reconfigure(terms: DeclaredLimit | undefined): void {
    this.#terms = terms ?? { ...this.#terms, ...NO_LIMIT };
    for (const count of this.counts) {
      count.reconfigure(this.#terms);
      if (terms === undefined) count.leased = Infinity;
    }
  }

  /** The fullest count. */
  state(at: number): DeclaredLimitState {
    const states = this.counts.map((count) => count.state(at)).toSorted((one, other) => other.used - one.used);
    const values = this.#terms.each === true ? this.#byValue.size : undefined;
    return { ...(states[0] ?? this.shared.state(at)), match: describeMatch(this.#match), values };
  }

  #countOf(valueHash: string, at: number): CountedLimit | undefined {
    const count = this.#byValue.get(valueHash) ?? this.#addCount(valueHash, at);
    if (count === undefined) return undefined;
    this.#byValue.delete(valueHash);
    this.#byValue.set(valueHash, count);
    return count;
  }

  #addCount(valueHash: string, at: number): CountedLimit | undefined {
    if (this.#byValue.size >= MAX_VALUES) {
      const idle = [...this.#byValue].find(([, one]) => one.isIdle(at));
      if (idle === undefined) return undefined;
      this.#byValue.delete(idle[0]);
    }
    const count = new CountedLimit(this.#terms, this.shared.part, `${this.#matchHash} ${valueHash}`);
    // The store leases permits of all limits or of none.
    if (Number.isFinite(this.shared.leased)) count.leased = 0;
    return count;
  }
}
