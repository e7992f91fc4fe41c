/**
 * Holds the access token, in memory only, and decides who may use it: never past its expiry, and not while a refresh
 * replaces a token that the upstream refused with 401. Token requests are sent by token-refresher.ts; how often a 401 may
 * cause one is decided in invalidation-cooldown.ts.
 */
import { abortable } from './abortable.ts';
import { findMissingScopes } from '../endpoint/granted-scope.ts';
import { InvalidationCooldown } from './invalidation-cooldown.ts';
import { SuspendAwareClock } from './suspend-aware-clock.ts';
import { isUsable } from './refresh-schedule.ts';
import { TokenRefresher } from './token-refresher.ts';
import type { TokenRefresherOptions } from './token-refresher.ts';
import type { TokenNeed } from './token-fetcher.ts';
import type { Token, TokenSource, TokenState, UnauthorizedDecision } from '../token.ts';

export interface TokenSourceOptions extends TokenRefresherOptions {
  /** Requested scopes, separated by blanks. */
  readonly scope: string | undefined;
  /** Least time between two refreshes caused by a 401, before it doubles; milliseconds. */
  readonly invalidationCooldownMs: number;
}

const REPLAY: UnauthorizedDecision = { kind: 'replay' };
const PASS_THROUGH: UnauthorizedDecision = { kind: 'pass-through' };

type HeldTokenStatus =
  | 'good'
  /** Refused with 401, its refresh in flight: not handed out. */
  | 'refreshing'
  /** Refused with 401, its refresh failed: in use until it is replaced. */
  | 'suspect';

/** The first fetch begins with `start()` or with the first call that needs a token. */
export function createTokenSource(options: TokenSourceOptions): TokenSource {
  return new HeldTokenSource(options);
}

class HeldTokenSource implements TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #clock: SuspendAwareClock;
  readonly #refresher: TokenRefresher;
  readonly #cooldown: InvalidationCooldown;
  #held: Token | undefined;
  #status: HeldTokenStatus = 'good';
  #missingScopes: readonly string[] = [];

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#clock = new SuspendAwareClock(options.clock);
    this.#cooldown = new InvalidationCooldown(options.invalidationCooldownMs);
    this.#refresher = new TokenRefresher(options, this.#clock, {
      currentNeed: () => this.#currentNeed(),
      onTokenReceived: (token) => this.#hold(token),
      onRefreshFailed: () => {
        if (this.#status === 'refreshing') this.#status = 'suspect';
      },
    });
  }

  start(): void {
    this.#refresher.start();
    this.requestIfMissing();
  }

  requestIfMissing(): void {
    if (this.#unexpired() === undefined) this.#refresher.joinOrStart();
  }

  stop(): void {
    this.#refresher.stop();
  }

  current(): Token | undefined {
    return this.#status === 'refreshing' ? undefined : this.#unexpired();
  }

  async waitForToken(signal: AbortSignal): Promise<Token> {
    for (let token = this.current(); ; token = this.current()) {
      if (token !== undefined) return token;
      const attempt = this.#refresher.joinOrStart();
      if (attempt.kind === 'refused') throw attempt.error;
      await abortable(attempt.done, signal);
    }
  }

  async handleUnauthorized(token: Token, signal: AbortSignal): Promise<UnauthorizedDecision> {
    signal.throwIfAborted();
    if (this.#hasNewer(token)) return REPLAY;
    const refresh = this.#findRefreshFor(token);
    if (refresh === undefined) return PASS_THROUGH;
    await abortable(refresh, signal);
    return this.#hasNewer(token) ? REPLAY : PASS_THROUGH;
  }

  confirmAccepted(token: Token): void {
    this.#cooldown.recordAccepted(token.serial, this.#held?.serial ?? 0);
  }

  state(): TokenState {
    const token = this.#unexpired();
    return {
      credential: this.#options.credential,
      status: token === undefined ? 'none' : this.#status === 'good' ? 'valid' : 'suspect',
      serial: this.#held?.serial ?? 0,
      scope: token?.scope,
      expiresWallAt: token?.expiresWallAt,
      validForMs: token && token.expiresAt - this.#clock.now(),
      missingScopes: this.#missingScopes,
      credentialFault: this.#options.fetcher.credentialFault(),
      hasHadToken: this.#held !== undefined,
      ...this.#refresher.state(),
    };
  }

  #unexpired(): Token | undefined {
    const held = this.#held;
    return held !== undefined && isUsable(held, this.#clock.now()) ? held : undefined;
  }

  #currentNeed(): TokenNeed {
    const held = this.#unexpired();
    if (held === undefined) return { reason: 'first', held };
    return { reason: this.#status === 'good' ? 'refresh' : 'unauthorized', held };
  }

  #hold(token: Token): void {
    if (this.#status !== 'good') this.#cooldown.recordReplaced(token.serial);
    this.#held = token;
    this.#status = 'good';
    this.#compareScopes(token);
  }

  #compareScopes({ scope }: Token): void {
    const { credential, observe } = this.#options;
    const missing = findMissingScopes(this.#options.scope, scope);
    const hasChanged = missing.join(' ') !== this.#missingScopes.join(' ');
    this.#missingScopes = missing;
    if (hasChanged) observe({ kind: 'token-scopes-missing', credential, missing });
  }

  #hasNewer(used: Token): boolean {
    const token = this.current();
    return token !== undefined && token.serial > used.serial;
  }

  /** The refresh that a 401 for `token` waits for; undefined when there is none. */
  #findRefreshFor(token: Token): Promise<void> | undefined {
    // An older or expired token: its successor is needed anyway.
    if (token.serial !== this.#unexpired()?.serial) return this.#joinRefresh();
    this.#cooldown.recordRefused(token.serial);
    switch (this.#status) {
      case 'refreshing':
        return this.#refresher.pendingRequest;
      case 'suspect':
        return undefined;
      case 'good':
        return this.#cooldown.canRefresh(this.#clock.now()) ? this.#invalidate() : undefined;
    }
  }

  /** A token request already in flight counts as this refresh: it brings a newer token. */
  #invalidate(): Promise<void> | undefined {
    const { credential, observe } = this.#options;
    observe({ kind: 'token-invalidated', credential, reason: 'unauthorized' });
    const refresh = this.#joinRefresh();
    this.#status = refresh === undefined ? 'suspect' : 'refreshing';
    if (refresh !== undefined) this.#cooldown.recordRefreshStart(this.#clock.now());
    return refresh;
  }

  #joinRefresh(): Promise<void> | undefined {
    const attempt = this.#refresher.joinOrStart();
    return attempt.kind === 'in-flight' ? attempt.done : undefined;
  }
}
