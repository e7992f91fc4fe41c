/**
 * A declared limit with `match`. With `each` it has a count for each value of the `*` segments of its path, 64 at most; the limit itself counts
 * the other values, and without `each` every call that it matches.
 */
import { describeMatch, findMatch, hashText } from './call-match.ts';
import { CountedLimit, type LimitPart } from './counted-limit.ts';
import type { DeclaredLimit, DeclaredLimitState } from './declared-limit.ts';

const MAX_VALUES = 64;

export class OperationLimit extends CountedLimit {
  /** Names the calls that it matches. */
  readonly #calls: string;
  /** By the hash of the value, the least recently used first. */
  readonly #byValue = new Map<string, CountedLimit>();

  constructor(terms: DeclaredLimit, part: LimitPart | undefined) {
    const { match = {}, each = false } = terms;
    const calls = hashText(JSON.stringify([match.methods?.toSorted(), match.path, each]));
    super(terms, part, calls);
    this.#calls = calls;
  }

  get counts(): readonly CountedLimit[] {
    return [this, ...this.#byValue.values()];
  }

  /** The count of a call, which may replace an idle one; undefined when the limit does not count it. */
  find(method: string, readings: readonly (readonly string[])[], at: number): CountedLimit | undefined {
    const { match = {}, each } = this.terms;
    const value = findMatch(match, method, readings);
    if (value === undefined) return undefined;
    return each === true ? this.#countOf(hashText(value), at) : this;
  }

  /** The count of a key that an earlier process has written. */
  findKey(key: string, at: number): CountedLimit | undefined {
    if (key === this.key) return this;
    const prefix = `${this.key} `;
    return key.startsWith(prefix) ? this.#countOf(key.slice(prefix.length), at) : undefined;
  }

  override reconfigure(terms: DeclaredLimit): void {
    super.reconfigure(terms);
    for (const count of this.#byValue.values()) count.reconfigure(terms);
  }

  override retire(): void {
    super.retire();
    for (const count of this.#byValue.values()) count.retire();
  }

  /** The figures are those of the fullest count. */
  override state(at: number): DeclaredLimitState {
    const states = [super.state(at), ...[...this.#byValue.values()].map((count) => count.state(at))];
    const fullest = states.reduce((one, other) => (other.used > one.used ? other : one));
    const { match = {}, each } = this.terms;
    return { ...fullest, match: describeMatch(match), values: each === true ? this.#byValue.size : undefined };
  }

  #countOf(valueHash: string, at: number): CountedLimit {
    const count = this.#byValue.get(valueHash) ?? this.#createCount(valueHash, at);
    if (count === undefined) return this;
    this.#byValue.delete(valueHash);
    this.#byValue.set(valueHash, count);
    return count;
  }

  #createCount(valueHash: string, at: number): CountedLimit | undefined {
    if (this.#byValue.size >= MAX_VALUES) {
      const idle = [...this.#byValue].find(([, one]) => one.isIdle(at));
      if (idle === undefined) return undefined;
      this.#byValue.delete(idle[0]);
    }
    const count = new CountedLimit(this.terms, this.part, `${this.#calls} ${valueHash}`);
    // The store leases permits of all limits or of none.
    if (Number.isFinite(this.leased)) count.leased = 0;
    return count;
  }
}
