/** Which operations the refusals of a route fall on (pure): the odds of each that a limit is its own. */
import { ScopeOdds } from './scope-odds.ts';

const MAX_OPERATIONS = 64;

export class RefusedOperations {
  readonly #odds = new Map<string, ScopeOdds>();
  readonly #shareOf: (now: number, operation: string) => number;
  /** Calls that were sent before the last refusal came say nothing new. */
  #lastRefusedAt = -Infinity;

  /** @param shareOf share of an operation among the accepted calls of late */
  constructor(shareOf: (now: number, operation: string) => number) {
    this.#shareOf = shareOf;
  }

  oddsOf(operation: string): ScopeOdds | undefined {
    return this.#odds.get(operation);
  }

  getOrCreate(operation: string): ScopeOdds {
    const present = this.#odds.get(operation);
    if (present !== undefined) return present;
    const [oldest] = this.#odds.keys();
    if (this.#odds.size >= MAX_OPERATIONS && oldest !== undefined) this.#odds.delete(oldest);
    const odds = new ScopeOdds();
    this.#odds.set(operation, odds);
    return odds;
  }

  /** @returns true when this refusal begins a closure: the call was sent after the last refusal */
  recordRefused(now: number, sentAt: number): boolean {
    const isFirst = sentAt > this.#lastRefusedAt;
    this.#lastRefusedAt = Math.max(this.#lastRefusedAt, now);
    return isFirst;
  }

  recordClosure(now: number, operation: string): void {
    this.getOrCreate(operation);
    for (const [each, odds] of this.#odds) odds.recordClosure(each === operation, this.#shareOf(now, each));
  }

  /** The operation that the refusals fall on, as far as they go; undefined while that is not certain, or where there are several. */
  get only(): string | undefined {
    const likely = [...this.#odds].filter(([, odds]) => odds.isLikely);
    return likely.length === 1 ? likely[0]?.[0] : undefined;
  }
}
