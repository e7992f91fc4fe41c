/**
 * A board in this process, by an injected clock: for what takes too long in real time. test/fleet/shared-token/redis-token-store.test.ts holds it to
 * the same rules as the one over Redis. It can be away, and it can lose an answer.
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

export class MemoryBoard implements SharedTokenStore {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #entries = new Map<string, Entry>();
  isAway = false;
  claims = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Everything in it, as text. */
  dump(): string {
    return JSON.stringify([...this.#entries]);
  }

  /** Puts `sealed` where a posted token was. */
  spoil(sealed: string): void {
    for (const entry of this.#entries.values()) if (entry.token) entry.token = { ...entry.token, sealed };
  }

  forget(): void {
    this.#entries.clear();
  }

  whenReady(): Promise<boolean> {
    return Promise.resolve(!this.isAway);
  }

  claim(name: string, request: ClaimRequest): Promise<ClaimResult | undefined> {
    this.claims++;
    return this.#answer(() => this.#claim(this.#entry(name), request));
  }

  publish(name: string, posting: PublishRequest): Promise<boolean | undefined> {
    return this.#answer(() => {
      const entry = this.#entry(name);
      if (!this.#isFree(entry, posting.owner) || posting.expiresAt <= this.#now()) return false;
      this.#entries.set(name, { token: posting });
      return true;
    });
  }

  publishFailure(name: string, owner: string, sealed: string, holdMs: number): Promise<boolean | undefined> {
    return this.#answer(() => {
      const entry = this.#entry(name);
      if (!this.#isFree(entry, owner)) return false;
      const until = this.#now() + holdMs;
      entry.lease = undefined;
      entry.failure = { sealed, owner, until, yieldUntil: until + holdMs, isWanted: false };
      return true;
    });
  }

  releaseLease(name: string, owner: string): Promise<boolean | undefined> {
    return this.#answer(() => {
      const entry = this.#entry(name);
      if (entry.lease?.owner !== owner) return false;
      entry.lease = undefined;
      return true;
    });
  }

  discardUnreadable(name: string, sealed: string): Promise<boolean | undefined> {
    return this.#answer(() => {
      const entry = this.#entry(name);
      if (entry.token?.sealed === sealed) entry.token = undefined;
      else if (entry.failure?.sealed === sealed) entry.failure = undefined;
      else return false;
      return true;
    });
  }

  #claim(entry: Entry, { owner, leaseMs, excludedMark, isRefused, minRemainingShare }: ClaimRequest): ClaimResult {
    const now = this.#now();
    const { token, failure } = entry;
    if (token !== undefined && token.mark !== excludedMark) {
      const leftMs = token.expiresAt - now;
      if (leftMs > 0 && leftMs >= token.lifetimeMs * minRemainingShare)
        return { kind: 'found', sealed: token.sealed, leftMs };
    } else if (isRefused) {
      entry.token = undefined;
    }
    if (!this.#isFree(entry, owner)) return { kind: 'taken', owner: entry.lease?.owner ?? '' };
    if (failure !== undefined) {
      const isOwn = failure.owner === owner;
      const until = isOwn ? (failure.isWanted ? failure.yieldUntil : 0) : failure.until;
      if (until > now) {
        if (!isOwn) failure.isWanted = true;
        return {
          kind: 'failed',
          sealed: failure.sealed,
          leftMs: Math.min(until, Math.max(failure.until, now) + 500) - now,
        };
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

  #answer<T>(act: () => T): Promise<T | undefined> {
    return Promise.resolve(this.isAway ? undefined : act());
  }

  /** Unlike that of those who ask: whoever mixes the two up is found out. */
  #now(): number {
    return Math.floor(this.#clock.now()) + 1_700_000_000_000;
  }
}
