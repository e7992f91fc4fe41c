/**
 * Holds the access token, in memory only, and decides who may use it: never past its expiry, and not while a refresh replaces a token that the
 * upstream rejected with 401. token-refresher.ts sends the requests; kept-tokens.ts chooses between the two newest tokens.
 */
import { abortable, sleep } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import { findMissingScopes } from '../endpoint/token-response.ts';
import { KeptTokens } from './kept-tokens.ts';
import { SuspendAwareClock } from './suspend-aware-clock.ts';
import { TokenRefresher, type TokenRefresherOptions } from './token-refresher.ts';
import type { TokenNeed } from './token-fetcher.ts';
import type { CredentialFault, Token, TokenCaller, TokenSource, TokenState, TokenUse } from '../token.ts';

export interface TokenSourceOptions extends TokenRefresherOptions {
  /** Requested scopes, separated by blanks. */
  readonly scope: string | undefined;
  /** Least time between two refreshes caused by a 401, before it doubles; milliseconds. */
  readonly invalidationCooldownMs: number;
  /** Longest wait of a call for a token that the upstream accepts, milliseconds. */
  readonly settleMs: number;
  /** Gets each token before it is used. Default: none is passed on. */
  readonly onToken?: ((value: string) => void) | undefined;
  /** For a server that replaces them. Default: the grant uses none. */
  readonly refreshTokens?: { readonly fault: string | undefined; readonly whenKept: Promise<unknown> } | undefined;
  /** Why a header field of the calls has an earlier value than that of its file. Default: none has. */
  readonly headerFault?: ((credential: string) => CredentialFault | undefined) | undefined;
}

type InvalidationRefresh =
  | 'none'
  /** Calls wait for it. */
  | 'in-flight'
  /** The rejected token stays in use until it is replaced. */
  | 'failed';

const UNWAITING_CALLER: TokenCaller = { arrivedAt: -Infinity };

/** The first fetch begins with `start()` or with the first call that needs a token. */
export class HeldTokenSource implements TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #clock: SuspendAwareClock;
  readonly #refresher: TokenRefresher;
  readonly #cooldown: InvalidationCooldown;
  readonly #tokens = new KeptTokens();
  #refresh: InvalidationRefresh = 'none';
  #missingScopes: readonly string[] = [];
  /** Aborted when a waiting call may have a token now. */
  #change = new AbortController();

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#clock = new SuspendAwareClock(options.clock);
    this.#cooldown = new InvalidationCooldown(options.invalidationCooldownMs);
    this.#refresher = new TokenRefresher(options, this.#clock, {
      currentNeed: () => this.#currentNeed(),
      onTokenReceived: (token, isUsedAtOnce) => this.#hold(token, isUsedAtOnce),
      onRefreshFailed: () => {
        if (this.#refresh === 'in-flight') this.#refresh = 'failed';
        this.#wakeWaiting();
      },
    });
  }

  start(): void {
    this.#refresher.start();
    this.requestIfMissing();
  }

  requestIfMissing(): void {
    if (this.#tokens.usable(this.#clock.now()) === undefined) this.#joinRefresh();
  }

  stop(): void {
    this.#refresher.stop();
    this.#wakeWaiting();
  }

  get whenKept(): Promise<unknown> | undefined {
    return this.#options.refreshTokens?.whenKept;
  }

  current(caller: TokenCaller = UNWAITING_CALLER, monotonicNow?: number): TokenUse | undefined {
    const now = this.#clock.now(monotonicNow);
    const preferred = this.#tokens.findPreferred(now, caller);
    const token = preferred ?? (this.#mustWait(caller, now) ? undefined : this.#tokens.findRejected(now));
    return token && { token, takenAt: now };
  }

  async waitForToken(signal: AbortSignal, caller?: TokenCaller): Promise<Token> {
    for (let tokenUse = this.current(caller); ; tokenUse = this.current(caller)) {
      if (tokenUse !== undefined) return tokenUse.token;
      if (this.#refresh !== 'in-flight' && !this.#refresher.isStopped && this.#tokens.isUnsettled(this.#clock.now())) {
        await this.#waitForChange(this.#remainingWaitMs(caller), signal);
      } else {
        const attempt = this.#refresher.joinOrStart();
        if (attempt instanceof SidecarError) throw attempt;
        await abortable(attempt, signal);
      }
    }
  }

  recordAccepted(tokenUse: TokenUse, isReplay: boolean): void {
    if (isReplay) this.#cooldown.recordAccepted(tokenUse.token.serial, this.#tokens.newest?.serial ?? 0);
    if (!this.#tokens.isAcceptanceNew(tokenUse)) return;
    const now = this.#clock.now();
    const usedPrevious = this.#tokens.usesPrevious(now);
    const delayMs = this.#tokens.recordAccepted(tokenUse, now);
    const { credential, observe } = this.#options;
    if (delayMs !== undefined) observe({ kind: 'token-accepted-late', credential, delayMs });
    this.#reportFallback(usedPrevious, now);
    this.#wakeWaiting();
  }

  recordRejected(tokenUse: TokenUse): void {
    const now = this.#clock.now();
    this.#cooldown.recordRejected(tokenUse.token.serial);
    if (!this.#tokens.isRejectionCurrent(tokenUse, now)) {
      // The successor of the token is needed anyway.
      if (this.#tokens.usable(now) === undefined) this.#joinRefresh();
      return;
    }
    const isDue = this.#refresh === 'none' && this.#cooldown.canRefresh(this.#options.clock.now());
    const canInvalidate = isDue && !this.#tokens.isSpreading(now);
    // One path's 401 must not take from the others a token that they use.
    if (this.#tokens.isAcceptedNewest(tokenUse.token) && !canInvalidate) {
      this.#tokens.recordDispute(now);
      return;
    }
    const usedPrevious = this.#tokens.usesPrevious(now);
    this.#tokens.recordRejected(tokenUse, now);
    if (this.#tokens.isSuspect(now) && canInvalidate) this.#invalidate();
    this.#reportFallback(usedPrevious, now);
    this.#wakeWaiting();
  }

  async waitForReplacement(tokenUse: TokenUse, signal: AbortSignal): Promise<boolean> {
    const arrivedAt = this.#options.clock.now();
    for (;;) {
      signal.throwIfAborted();
      const now = this.#clock.now();
      if (this.#tokens.hasReplacement(tokenUse, now)) return true;
      if (this.#refresher.isStopped || now >= this.#tokens.settleEndsAt) return false;
      const isAwaited = this.#refresh === 'in-flight' || this.#tokens.usable(now) === undefined;
      const pending = isAwaited ? this.#refresher.pendingRequest : undefined;
      if (pending !== undefined) {
        await abortable(pending, signal);
        continue;
      }
      const waitMs = this.#remainingWaitMs({ arrivedAt });
      if (!this.#tokens.isUnsettled(now) || waitMs <= 0) return false;
      await this.#waitForChange(waitMs, signal);
    }
  }

  state(): TokenState {
    const now = this.#clock.now();
    const token = this.#tokens.usable(now);
    const { credential, credentialWatch, headerFault, refreshTokens } = this.#options;
    return {
      credential,
      status: token === undefined ? 'none' : this.#isSuspect(now) ? 'suspect' : 'valid',
      usesPrevious: this.#tokens.usesPrevious(now),
      serial: this.#tokens.newest?.serial ?? 0,
      scope: token?.scope,
      expiresWallAt: token?.expiresWallAt,
      validForMs: token && token.expiresAt - now,
      missingScopes: this.#missingScopes,
      credentialFault: credentialWatch?.fault() ?? headerFault?.(credential),
      refreshTokenFault: refreshTokens?.fault,
      hasHadToken: this.#tokens.newest !== undefined,
      ...this.#refresher.state(),
    };
  }

  /** Calls wait for the successor of a rejected token; those that cannot be repeated also until another call shows which one is accepted. */
  #mustWait(caller: TokenCaller, now: number): boolean {
    if (now >= this.#tokens.settleEndsAt) return false;
    if (this.#refresh === 'in-flight') return true;
    return caller.canReplay === false && this.#tokens.isUnsettled(now) && this.#remainingWaitMs(caller) > 0;
  }

  #isSuspect(now: number): boolean {
    return this.#refresh !== 'none' || this.#tokens.isSuspect(now);
  }

  #remainingWaitMs({ arrivedAt }: Pick<TokenCaller, 'arrivedAt'> = UNWAITING_CALLER): number {
    const { clock, settleMs } = this.#options;
    return Math.min(arrivedAt + settleMs - clock.now(), this.#tokens.settleEndsAt - this.#clock.now());
  }

  async #waitForChange(atMostMs: number, signal: AbortSignal): Promise<void> {
    await sleep(this.#options.clock, atMostMs, AbortSignal.any([signal, this.#change.signal]));
    signal.throwIfAborted();
  }

  #wakeWaiting(): void {
    this.#change.abort();
    this.#change = new AbortController();
  }

  #currentNeed(): TokenNeed {
    const now = this.#clock.now();
    const held = this.#tokens.usable(now);
    if (held === undefined) return { reason: 'first', held };
    return { reason: this.#isSuspect(now) ? 'unauthorized' : 'refresh', held };
  }

  #hold(token: Token, isUsedAtOnce: boolean): void {
    const now = this.#clock.now();
    this.#options.onToken?.(token.value);
    if (this.#isSuspect(now)) this.#cooldown.recordReplaced(token.serial);
    this.#tokens.add(token, now, isUsedAtOnce);
    this.#refresh = 'none';
    this.#compareScopes(token);
    this.#wakeWaiting();
  }

  #compareScopes({ scope }: Token): void {
    const { credential, observe } = this.#options;
    const missing = findMissingScopes(this.#options.scope, scope);
    const hasChanged = missing.join(' ') !== this.#missingScopes.join(' ');
    this.#missingScopes = missing;
    if (hasChanged) observe({ kind: 'token-scopes-missing', credential, missing });
  }

  #reportFallback(usedPrevious: boolean, now: number): void {
    const { credential, observe } = this.#options;
    if (!usedPrevious && this.#tokens.usesPrevious(now)) observe({ kind: 'token-not-accepted-yet', credential });
  }

  /** A token request already in flight counts as this refresh: it brings a newer token. */
  #invalidate(): void {
    const { credential, observe } = this.#options;
    observe({ kind: 'token-invalidated', credential, reason: 'unauthorized' });
    this.#refresh = this.#joinRefresh() ? 'in-flight' : 'failed';
    if (this.#refresh === 'in-flight') this.#cooldown.recordRefreshStart(this.#options.clock.now());
  }

  #joinRefresh(): boolean {
    return !(this.#refresher.joinOrStart() instanceof SidecarError);
  }
}

const MAX_COOLDOWN_MS = 300_000;

/**
 * Limits how often a 401 from the upstream causes a token request. The cooldown doubles each time such a refresh brings a token that is
 * rejected too, because then the token is not the fault. It returns to its base as soon as a token is accepted.
 */
class InvalidationCooldown {
  readonly #baseMs: number;
  #cooldownMs: number;
  #refreshedAt: number | undefined;
  /** The token of that refresh until the upstream has rejected or accepted it. */
  #unverifiedSerial: number | undefined;

  constructor(baseMs: number) {
    this.#baseMs = baseMs;
    this.#cooldownMs = baseMs;
  }

  canRefresh(now: number): boolean {
    return this.#refreshedAt === undefined || now - this.#refreshedAt >= this.#cooldownMs;
  }

  /** The token with this serial was rejected. Further 401s for the same one change nothing. */
  recordRejected(serial: number): void {
    if (serial !== this.#unverifiedSerial) return;
    this.#cooldownMs = Math.max(this.#cooldownMs, Math.min(this.#cooldownMs * 2, MAX_COOLDOWN_MS));
    this.#unverifiedSerial = undefined;
  }

  recordRefreshStart(now: number): void {
    this.#refreshedAt = now;
    this.#unverifiedSerial = undefined;
  }

  /** The token with this serial replaced a suspect one. */
  recordReplaced(serial: number): void {
    this.#unverifiedSerial = serial;
  }

  /** The upstream accepted a replay; an older token than the newest one changes nothing. */
  recordAccepted(serial: number, heldSerial: number): void {
    if (serial < (this.#unverifiedSerial ?? heldSerial)) return;
    this.#cooldownMs = this.#baseMs;
    this.#unverifiedSerial = undefined;
  }
}
