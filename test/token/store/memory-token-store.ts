/**
 * A store of shared tokens in memory, by an injected clock, for tests that take too long in real time. It can be unavailable.
 * test/fleet/shared-token/redis-token-store.test.ts checks it and the store over Redis with the same tests.
 */
import type { Clock } from '../../../src/platform/clock.ts';
import type {
  ClaimResult,
  ClaimRequest,
  PublishRequest,
  SharedTokenStore,
} from '../../../src/token/store/shared-token-store.ts';

interface Failure {
  readonly sealed: string;
  readonly owner: string;
  readonly until: number;
  readonly yieldUntil: number;
  isWanted: boolean;
}

interface Entry {
  token?: PublishRequest | undefined;
  lease?: { readonly owner: string; readonly until: number } | undefined;
  failure?: Failure | undefined;
}

export class MemoryTokenStore implements SharedTokenStore {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #entries = new Map<string, Entry>();
  isAway = false;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** All records as text. */
  dump(): string {
    return JSON.stringify([...this.#entries]);
  }

  /** Replaces stored tokens by `sealed`. */
  corrupt(sealed: string): void {
    for (const entry of this.#entries.values()) if (entry.token) entry.token = { ...entry.token, sealed };
  }

  forget(): void {
    this.#entries.clear();
  }

  whenReady(): Promise<boolean> {
    return Promise.resolve(!this.isAway);
  }

  claim(name: string, request: ClaimRequest): Promise<ClaimResult | undefined> {
    return this.#reply(() => this.#claim(this.#entry(name), request));
  }

  publish(name: string, token: PublishRequest): Promise<boolean | undefined> {
    return this.#reply(() => {
      const entry = this.#entry(name);
      if (!this.#isFree(entry, token.owner) || token.expiresAt <= this.#now()) return false;
      this.#entries.set(name, { token });
      return true;
    });
  }

  publishFailure(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined> {
    return this.#reply(() => {
      const entry = this.#entry(name);
      if (!this.#isFree(entry, owner)) return false;
      const until = this.#now() + holdMs;
      entry.lease = undefined;
      entry.failure = { sealed, owner, until, yieldUntil: until + holdMs, isWanted: false };
      return true;
    });
  }

  releaseLease(name: string, owner: string): Promise<boolean | undefined> {
    return this.#reply(() => {
      const entry = this.#entry(name);
      if (entry.lease?.owner !== owner) return false;
      entry.lease = undefined;
      return true;
    });
  }

  #claim(entry: Entry, { owner, leaseMs, declined, isUseless }: ClaimRequest): ClaimResult {
    const now = this.#now();
    if (entry.token !== undefined && entry.token.sealed !== declined)
      return { kind: 'found', sealed: entry.token.sealed, storeNow: now };
    if (isUseless) entry.token = undefined;
    if (!this.#isFree(entry, owner)) return { kind: 'taken', owner: entry.lease?.owner ?? '' };
    if (isUseless && entry.failure?.sealed === declined) entry.failure = undefined;
    const { failure } = entry;
    if (failure !== undefined && failure.sealed !== declined) {
      const isOwn = failure.owner === owner;
      const until = isOwn ? (failure.isWanted ? failure.yieldUntil : 0) : failure.until;
      if (until > now) {
        if (!isOwn) failure.isWanted = true;
        const leftMs = Math.min(until, Math.max(failure.until, now) + 500) - now;
        return { kind: 'failed', sealed: failure.sealed, storeNow: now, leftMs };
      }
    }
    entry.lease = { owner, until: now + leaseMs };
    return { kind: 'yours', storeNow: now };
  }

  #isFree({ lease }: Entry, owner: string): boolean {
    return lease === undefined || lease.owner === owner || lease.until <= this.#now();
  }

  #entry(name: string): Entry {
    const entry = this.#entries.get(name) ?? {};
    this.#entries.set(name, entry);
    return entry;
  }

  #reply<T>(act: () => T): Promise<T | undefined> {
    return Promise.resolve(this.isAway ? undefined : act());
  }

  /** Differs from the replicas' clocks, so that a test fails if the two are mixed up. */
  #now(): number {
    return Math.floor(this.#clock.now()) + 1_700_000_000_000;
  }
}
