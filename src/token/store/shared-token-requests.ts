/**
 * Lets the replicas of a fleet share token requests: one replica with a credential sends the request, and the others take
 * over its result, a token or a failure, from the shared store. If the store or the requesting replica does not respond in
 * time, the request is sent as without a fleet.
 */
import { randomUUID } from 'node:crypto';
import { sleep, type Cancel } from '../../platform/clock.ts';
import { chooseRetryDelays, isLasting } from '../source/refresh-schedule.ts';
import { SuspendAwareClock } from '../source/suspend-aware-clock.ts';
import type { ClientCredential } from '../client/client-authentication.ts';
import type {
  ReusedToken,
  SendTokenRequest,
  TokenFetchResult,
  TokenNeed,
  TokenPartOptions,
} from '../source/token-fetcher.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../endpoint/token-response.ts';
import { deriveRecordName, openFailure, openToken, sealFailure, sealToken } from './sealed-token.ts';
import type { SharedToken, TokenIdentity } from './sealed-token.ts';
import type { ClaimResult, SharedTokenStore } from './shared-token-store.ts';

export interface SharedTokenOptions extends Omit<TokenPartOptions, 'credential'> {
  readonly store: SharedTokenStore;
  /** Sends one token request to the endpoint. Never rejects, and ends when its signal is aborted. */
  readonly sendRequest: (credential: ClientCredential, signal: AbortSignal) => Promise<TokenRequestResult>;
  /** Undefined: nothing could encrypt the token for two replicas, and it is not shared. */
  readonly identify: (credential: ClientCredential) => TokenIdentity | undefined;
  /** Longest wait for the token request of one other replica, milliseconds: as long as a request may take. */
  readonly peerWaitMs: number;
}

/** Renewed while the request is in flight: the others notice within this time that its replica died. */
const LEASE_MS = 3_000;
const LEASE_RENEWAL_MS = 1_000;

/** One after the other: each has `peerWaitMs`, and all together no more than that many times as long. */
const MAX_REPLICAS_AWAITED = 3;

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

export function shareTokenRequests(options: SharedTokenOptions): SendTokenRequest {
  const requester = new SharedTokenRequester(options);
  return (credential, signal, need) => requester.obtain(credential, signal, need);
}

const ABANDONED: TokenRequestResult = { kind: 'unavailable', detail: 'the token request was abandoned' };

interface TokenTask {
  readonly credential: ClientCredential;
  readonly identity: TokenIdentity;
  readonly recordName: string;
  readonly need: TokenNeed;
  readonly signal: AbortSignal;
}

/** The claim before the request of this replica, by the store's clock and by its own. */
type RequestStart = Readonly<Record<'storeAt' | 'at', number>>;

/** A stored text that this replica does not take. */
interface Declined {
  readonly sealed: string;
  /** For the others too: it was rejected, has ended or cannot be read. */
  readonly isUseless: boolean;
}

class SharedTokenRequester {
  readonly #options: SharedTokenOptions;
  readonly #clock: SuspendAwareClock;
  readonly #owner = randomUUID();
  #failures = 0;
  #lastingFailures = 0;
  /** Since when this replica has only seen failures of others. */
  #cachedPeerStateSince: number | undefined;
  #hasWarned = false;
  /** The newest that this replica took from the store or put there: it takes neither this one again nor an older one. */
  #newest: (Pick<SharedToken, 'value' | 'order'> & { recordName: string; sealed: string }) | undefined;

  constructor(options: SharedTokenOptions) {
    this.#options = options;
    this.#clock = new SuspendAwareClock(options.clock);
  }

  async obtain(credential: ClientCredential, signal: AbortSignal, need: TokenNeed): Promise<TokenFetchResult> {
    const { clock, random, peerWaitMs } = this.#options;
    const identity = this.#options.identify(credential);
    if (identity === undefined) return this.#options.sendRequest(credential, signal);
    const task: TokenTask = { credential, identity, recordName: deriveRecordName(identity), need, signal };
    const startedAt = this.#clock.now();
    let awaited = { owner: '', since: startedAt };
    const hasTimeLeft = (now: number): boolean =>
      now < Math.min(awaited.since + peerWaitMs, startedAt + peerWaitMs * MAX_REPLICAS_AWAITED);
    let declined = this.#declineNewest(task);
    for (let polls = 0; hasTimeLeft(this.#clock.now()) && !signal.aborted; polls++) {
      const claimedAt = this.#clock.now();
      const claim = await this.#claim(task, declined);
      if (claim === undefined || (claim.kind === 'failed' && this.#isPeerStateTooOld(claimedAt))) break;
      if (claim.kind === 'yours') return this.#requestToken(task, declined, { storeAt: claim.storeNow, at: claimedAt });
      if (claim.kind === 'taken') {
        if (claim.owner !== awaited.owner) awaited = { owner: claim.owner, since: this.#clock.now() };
      } else {
        const result = this.#readPeerResult(task, claim, claimedAt);
        if ('kind' in result) return result;
        declined = result;
      }
      // Spread, so that waiting replicas do not claim together.
      const pollMs = Math.min(MAX_POLL_MS, INITIAL_POLL_MS * POLL_GROWTH ** polls) * (0.75 + random() / 2);
      await sleep(clock, pollMs, signal);
    }
    this.#cachedPeerStateSince = undefined;
    return signal.aborted ? ABANDONED : this.#options.sendRequest(credential, signal);
  }

  #isPeerStateTooOld(now: number): boolean {
    return this.#cachedPeerStateSince !== undefined && now - this.#cachedPeerStateSince >= MAX_CACHED_PEER_STATE_MS;
  }

  #declineNewest({ recordName, need }: TokenTask): Declined | undefined {
    const newest = this.#newest?.recordName === recordName ? this.#newest : undefined;
    return newest && { sealed: newest.sealed, isUseless: isRejected(newest.value, need) };
  }

  async #claim({ recordName }: TokenTask, declined: Declined | undefined): Promise<ClaimResult | undefined> {
    const { store } = this.#options;
    const { sealed, isUseless = false } = declined ?? {};
    const request = { owner: this.#owner, leaseMs: LEASE_MS, declined: sealed, isUseless };
    return this.#retryStore(() => store.claim(recordName, request));
  }

  async #retryStore<T>(call: () => Promise<T | undefined>): Promise<T | undefined> {
    for (let attempts = 0; attempts < MAX_STORE_ATTEMPTS && (await this.#options.store.whenReady()); attempts++) {
      const result = await call();
      if (result !== undefined) return result;
    }
    return undefined;
  }

  /** Judges the result of another replica by its sealed parts: others may write to the store. */
  #readPeerResult(
    task: TokenTask,
    claim: Extract<ClaimResult, { kind: 'found' | 'failed' }>,
    claimedAt: number,
  ): ReusedToken | TokenRequestFailure | Declined {
    const result = claim.kind === 'found' ? this.#readToken(task, claim, claimedAt) : this.#readFailure(task, claim);
    if ('kind' in result) {
      this.#count(result);
      this.#cachedPeerStateSince = result.kind === 'found' ? undefined : (this.#cachedPeerStateSince ?? claimedAt);
    }
    return result;
  }

  #readToken(
    { recordName, identity, need }: TokenTask,
    { sealed, storeNow }: Extract<ClaimResult, { kind: 'found' }>,
    claimedAt: number,
  ): ReusedToken | Declined {
    const token = openToken(sealed, identity, 'bst4');
    if (token === undefined) return this.#declineUnreadable(sealed);
    const { value, scope, order, expiresAt, lifetimeMs } = token;
    const leftMs = Math.min(expiresAt - storeNow, lifetimeMs);
    const minShare = need.reason === 'refresh' ? MIN_REMAINING_SHARE_TO_REFRESH : MIN_REMAINING_SHARE;
    const isKnown = this.#newest?.recordName === recordName && order <= this.#newest.order;
    if (isKnown || value === need.held?.value || leftMs <= lifetimeMs * minShare)
      return { sealed, isUseless: leftMs <= 0 || isRejected(value, need) };
    this.#newest = { recordName, sealed, value, order };
    // The lifetime left is counted by the store's clock, since the wall clocks of two replicas may differ, and from before the claim, so
    // that a slow reply does not prolong it.
    const expiresWallAt = this.#options.clock.wallNow() - (this.#clock.now() - claimedAt) + leftMs;
    const stored = { value, scope, obtainedWallAt: expiresWallAt - lifetimeMs, expiresWallAt };
    return { kind: 'found', token: stored, from: 'fleet' };
  }

  /** The endpoint is requested again when the store's wait ends. */
  #readFailure(
    { identity }: TokenTask,
    { sealed, storeNow, leftMs }: Extract<ClaimResult, { kind: 'failed' }>,
  ): TokenRequestFailure | Declined {
    const opened = openFailure(sealed, identity);
    if (opened === undefined) return this.#declineUnreadable(sealed);
    const { failure, endsAt } = opened;
    const retryAfterMs = Math.min(leftMs, endsAt - storeNow);
    if (retryAfterMs <= 0) return { sealed, isUseless: true };
    return { ...failure, retryAfterMs, from: 'fleet' };
  }

  async #requestToken(
    task: TokenTask,
    declined: Declined | undefined,
    start: RequestStart,
  ): Promise<TokenRequestResult> {
    const { store, sendRequest } = this.#options;
    const { credential, recordName, signal } = task;
    this.#cachedPeerStateSince = undefined;
    const release = (): void => void store.releaseLease(recordName, this.#owner);
    signal.addEventListener('abort', release, { once: true });
    const stopLeaseRenewal = this.#startLeaseRenewal(task, declined);
    try {
      const result = await sendRequest(credential, signal);
      // In the background: the callers of this replica do not wait for the store.
      if (!signal.aborted) void this.#publishResult(task, result, start);
      return result;
    } finally {
      stopLeaseRenewal();
      signal.removeEventListener('abort', release);
    }
  }

  #startLeaseRenewal(task: TokenTask, declined: Declined | undefined): Cancel {
    let cancel: Cancel;
    const schedule = (): void => {
      cancel = this.#options.clock.after(LEASE_RENEWAL_MS, () => {
        void this.#claim(task, declined);
        schedule();
      });
    };
    schedule();
    return () => cancel();
  }

  async #publishResult(task: TokenTask, result: TokenRequestResult, start: RequestStart): Promise<void> {
    const { store } = this.#options;
    const { recordName, identity } = task;
    this.#count(result);
    if (result.kind === 'ok') {
      // From the store's time before the request: the stored lifetime never exceeds the token's own.
      const expiresAt = start.storeAt + result.lifetimeMs;
      const sealed = this.#sealNewest(task, result, start.storeAt);
      await this.#retryStore(() => store.publish(recordName, { owner: this.#owner, sealed, expiresAt }));
    } else {
      const holdMs = this.#chooseHoldMs(result);
      // The others have another `holdMs` before this replica may request again.
      const endsAt = start.storeAt + (this.#clock.now() - start.at) + 2 * holdMs;
      const sealed = sealFailure({ failure: result, endsAt }, identity);
      await this.#retryStore(() => store.publishFailure(recordName, this.#owner, sealed, holdMs));
    }
  }

  #sealNewest(
    { identity, recordName }: TokenTask,
    { value, scope, lifetimeMs }: Extract<TokenRequestResult, { kind: 'ok' }>,
    storeAt: number,
  ): string {
    // After the store's clock was set back, too, the others see that it is newer.
    const order = Math.max(storeAt, this.#newest?.recordName === recordName ? this.#newest.order + 1 : 0);
    const token = { value, scope, order, expiresAt: storeAt + lifetimeMs, lifetimeMs };
    const sealed = sealToken(token, identity, 'bst4');
    this.#newest = { recordName, sealed, value, order };
    return sealed;
  }

  #count(result: TokenFetchResult): void {
    const isFailure = result.kind !== 'ok' && result.kind !== 'found';
    this.#failures = isFailure ? this.#failures + 1 : 0;
    this.#lastingFailures = isFailure ? this.#lastingFailures + Number(isLasting(result)) : 0;
  }

  /** The longest wait of a single process: afterwards all replicas claim together, which is one request. */
  #chooseHoldMs(failure: TokenRequestFailure): number {
    const counts = { failures: this.#failures, lastingFailures: this.#lastingFailures };
    return chooseRetryDelays(failure, { ...counts, isCircuitOpen: false, requestDurationMs: 0, random: 1 }).eagerMs;
  }

  #declineUnreadable(sealed: string): Declined {
    const message = 'what another replica left in Redis cannot be read: it is ignored, and replaced';
    if (!this.#hasWarned) this.#options.observe({ kind: 'warning', message });
    this.#hasWarned = true;
    return { sealed, isUseless: true };
  }
}

function isRejected(value: string, { reason, held }: TokenNeed): boolean {
  return reason === 'unauthorized' && value === held?.value;
}
