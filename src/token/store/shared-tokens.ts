/**
 * One token for a fleet: wraps a token request so that of all replicas with one credential a single one sends it, and the others
 * take over what it brought, be it a token or a failure. Replicas meet at a board that is handed in. Whenever it does not answer
 * in time, or the one who asks is not heard of, the request is sent as if there were no fleet. When a token is needed is
 * renewal's, what replicas can read of each other shared-record's.
 */
import { randomUUID } from 'node:crypto';
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { abortableDelay } from '../source/abortable.ts';
import { SuspendAwareClock } from '../source/suspend-aware-clock.ts';
import { WaitBudget } from '../source/wait-budget.ts';
import { chooseRetryDelays } from '../source/refresh-schedule.ts';
import { openToken, sealToken } from './sealed-token.ts';
import { deriveTokenMark, deriveRecordName, openFailure, sealFailure } from './shared-record.ts';
import type { TokenIdentity } from './shared-record.ts';
import type { ReusedToken, TokenNeed } from '../source/token-fetcher.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../endpoint/token-response.ts';
import type { ClaimResult, ClaimRequest, PublishRequest, SharedTokenStore } from './shared-token-store.ts';

export interface SharedTokenOptions<C> {
  readonly store: SharedTokenStore;
  /** Sends one token request. Never rejects, and ends when its signal is aborted. */
  readonly sendRequest: (credentials: C, signal: AbortSignal) => Promise<TokenRequestResult>;
  readonly identify: (credentials: C) => TokenIdentity;
  /** Longest wait for what one other replica asks for, milliseconds: as long as a request may take. */
  readonly peerWaitMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

/** As a token request; `found` when another replica has asked. */
export type SharedTokenRequest<C> = (
  credentials: C,
  signal: AbortSignal,
  need: TokenNeed,
) => Promise<TokenRequestResult | ReusedToken>;

/** Kept up while the request is under way, so that the others notice within this time that whoever asks has died. */
const LEASE_MS = 3_000;
const LEASE_RENEWAL_MS = 1_000;

/** How often a board that owes an answer, and is likely to give it soon, is asked anew. */
const MAX_STORE_ATTEMPTS = 3;

/** Whatever the board says, each replica finds out for itself now and then: what was left there may be a lie. */
const MAX_CACHED_PEER_STATE_MS = 600_000;

/** Between two looks at the board while another replica asks. */
const INITIAL_POLL_MS = 20;
const MAX_POLL_MS = 100;
const POLL_GROWTH = 1.5;

/** The tenth of a life in which a token is not worth beginning with, and the part in which its refresh is due. */
const MIN_REMAINING_SHARE = 0.1;
const MIN_REMAINING_SHARE_TO_RENEW = 0.25;

/** A request that is sent by one replica of a fleet at a time. */
export function shareTokenRequests<C>(options: SharedTokenOptions<C>): SharedTokenRequest<C> {
  const sharing = new SharedTokenRequester(options);
  return (credentials, signal, need) => sharing.obtain(credentials, signal, need);
}

type IssuedToken = Extract<TokenRequestResult, { kind: 'ok' }>;

/** Undefined when the board cannot be asked now. */
type PublishAttempt = () => Promise<boolean | undefined>;

const ABANDONED: TokenRequestResult = { kind: 'unavailable', detail: 'the token request was abandoned' };

/** One need of one replica. */
interface TokenTask<C> {
  readonly credentials: C;
  readonly identity: TokenIdentity;
  readonly recordName: string;
  readonly need: TokenNeed;
  readonly signal: AbortSignal;
}

class SharedTokenRequester<C> {
  readonly #options: SharedTokenOptions<C>;
  readonly #suspendAwareClock: SuspendAwareClock;
  readonly #owner = randomUUID();
  #failures = 0;
  /** Since when all that is known is what others were refused. */
  #cachedPeerStateSince: number | undefined;
  #hasWarned = false;

  constructor(options: SharedTokenOptions<C>) {
    this.#options = options;
    this.#suspendAwareClock = new SuspendAwareClock(options.clock);
  }

  async obtain(credentials: C, signal: AbortSignal, need: TokenNeed): Promise<TokenRequestResult | ReusedToken> {
    const { clock, random, peerWaitMs } = this.#options;
    const identity = this.#options.identify(credentials);
    const errand: TokenTask<C> = { credentials, identity, recordName: deriveRecordName(identity), need, signal };
    const patience = new WaitBudget(peerWaitMs, this.#suspendAwareClock.now());
    for (let looks = 0; patience.hasTimeLeft(this.#suspendAwareClock.now()) && !signal.aborted; looks++) {
      const askedAt = this.#suspendAwareClock.now();
      const claim = await this.#claim(errand);
      if (claim === undefined || (claim.kind === 'failed' && this.#isPeerStateTooOld(askedAt))) break;
      if (claim.kind === 'yours') return this.#requestToken(errand, claim.storeNow);
      if (claim.kind === 'taken') patience.extendForReplica(claim.owner, this.#suspendAwareClock.now());
      const answer = claim.kind === 'taken' ? undefined : await this.#readPeerResult(errand, claim, askedAt);
      if (answer !== undefined) return answer;
      // Spread, so that those who wait together do not ask together.
      const lookMs = Math.min(MAX_POLL_MS, INITIAL_POLL_MS * POLL_GROWTH ** looks) * (0.75 + random() / 2);
      await abortableDelay(clock, lookMs, signal);
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
      minRemainingShare: need.reason === 'renewal' ? MIN_REMAINING_SHARE_TO_RENEW : MIN_REMAINING_SHARE,
    };
    for (let tries = 0; tries < MAX_STORE_ATTEMPTS && (await store.whenReady()); tries++) {
      const claim = await store.claim(recordName, request);
      if (claim !== undefined) return claim;
    }
    return undefined;
  }

  /** What another replica left; undefined when it cannot be read, and then it is gone. */
  async #readPeerResult(
    { recordName, identity }: TokenTask<C>,
    claim: Extract<ClaimResult, { kind: 'found' | 'failed' }>,
    askedAt: number,
  ): Promise<TokenRequestResult | ReusedToken | undefined> {
    const { sealed, leftMs } = claim;
    const answer =
      claim.kind === 'found'
        ? this.#openPeerToken(sealed, identity, leftMs, askedAt)
        : openPeerFailure(sealed, identity, leftMs);
    if (answer === undefined) {
      this.#warnOnce();
      await this.#options.store.discardUnreadable(recordName, sealed);
    } else {
      this.#failures = answer.kind === 'found' ? 0 : this.#failures + 1;
      this.#cachedPeerStateSince = answer.kind === 'found' ? undefined : (this.#cachedPeerStateSince ?? askedAt);
    }
    return answer;
  }

  /** Its life is what the board says is left of it: the wall clocks of two replicas need not agree. */
  #openPeerToken(sealed: string, identity: TokenIdentity, leftMs: number, askedAt: number): ReusedToken | undefined {
    const kept = openToken(sealed, identity.binding, identity.keyMaterial);
    if (kept === undefined) return undefined;
    const lifetimeMs = kept.expiresWallAt - kept.obtainedWallAt;
    // Counted from before the board was asked, so that no way of the answer prolongs it.
    const passedMs = this.#suspendAwareClock.now() - askedAt;
    const expiresWallAt = this.#options.clock.wallNow() - passedMs + Math.min(leftMs, lifetimeMs);
    return {
      kind: 'found',
      token: { ...kept, obtainedWallAt: expiresWallAt - lifetimeMs, expiresWallAt },
      from: 'fleet',
    };
  }

  async #requestToken(errand: TokenTask<C>, boardNow: number): Promise<TokenRequestResult> {
    const { store, sendRequest, clock } = this.#options;
    const { credentials, recordName, signal } = errand;
    this.#cachedPeerStateSince = undefined;
    const release = (): void => void store.releaseLease(recordName, this.#owner);
    signal.addEventListener('abort', release, { once: true });
    const askedWallAt = clock.wallNow();
    const endUpkeep = this.#startLeaseRenewal(errand);
    try {
      const answer = await sendRequest(credentials, signal);
      // In the background: the callers of this replica do not wait for the others.
      if (!signal.aborted) void this.#publishResult(errand, answer, askedWallAt, boardNow);
      return answer;
    } finally {
      endUpkeep();
      signal.removeEventListener('abort', release);
    }
  }

  #startLeaseRenewal(errand: TokenTask<C>): Cancel {
    let cancel: Cancel;
    const sleep = (): void => {
      cancel = this.#options.clock.after(LEASE_RENEWAL_MS, () => {
        void this.#claim(errand);
        sleep();
      });
    };
    sleep();
    return () => cancel();
  }

  /** Says what came of it, at once or as soon as the board answers again. */
  async #publishResult(
    errand: TokenTask<C>,
    answer: TokenRequestResult,
    askedWallAt: number,
    boardNow: number,
  ): Promise<void> {
    this.#failures = answer.kind === 'ok' ? 0 : this.#failures + 1;
    const post =
      answer.kind === 'ok'
        ? this.#prepareToken(errand, answer, askedWallAt, boardNow)
        : this.#prepareFailure(errand, answer);
    for (let tries = 0; tries < MAX_STORE_ATTEMPTS && (await this.#options.store.whenReady()); tries++)
      if ((await post()) !== undefined) return;
  }

  /** @param boardNow before the request was sent: no life on the board is longer than the token's own */
  #prepareToken(
    { recordName, identity }: TokenTask<C>,
    answer: IssuedToken,
    askedWallAt: number,
    boardNow: number,
  ): PublishAttempt {
    const { value, scope, lifetimeMs } = answer;
    const kept = { value, scope, obtainedWallAt: askedWallAt, expiresWallAt: askedWallAt + lifetimeMs };
    const posting: PublishRequest = {
      owner: this.#owner,
      sealed: sealToken(kept, identity.binding, identity.keyMaterial),
      mark: deriveTokenMark(identity, value),
      expiresAt: boardNow + lifetimeMs,
      lifetimeMs,
    };
    return () => this.#options.store.publish(recordName, posting);
  }

  #prepareFailure({ recordName, identity }: TokenTask<C>, answer: TokenRequestFailure): PublishAttempt {
    const { store } = this.#options;
    const sealed = sealFailure(answer, identity);
    // As long as one process alone might wait: all that are told of it then ask again together, which is one request.
    const { eagerMs } = chooseRetryDelays(answer, {
      failures: this.#failures,
      isCircuitOpen: false,
      requestDurationMs: 0,
      random: 1,
    });
    return () => store.publishFailure(recordName, this.#owner, sealed, eagerMs);
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = 'what another replica left in Redis cannot be read: it is ignored, and replaced';
    this.#options.observe({ kind: 'warning', message });
  }
}

/** The failure of another replica, as one to wait after. */
function openPeerFailure(sealed: string, identity: TokenIdentity, leftMs: number): TokenRequestFailure | undefined {
  const failure = openFailure(sealed, identity);
  return failure?.kind === 'unavailable'
    ? { ...failure, retryAfterMs: leftMs, from: 'fleet' }
    : failure && { ...failure, from: 'fleet' };
}
