/**
 * Lets the replicas of a fleet share token requests: one replica with a credential sends the request, and the others take
 * over its result, a token or a failure, from the shared store. If the store or the requesting replica does not respond in
 * time, the request is sent as without a fleet.
 */
import { randomUUID } from 'node:crypto';
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { abortableDelay } from '../source/abortable.ts';
import { chooseRetryDelays } from '../source/refresh-schedule.ts';
import { SuspendAwareClock } from '../source/suspend-aware-clock.ts';
import type { ReusedToken, SendTokenRequest, TokenFetchResult, TokenNeed } from '../source/token-fetcher.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../endpoint/token-response.ts';
import { openToken, sealToken } from './sealed-token.ts';
import type { TokenIdentity } from './sealed-token.ts';
import { deriveRecordName, deriveTokenMark, openFailure, sealFailure } from './shared-record.ts';
import type { ClaimRequest, ClaimResult, PublishRequest, SharedTokenStore } from './shared-token-store.ts';
import { WaitBudget } from './wait-budget.ts';

export interface SharedTokenOptions<C> {
  readonly store: SharedTokenStore;
  /** Sends one token request to the endpoint. Never rejects, and ends when its signal is aborted. */
  readonly sendRequest: (credentials: C, signal: AbortSignal) => Promise<TokenRequestResult>;
  readonly identify: (credentials: C) => TokenIdentity;
  /** Longest wait for the token request of one other replica, milliseconds: as long as a request may take. */
  readonly peerWaitMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

/** Renewed while the request is in flight: the others notice within this time that its replica died. */
const LEASE_MS = 3_000;
const LEASE_RENEWAL_MS = 1_000;

/** For a store that owes a reply and will probably give it soon. */
const MAX_STORE_ATTEMPTS = 3;

/** After this time on failures of other replicas a replica sends a request of its own: the store may be wrong. */
const MAX_CACHED_PEER_STATE_MS = 600_000;

/** Between two claims while another replica holds the lease. */
const INITIAL_POLL_MS = 20;
const MAX_POLL_MS = 100;
const POLL_GROWTH = 1.5;

/** A token with less of its lifetime left is not worth starting with, and a refresh is due at less than a quarter. */
const MIN_REMAINING_SHARE = 0.1;
const MIN_REMAINING_SHARE_TO_REFRESH = 0.25;

/** Wraps `sendRequest`, so that one replica of the fleet sends it at a time. */
export function shareTokenRequests<C>(options: SharedTokenOptions<C>): SendTokenRequest<C> {
  const requester = new SharedTokenRequester(options);
  return (credentials, signal, need) => requester.obtain(credentials, signal, need);
}

const ABANDONED: TokenRequestResult = { kind: 'unavailable', detail: 'the token request was abandoned' };

/** One need of one replica. */
interface TokenTask<C> {
  readonly credentials: C;
  readonly identity: TokenIdentity;
  readonly recordName: string;
  readonly need: TokenNeed;
  readonly signal: AbortSignal;
}

/** When the request of this replica started, by its own wall clock and by the store's clock. */
interface RequestStart {
  readonly wallAt: number;
  readonly storeAt: number;
}

class SharedTokenRequester<C> {
  readonly #options: SharedTokenOptions<C>;
  readonly #clock: SuspendAwareClock;
  readonly #owner = randomUUID();
  #failures = 0;
  /** Since when this replica has only seen failures of others. */
  #cachedPeerStateSince: number | undefined;
  #hasWarned = false;

  constructor(options: SharedTokenOptions<C>) {
    this.#options = options;
    this.#clock = new SuspendAwareClock(options.clock);
  }

  async obtain(credentials: C, signal: AbortSignal, need: TokenNeed): Promise<TokenFetchResult> {
    const { clock, random, peerWaitMs } = this.#options;
    const identity = this.#options.identify(credentials);
    const task: TokenTask<C> = { credentials, identity, recordName: deriveRecordName(identity), need, signal };
    const budget = new WaitBudget(peerWaitMs, this.#clock.now());
    for (let polls = 0; budget.hasTimeLeft(this.#clock.now()) && !signal.aborted; polls++) {
      const claimedAt = this.#clock.now();
      const claim = await this.#claim(task);
      if (claim === undefined || (claim.kind === 'failed' && this.#isPeerStateTooOld(claimedAt))) break;
      if (claim.kind === 'yours') return this.#requestToken(task, claim.storeNow);
      if (claim.kind === 'taken') budget.extendForReplica(claim.owner, this.#clock.now());
      const result = claim.kind === 'taken' ? undefined : await this.#readPeerResult(task, claim, claimedAt);
      if (result !== undefined) return result;
      // Spread, so that waiting replicas do not claim together.
      const pollMs = Math.min(MAX_POLL_MS, INITIAL_POLL_MS * POLL_GROWTH ** polls) * (0.75 + random() / 2);
      await abortableDelay(clock, pollMs, signal);
    }
    this.#cachedPeerStateSince = undefined;
    return signal.aborted ? ABANDONED : this.#options.sendRequest(credentials, signal);
  }

  #isPeerStateTooOld(now: number): boolean {
    return this.#cachedPeerStateSince !== undefined && now - this.#cachedPeerStateSince >= MAX_CACHED_PEER_STATE_MS;
  }

  async #claim({ recordName, identity, need }: TokenTask<C>): Promise<ClaimResult | undefined> {
    const { store } = this.#options;
    const request: ClaimRequest = {
      owner: this.#owner,
      leaseMs: LEASE_MS,
      excludedMark: need.held && deriveTokenMark(identity, need.held.value),
      isRefused: need.reason === 'unauthorized',
      minRemainingShare: need.reason === 'refresh' ? MIN_REMAINING_SHARE_TO_REFRESH : MIN_REMAINING_SHARE,
    };
    return this.#retryStore(() => store.claim(recordName, request));
  }

  async #retryStore<T>(call: () => Promise<T | undefined>): Promise<T | undefined> {
    for (let attempts = 0; attempts < MAX_STORE_ATTEMPTS && (await this.#options.store.whenReady()); attempts++) {
      const result = await call();
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /** The result of another replica; an unreadable one is removed from the store, and undefined. */
  async #readPeerResult(
    { recordName, identity }: TokenTask<C>,
    { kind, sealed, leftMs }: Extract<ClaimResult, { kind: 'found' | 'failed' }>,
    claimedAt: number,
  ): Promise<TokenFetchResult | undefined> {
    const result =
      kind === 'found'
        ? this.#openPeerToken(sealed, identity, leftMs, claimedAt)
        : openPeerFailure(sealed, identity, leftMs);
    if (result === undefined) {
      this.#warnOnce();
      await this.#options.store.discardUnreadable(recordName, sealed);
    } else {
      this.#failures = result.kind === 'found' ? 0 : this.#failures + 1;
      this.#cachedPeerStateSince = result.kind === 'found' ? undefined : (this.#cachedPeerStateSince ?? claimedAt);
    }
    return result;
  }

  /** The lifetime left is counted by the store's clock: the wall clocks of two replicas may differ. */
  #openPeerToken(sealed: string, identity: TokenIdentity, leftMs: number, claimedAt: number): ReusedToken | undefined {
    const stored = openToken(sealed, identity);
    if (stored === undefined) return undefined;
    const lifetimeMs = stored.expiresWallAt - stored.obtainedWallAt;
    // Counted from before the claim, so that a slow reply does not prolong the lifetime.
    const passedMs = this.#clock.now() - claimedAt;
    const expiresWallAt = this.#options.clock.wallNow() - passedMs + Math.min(leftMs, lifetimeMs);
    return {
      kind: 'found',
      token: { ...stored, obtainedWallAt: expiresWallAt - lifetimeMs, expiresWallAt },
      from: 'fleet',
    };
  }

  async #requestToken(task: TokenTask<C>, storeNow: number): Promise<TokenRequestResult> {
    const { store, sendRequest, clock } = this.#options;
    const { credentials, recordName, signal } = task;
    this.#cachedPeerStateSince = undefined;
    const release = (): void => void store.releaseLease(recordName, this.#owner);
    signal.addEventListener('abort', release, { once: true });
    // The store's time before the request: the stored lifetime never exceeds the token's own.
    const start: RequestStart = { wallAt: clock.wallNow(), storeAt: storeNow };
    const stopLeaseRenewal = this.#startLeaseRenewal(task);
    try {
      const result = await sendRequest(credentials, signal);
      // In the background: the callers of this replica do not wait for the store.
      if (!signal.aborted) void this.#publishResult(task, result, start);
      return result;
    } finally {
      stopLeaseRenewal();
      signal.removeEventListener('abort', release);
    }
  }

  #startLeaseRenewal(task: TokenTask<C>): Cancel {
    let cancel: Cancel;
    const schedule = (): void => {
      cancel = this.#options.clock.after(LEASE_RENEWAL_MS, () => {
        void this.#claim(task);
        schedule();
      });
    };
    schedule();
    return () => cancel();
  }

  async #publishResult(task: TokenTask<C>, result: TokenRequestResult, start: RequestStart): Promise<void> {
    const { store } = this.#options;
    const { recordName, identity } = task;
    if (result.kind === 'ok') {
      this.#failures = 0;
      const token = this.#createPublishRequest(identity, result, start);
      await this.#retryStore(() => store.publish(recordName, token));
    } else {
      this.#failures += 1;
      const sealed = sealFailure(result, identity);
      const holdMs = this.#chooseHoldMs(result);
      await this.#retryStore(() => store.publishFailure(recordName, this.#owner, sealed, holdMs));
    }
  }

  #createPublishRequest(
    identity: TokenIdentity,
    { value, scope, lifetimeMs }: Extract<TokenRequestResult, { kind: 'ok' }>,
    start: RequestStart,
  ): PublishRequest {
    const token = { value, scope, obtainedWallAt: start.wallAt, expiresWallAt: start.wallAt + lifetimeMs };
    return {
      owner: this.#owner,
      sealed: sealToken(token, identity),
      mark: deriveTokenMark(identity, value),
      expiresAt: start.storeAt + lifetimeMs,
      lifetimeMs,
    };
  }

  /** The longest wait of a single process: afterwards all replicas claim together, which is one request. */
  #chooseHoldMs(failure: TokenRequestFailure): number {
    const facts = { failures: this.#failures, isCircuitOpen: false, requestDurationMs: 0, random: 1 };
    return chooseRetryDelays(failure, facts).eagerMs;
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = 'what another replica left in Redis cannot be read: it is ignored, and replaced';
    this.#options.observe({ kind: 'warning', message });
  }
}

/** The failure of another replica; an unavailable endpoint is retried when the store's wait ends. */
function openPeerFailure(sealed: string, identity: TokenIdentity, leftMs: number): TokenRequestFailure | undefined {
  const failure = openFailure(sealed, identity);
  return failure?.kind === 'unavailable'
    ? { ...failure, retryAfterMs: leftMs, from: 'fleet' }
    : failure && { ...failure, from: 'fleet' };
}
