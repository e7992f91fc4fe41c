/** Which operations the refusals of a route fall on (pure): the odds of each that a limit is its own. */
import { OTHERS } from '../queue/response-times.ts';
import { ScopeOdds } from './scope-odds.ts';

const MAX_OPERATIONS = 64;
/** Accepted calls before a closure by which the shares are estimated: at most so many count, and this part of those before the last one. */
const MAX_WEIGHT = 50;
const KEPT_WEIGHT = 0.8;

interface AcceptedShare {
  /** Calls since the start, at the last closure. */
  readonly total: number;
  /** Calls of late. */
  readonly weight: number;
}

export class RefusedOperations {
  readonly #odds = new Map<string, ScopeOdds>();
  readonly #listAccepted: () => Iterable<readonly [operation: string, total: number]>;
  readonly #accepted = new Map<string, AcceptedShare>();
  /** Calls that were sent before the last refusal came say nothing new. */
  #lastRefusedAt = -Infinity;

  /** @param listAccepted accepted calls of each operation since the start; those that are not listed share `OTHERS` */
  constructor(listAccepted: () => Iterable<readonly [operation: string, total: number]>) {
    this.#listAccepted = listAccepted;
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

  recordClosure(operation: string): void {
    this.getOrCreate(operation);
    this.#updateShares();
    let sum = this.#accepted.size;
    for (const { weight } of this.#accepted.values()) sum += weight;
    for (const [each, odds] of this.#odds) {
      const { weight = 0 } = this.#accepted.get(each) ?? this.#accepted.get(OTHERS) ?? {};
      odds.recordClosure(each === operation, (weight + 1) / Math.max(1, sum));
    }
  }

  #updateShares(): void {
    const totals = [...this.#listAccepted()];
    const newOf = (operation: string, total: number): number =>
      Math.max(0, total - (this.#accepted.get(operation)?.total ?? 0));
    const newCalls = totals.reduce((sum, [operation, total]) => sum + newOf(operation, total), 0);
    const scale = Math.min(1, MAX_WEIGHT / Math.max(1, newCalls));
    const shares = totals.map(([operation, total]): [string, AcceptedShare] => {
      const kept = KEPT_WEIGHT * (this.#accepted.get(operation)?.weight ?? 0);
      return [operation, { total, weight: kept + scale * newOf(operation, total) }];
    });
    this.#accepted.clear();
    for (const [operation, share] of shares) this.#accepted.set(operation, share);
  }

  /** The operation that the refusals fall on, as far as they go; undefined while that is not certain, or where there are several. */
  get only(): string | undefined {
    const likely = [...this.#odds].filter(([, odds]) => odds.isLikely);
    return likely.length === 1 ? likely[0]?.[0] : undefined;
  }
}
