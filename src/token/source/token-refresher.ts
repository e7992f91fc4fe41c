/**
 * Sends token requests: one at a time (single flight), ahead of the expiry of the held token, and as the circuit breaker
 * allows after a failure. Which token is held and who may use it is decided in token-source.ts.
 */
import { abortable, sleep, type Cancel } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { SuspendAwareClock } from './suspend-aware-clock.ts';
import { chooseRefreshDelayMs, isLasting, isUsable } from './refresh-schedule.ts';
import { TokenCircuitBreaker } from './token-circuit-breaker.ts';
import type {
  DeclinableFetchResult,
  TokenFetcher,
  TokenFetchResult,
  TokenNeed,
  TokenPartOptions,
} from './token-fetcher.ts';
import type { RotatingTokenFetcher } from '../client/rotating-token-fetcher.ts';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import type { Token, TokenState } from '../token.ts';

export interface TokenRefresherOptions extends TokenPartOptions {
  readonly fetcher: TokenFetcher;
  /** Undefined when no credential is in a file. */
  readonly credentialWatch: Pick<RotatingTokenFetcher, 'watch' | 'fault'> | undefined;
}

interface TokenHolder {
  /** Why a token would be requested now; `refresh` while a good one is held. */
  currentNeed(): TokenNeed;
  onTokenReceived(token: Token, isUsedAtOnce: boolean): void;
  onRefreshFailed(): void;
}

/** Long sleeps are divided, so that the end of a suspend or a changed wall clock is noticed. */
const MAX_SLEEP_MS = 60_000;

/** A token that is sent again may end so much later than was known: ends are rounded to seconds. A later one is a new lifetime. */
const END_TOLERANCE_MS = 2_000;
/** Between two requests to a server that sends a token again although it has ended by our clock. */
const ENDED_PAUSE_MS = 1_000;
/** Some servers replace a token minutes before its end, and send it again until then. */
const MIN_EARLY_REPEAT_MS = 60_000;

export class TokenRefresher {
  readonly #options: TokenRefresherOptions;
  readonly #clock: SuspendAwareClock;
  readonly #holder: TokenHolder;
  readonly #stop = new AbortController();
  readonly #circuitBreaker = new TokenCircuitBreaker();
  /** Read only. */
  pendingRequest: Promise<void> | undefined;
  #failure: { readonly result: TokenRequestFailure; readonly wallAt: number } | undefined;
  #refreshAt: number | undefined;
  /** A caller that needs a token has been rejected since the last request. */
  #isWanted = false;
  #cancelTimer: Cancel | undefined;
  #cancelWatch: Cancel | undefined;
  #serial = 0;
  /** The newest token, as it was when the server first sent it. */
  #issued: Token | undefined;
  /** Until then the server sends the same token again. */
  #repeatedUntil = -Infinity;

  constructor(options: TokenRefresherOptions, clock: SuspendAwareClock, holder: TokenHolder) {
    this.#options = options;
    this.#clock = clock;
    this.#holder = holder;
  }

  start(): void {
    if (!this.#stop.signal.aborted)
      this.#cancelWatch ??= this.#options.credentialWatch?.watch(() => this.#tryNewCredentials());
  }

  /**
   * Joins the request in flight or starts one. The promise settles and never rejects when the request ends, with a token or without; an
   * error: a failure of the endpoint forbids a request now.
   */
  joinOrStart(): Promise<void> | SidecarError {
    if (this.#stop.signal.aborted) return createShutdownError();
    const waitMs = this.#circuitBreaker.nextAttemptAt(true) - this.#clock.now();
    if (this.pendingRequest === undefined && this.#failure !== undefined && waitMs > 0) {
      this.#markWanted();
      return createTokenError(this.#failure.result, waitMs);
    }
    return this.pendingRequest ?? this.#startRequest(this.#holder.currentNeed());
  }

  get isStopped(): boolean {
    return this.#stop.signal.aborted;
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
      lastFailure: failure && {
        outcome: failure.result.kind,
        detail: failure.result.detail,
        wallAt: failure.wallAt,
        ...(failure.result.isUnsent === true ? { isUnsent: true } : {}),
      },
      circuit: this.#circuitBreaker.phase,
      nextRequestInMs: this.#dueInMs(),
    };
  }

  /** A rejected caller will probably retry: the next attempt comes early, so that a token is held by then. */
  #markWanted(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#scheduleNext();
  }

  /** In an outage the next request uses them anyway; after a lasting failure, or when they could not be used, they are tried at once. */
  #tryNewCredentials(): void {
    const failure = this.#failure?.result;
    const isDown = failure !== undefined && !isLasting(failure) && failure.isUnsent !== true;
    if (this.#stop.signal.aborted || this.pendingRequest !== undefined || isDown) return;
    const need = this.#holder.currentNeed();
    void this.#startRequest(need.reason === 'refresh' ? { ...need, reason: 'rotated' } : need);
  }

  #startRequest(need: TokenNeed): Promise<void> {
    this.#cancelTimer?.();
    this.#isWanted = false;
    this.#circuitBreaker.recordAttemptStart();
    return (this.pendingRequest = this.#request(need));
  }

  async #request(need: TokenNeed): Promise<void> {
    // Callers wait for the end of a token that an earlier request would bring again.
    const waitMs = need.reason === 'first' ? this.#repeatedUntil - this.#clock.now() : 0;
    if (waitMs > 0) await sleep(this.#options.clock, waitMs, this.#stop.signal);
    const startedAt = this.#clock.now();
    const startedWallAt = this.#options.clock.wallNow();
    const fetched = await this.#fetch(need);
    // The held token may have expired or been rejected while the new credentials were tried.
    const currentNeed = this.#holder.currentNeed();
    if (fetched.kind === 'declined' && currentNeed.reason !== 'refresh' && !this.#stop.signal.aborted)
      return this.#request(currentNeed);
    this.pendingRequest = undefined;
    if (this.#stop.signal.aborted) return;
    const durationMs = this.#clock.now() - startedAt;
    if (fetched.kind === 'declined') this.#circuitBreaker.recordNoResult();
    const result = fetched.kind === 'declined' ? undefined : this.#applyResult(fetched, startedAt, startedWallAt);
    this.#scheduleNext();
    if (result !== undefined) this.#report(result, durationMs);
  }

  /** Never rejects: a stop, a time-out and a thrown error all become `unavailable`. */
  async #fetch(need: TokenNeed): Promise<DeclinableFetchResult> {
    const { fetcher, clock } = this.#options;
    const timeoutMs = this.#circuitBreaker.attemptTimeoutMs;
    const timeout = new AbortController();
    const cancel =
      timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => timeout.abort(new Error('timed out')));
    const signal = AbortSignal.any([this.#stop.signal, timeout.signal]);
    try {
      return await abortable(fetcher.fetch(need, signal), signal);
    } catch {
      // The error's own message may quote what was sent.
      const fault = timeout.signal.aborted ? `brought nothing within ${String(timeoutMs)} ms` : 'failed unexpectedly';
      return { kind: 'unavailable', detail: `the token request ${fault}` };
    } finally {
      cancel?.();
    }
  }

  /** Only a token request of this process becomes `token-requested`. */
  #report(result: TokenFetchResult, durationMs: number): void {
    const { credential, observe, clock } = this.#options;
    const nextInMs = this.#dueInMs();
    const next = nextInMs === undefined ? {} : { nextInMs };
    if (result.kind === 'found') {
      const { from, token } = result;
      observe({ kind: 'token-found', credential, from, validForMs: token.expiresWallAt - clock.wallNow() });
    } else if (result.kind === 'ok') {
      const { kind: outcome } = result;
      const lifetimeMs = Math.max(0, result.lifetimeMs);
      observe({ kind: 'token-requested', credential, outcome, durationMs, lifetimeMs, ...next });
    } else {
      const { kind: outcome, detail, from } = result;
      if (from === undefined) observe({ kind: 'token-requested', credential, outcome, durationMs, detail, ...next });
      else observe({ kind: 'token-not-asked', credential, outcome, detail, from, ...next });
    }
  }

  /** @returns the result that counts: a token that arrives too late is a failure */
  #applyResult(fetched: TokenFetchResult, startedAt: number, startedWallAt: number): TokenFetchResult {
    if (fetched.kind !== 'ok' && fetched.kind !== 'found') return this.#recordFailure(fetched, startedAt);
    const { value, scope, lifetimeMs, ageMs } = normalizeToken(fetched, startedWallAt);
    // The lifetime may have begun when the request arrived: count from its start.
    const expiresAt = startedAt - ageMs + lifetimeMs;
    const issued = this.#issued;
    const isRepeated = value === issued?.value && expiresAt <= issued.expiresAt + END_TOLERANCE_MS;
    const token: Token = {
      value,
      serial: this.#serial + 1,
      scope,
      obtainedAt: isRepeated ? issued.obtainedAt : startedAt - ageMs,
      expiresAt,
      expiresWallAt: startedWallAt - ageMs + lifetimeMs,
    };
    const hasEnded = !isUsable(token, this.#clock.now());
    if (hasEnded && !isRepeated)
      return this.#recordFailure({ kind: 'unavailable', detail: 'the token had expired before it arrived' }, startedAt);
    this.#serial = token.serial;
    this.#failure = undefined;
    if (isRepeated) this.#planRepetition(token, hasEnded, fetched.kind === 'ok' && fetched.endsAsKnown === true);
    else {
      this.#issued = token;
      this.#repeatedUntil = -Infinity;
      this.#refreshAt = token.obtainedAt + chooseRefreshDelayMs(lifetimeMs, this.#options.random());
    }
    this.#updateCircuit(() => this.#circuitBreaker.recordSuccess());
    this.#holder.onTokenReceived(token, fetched.isUsedAtOnce === true);
    return fetched;
  }

  #planRepetition({ expiresAt }: Token, hasEnded: boolean, endsAsKnown: boolean): void {
    const now = this.#clock.now();
    this.#repeatedUntil = Math.max(expiresAt, hasEnded ? now + ENDED_PAUSE_MS : now);
    const delayMs = this.#repeatedUntil - now;
    const isAtEnd = endsAsKnown || delayMs < MIN_EARLY_REPEAT_MS;
    this.#refreshAt = now + (isAtEnd ? delayMs : chooseRefreshDelayMs(delayMs, this.#options.random()));
  }

  #recordFailure(result: TokenRequestFailure, startedAt: number): TokenRequestFailure {
    const { clock, random } = this.#options;
    this.#failure = { result, wallAt: clock.wallNow() };
    this.#updateCircuit(() => this.#circuitBreaker.recordFailure(result, startedAt, this.#clock.now(), random()));
    this.#holder.onRefreshFailed();
    return result;
  }

  /** Emits an event when the circuit opens or closes; a failed half-open request changes neither. */
  #updateCircuit(update: () => void): void {
    const { credential, observe } = this.#options;
    const wasClosed = this.#circuitBreaker.phase === 'closed';
    update();
    const isClosed = this.#circuitBreaker.phase === 'closed';
    if (isClosed !== wasClosed) observe({ kind: 'token-circuit', credential, phase: isClosed ? 'closed' : 'open' });
  }

  #dueInMs(): number | undefined {
    if (this.pendingRequest !== undefined || this.#stop.signal.aborted) return undefined;
    const dueAt = this.#failure === undefined ? this.#refreshAt : this.#circuitBreaker.nextAttemptAt(this.#isWanted);
    return dueAt === undefined ? undefined : Math.max(0, dueAt - this.#clock.now());
  }

  #scheduleNext(): void {
    this.#cancelTimer?.();
    const sleepMs = Math.min(this.#dueInMs() ?? MAX_SLEEP_MS, MAX_SLEEP_MS);
    this.#cancelTimer = this.#options.clock.after(sleepMs, () => {
      if (this.#dueInMs() === 0) void this.joinOrStart();
      else this.#scheduleNext();
    });
  }
}

/** A reused token has lived already; its age is never negative, though the other replica's wall clock may be ahead. */
function normalizeToken(fetched: Extract<TokenFetchResult, { kind: 'ok' | 'found' }>, wallNow: number) {
  if (fetched.kind === 'ok') return { ...fetched, ageMs: 0 };
  const { obtainedWallAt, expiresWallAt } = fetched.token;
  const ageMs = Math.max(0, wallNow - obtainedWallAt);
  return { ...fetched.token, lifetimeMs: expiresWallAt - obtainedWallAt, ageMs };
}

function createTokenError({ kind, detail }: TokenRequestFailure, retryAfterMs: number): SidecarError {
  if (kind === 'rejected') return new SidecarError('TOKEN_REJECTED', `No access token: ${detail}`);
  return new SidecarError('TOKEN_UNAVAILABLE', `No access token: ${detail}`, { retryAfterMs });
}

export function createShutdownError(): SidecarError {
  return new SidecarError('TOKEN_UNAVAILABLE', 'No access token: the sidecar is shutting down');
}
