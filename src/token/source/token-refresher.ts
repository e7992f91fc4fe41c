/**
 * Asks for tokens: one request in flight whatever asks, ahead of the end of the held one, and as the circuit allows after
 * a failure. Which token is held and who may use it is token-source's; where it comes from is the supply's.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { fetchWithTimeout } from '../endpoint/fetch-with-timeout.ts';
import { TokenCircuitBreaker } from '../endpoint/circuit-breaker.ts';
import type { SuspendAwareClock } from './suspend-aware-clock.ts';
import { chooseRefreshDelayMs, isUsable } from './refresh-schedule.ts';
import { createTokenEvent } from './token-fetch-result.ts';
import type { TokenFetchResult } from './token-fetch-result.ts';
import type { TokenNeed, TokenFetcher } from './token-fetcher.ts';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import type { Token, TokenState } from '../token.ts';

export interface TokenRefresherOptions {
  /** Label of the events. */
  readonly credential: string;
  readonly fetcher: TokenFetcher;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

/** What the renewal needs to know of, and tells, the holder of the token. */
interface TokenHolder {
  /** Why a token is asked for at this moment; `renewal` when a good one is held. */
  currentNeed(): TokenNeed;
  onTokenReceived(token: Token): void;
  /** The attempt under way failed. */
  onRefreshFailed(): void;
}

/** Answer to "a token is needed". */
type RefreshAttempt =
  /** Settles, never rejects, when the one request under way has ended, in a token or not. */
  | { readonly kind: 'under-way'; readonly done: Promise<void> }
  | { readonly kind: 'refused'; readonly error: SidecarError };

interface LastFailure {
  readonly answer: TokenRequestFailure;
  readonly wallAt: number;
}

/** Sleeps are cut into these, so that the end of a suspend or a stepped wall clock is noticed. */
const LONGEST_SLEEP_MS = 60_000;
const DRAINING_RETRY_MS = 1_000;

export class TokenRefresher {
  readonly #options: TokenRefresherOptions;
  readonly #clock: SuspendAwareClock;
  readonly #holder: TokenHolder;
  readonly #stop = new AbortController();
  readonly #circuitBreaker = new TokenCircuitBreaker();
  #pendingRequest: Promise<void> | undefined;
  #failure: LastFailure | undefined;
  /** When the held token's successor is due. */
  #refreshAt: number | undefined;
  /** Somebody who needs a token has been refused since the last request. */
  #isWanted = false;
  #cancelTimer: Cancel | undefined;
  #cancelWatch: Cancel | undefined;
  #serial = 0;

  constructor(options: TokenRefresherOptions, life: SuspendAwareClock, holder: TokenHolder) {
    this.#options = options;
    this.#clock = life;
    this.#holder = holder;
  }

  /** From now on new credentials are noticed. */
  start(): void {
    if (!this.#stop.signal.aborted)
      this.#cancelWatch ??= this.#options.fetcher.watchCredentials(() => this.#tryNewCredentials());
  }

  /** Joins the request under way or begins one, unless the endpoint's failures forbid it now. */
  joinOrStart(): RefreshAttempt {
    if (this.#stop.signal.aborted) return { kind: 'refused', error: createShutdownError() };
    const waitMs = this.#circuitBreaker.nextAttemptAt(true) - this.#clock.now();
    if (this.#pendingRequest === undefined && this.#failure !== undefined && waitMs > 0) {
      this.#markWanted();
      return { kind: 'refused', error: createTokenError(this.#failure.answer, waitMs) };
    }
    return { kind: 'under-way', done: this.#pendingRequest ?? this.#startRequest(this.#holder.currentNeed()) };
  }

  /** The request under way, if one is. */
  get pendingRequest(): Promise<void> | undefined {
    return this.#pendingRequest;
  }

  stop(): void {
    this.#stop.abort(createShutdownError());
    this.#cancelTimer?.();
    this.#cancelWatch?.();
  }

  state(): Pick<TokenState, 'consecutiveFailures' | 'lastFailure' | 'circuit' | 'nextRequestInMs'> {
    const failure = this.#failure;
    return {
      consecutiveFailures: this.#circuitBreaker.failures,
      lastFailure: failure && { outcome: failure.answer.kind, detail: failure.answer.detail, wallAt: failure.wallAt },
      circuit: this.#circuitBreaker.phase,
      nextRequestInMs: this.#dueInMs(),
    };
  }

  /** Whoever was refused once is going to ask again: the token is to be there by then. */
  #markWanted(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#scheduleNext();
  }

  /** In an outage they are part of the next probe; after a refusal they are what has been waited for. */
  #tryNewCredentials(): void {
    const isDown = this.#failure !== undefined && this.#failure.answer.kind !== 'rejected';
    if (this.#stop.signal.aborted || this.#pendingRequest !== undefined || isDown) return;
    const need = this.#holder.currentNeed();
    void this.#startRequest(need.reason === 'renewal' ? { ...need, reason: 'rotated' } : need);
  }

  #startRequest(need: TokenNeed): Promise<void> {
    this.#cancelTimer?.();
    this.#isWanted = false;
    this.#circuitBreaker.recordAttemptStart();
    return (this.#pendingRequest = this.#request(need));
  }

  async #request(need: TokenNeed): Promise<void> {
    const askedAt = this.#clock.now();
    const askedWallAt = this.#options.clock.wallNow();
    const fetched = await fetchWithTimeout(
      this.#options,
      need,
      this.#stop.signal,
      this.#circuitBreaker.attemptTimeoutMs,
    );
    // The held token may have been lost while new credentials were on trial.
    const left = this.#holder.currentNeed();
    if (fetched.kind === 'declined' && left.reason !== 'renewal' && !this.#stop.signal.aborted)
      return this.#request(left);
    this.#pendingRequest = undefined;
    if (this.#stop.signal.aborted) return;
    const durationMs = this.#clock.now() - askedAt;
    if (fetched.kind === 'declined') this.#circuitBreaker.recordNoResult();
    const settled = fetched.kind === 'declined' ? undefined : this.#applyResult(fetched, askedAt, askedWallAt);
    this.#scheduleNext();
    if (settled === undefined) return;
    const { credential, observe, clock } = this.#options;
    const facts = { credential, durationMs, nextInMs: this.#dueInMs(), wallNow: clock.wallNow() };
    observe(createTokenEvent(settled, facts));
  }

  /** Returns what was made of it: a token that comes too late is a failure. */
  #applyResult(fetched: TokenFetchResult, askedAt: number, askedWallAt: number): TokenFetchResult {
    if (fetched.kind !== 'ok' && fetched.kind !== 'found') return this.#recordFailure(fetched, askedAt);
    const { value, scope, lifetimeMs, ageMs } = toNewToken(fetched, askedWallAt);
    // The life counts from the request on, as it may have begun with its arrival.
    const obtainedAt = askedAt - ageMs;
    const token: Token = {
      value,
      serial: this.#serial + 1,
      scope,
      obtainedAt,
      expiresAt: obtainedAt + lifetimeMs,
      expiresWallAt: askedWallAt - ageMs + lifetimeMs,
    };
    if (!isUsable(token, this.#clock.now()))
      return this.#recordFailure({ kind: 'unavailable', detail: 'the token had expired before it arrived' }, askedAt);
    this.#serial = token.serial;
    this.#failure = undefined;
    this.#refreshAt = obtainedAt + chooseRefreshDelayMs(lifetimeMs, this.#options.random());
    this.#updateCircuit(() => this.#circuitBreaker.recordSuccess());
    this.#holder.onTokenReceived(token);
    return fetched;
  }

  #recordFailure(answer: TokenRequestFailure, askedAt: number): TokenRequestFailure {
    const { clock, random } = this.#options;
    this.#failure = { answer, wallAt: clock.wallNow() };
    this.#updateCircuit(() => this.#circuitBreaker.recordFailure(answer, askedAt, this.#clock.now(), random()));
    this.#holder.onRefreshFailed();
    return answer;
  }

  /** Probes that fail are no news. */
  #updateCircuit(move: () => void): void {
    const { credential, observe } = this.#options;
    const wasClosed = this.#circuitBreaker.phase === 'closed';
    move();
    const isClosed = this.#circuitBreaker.phase === 'closed';
    if (isClosed !== wasClosed) observe({ kind: 'token-circuit', credential, phase: isClosed ? 'closed' : 'open' });
  }

  #dueInMs(): number | undefined {
    if (this.#pendingRequest !== undefined || this.#stop.signal.aborted) return undefined;
    const dueAt = this.#failure === undefined ? this.#refreshAt : this.#circuitBreaker.nextAttemptAt(this.#isWanted);
    return dueAt === undefined ? undefined : Math.max(0, dueAt - this.#clock.now());
  }

  #scheduleNext(): void {
    this.#cancelTimer?.();
    const sleepMs = Math.min(this.#dueInMs() ?? LONGEST_SLEEP_MS, LONGEST_SLEEP_MS);
    this.#cancelTimer = this.#options.clock.after(sleepMs, () => {
      if (this.#dueInMs() === 0) this.joinOrStart();
      else this.#scheduleNext();
    });
  }
}

/** One that was asked for earlier has lived already; the clock of whoever asked for it may be ahead of this one. */
function toNewToken(fetched: Extract<TokenFetchResult, { kind: 'ok' | 'found' }>, wallNow: number) {
  if (fetched.kind === 'ok') return { ...fetched, ageMs: 0 };
  const { obtainedWallAt, expiresWallAt } = fetched.token;
  const ageMs = Math.max(0, wallNow - obtainedWallAt);
  return { ...fetched.token, lifetimeMs: expiresWallAt - obtainedWallAt, ageMs };
}

function createTokenError(answer: TokenRequestFailure, retryAfterMs: number): SidecarError {
  if (answer.kind === 'rejected') return new SidecarError('TOKEN_REJECTED', `No access token: ${answer.detail}`);
  return new SidecarError('TOKEN_UNAVAILABLE', `No access token: ${answer.detail}`, { retryAfterMs });
}

function createShutdownError(): SidecarError {
  return new SidecarError('TOKEN_UNAVAILABLE', 'No access token: the sidecar is shutting down', {
    retryAfterMs: DRAINING_RETRY_MS,
  });
}
