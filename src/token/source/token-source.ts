/**
 * Holds the one access token and says who may use it: in memory only, never past its end, and not while the upstream's
 * 401 has it under suspicion and a successor is on its way. Asking for tokens is renewal's part; how often a 401 may
 * cause that is invalidation's.
 */
import { abortable } from './abortable.ts';
import { findMissingScopes } from '../endpoint/granted-scope.ts';
import { createInvalidationCooldown, mayRefresh, noteAccepted } from './invalidation.ts';
import { noteRefreshBegun, noteRefused, noteReplaced } from './invalidation.ts';
import type { InvalidationCooldown } from './invalidation.ts';
import { LifeClock } from './life-clock.ts';
import { isUsable } from './refresh-schedule.ts';
import { Renewal } from './renewal.ts';
import type { RenewalOptions } from './renewal.ts';
import type { TokenNeed } from './supply.ts';
import type { Token, TokenSource, TokenState, UnauthorizedVerdict } from '../token.ts';

export interface TokenSourceOptions extends RenewalOptions {
  /** Scopes asked for, separated by blanks. */
  readonly scope: string | undefined;
  /** Least time between two refreshes caused by a 401, before it doubles; milliseconds. */
  readonly invalidationCooldownMs: number;
}

const REPLAY: UnauthorizedVerdict = { kind: 'replay' };
const PASS_THROUGH: UnauthorizedVerdict = { kind: 'pass-through' };

/** The held token's standing with the upstream. */
type Standing =
  | 'good'
  /** Refused with 401, its refresh under way: withheld. */
  | 'withheld'
  /** Refused with 401, its refresh failed: in use for want of a better one, until replaced. */
  | 'doubtful';

/** A source that has asked for nothing yet: the first fetch begins with `start()` or the first call that needs a token. */
export function createTokenSource(options: TokenSourceOptions): TokenSource {
  return new HeldTokenSource(options);
}

class HeldTokenSource implements TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #life: LifeClock;
  readonly #renewal: Renewal;
  #held: Token | undefined;
  #standing: Standing = 'good';
  #missingScopes: readonly string[] = [];
  #cooldown: InvalidationCooldown;

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#life = new LifeClock(options.clock);
    this.#cooldown = createInvalidationCooldown(options.invalidationCooldownMs);
    this.#renewal = new Renewal(options, this.#life, {
      need: () => this.#need(),
      take: (token) => this.#take(token),
      endure: () => {
        if (this.#standing === 'withheld') this.#standing = 'doubtful';
      },
    });
  }

  start(): void {
    this.#renewal.start();
    this.seek();
  }

  seek(): void {
    if (this.#alive() === undefined) this.#renewal.attempt();
  }

  stop(): void {
    this.#renewal.stop();
  }

  current(): Token | undefined {
    return this.#standing === 'withheld' ? undefined : this.#alive();
  }

  usable(signal: AbortSignal): Promise<Token> {
    const token = this.current();
    return token === undefined ? this.#awaitToken(signal) : Promise.resolve(token);
  }

  async unauthorized(token: Token, signal: AbortSignal): Promise<UnauthorizedVerdict> {
    signal.throwIfAborted();
    if (this.#holdsNewer(token)) return REPLAY;
    const refresh = this.#refreshFor(token);
    if (refresh === undefined) return PASS_THROUGH;
    await abortable(refresh, signal);
    return this.#holdsNewer(token) ? REPLAY : PASS_THROUGH;
  }

  accepted(token: Token): void {
    if (token.serial >= (this.#cooldown.onTrial ?? this.#held?.serial ?? 0))
      this.#cooldown = noteAccepted(this.#cooldown);
  }

  state(): TokenState {
    const token = this.#alive();
    return {
      credential: this.#options.credential,
      status: token === undefined ? 'none' : this.#standing === 'good' ? 'valid' : 'suspect',
      serial: this.#held?.serial ?? 0,
      scope: token?.scope,
      expiresWallAt: token?.expiresWallAt,
      validForMs: token && token.expiresAt - this.#life.now(),
      missingScopes: this.#missingScopes,
      credentialFault: this.#options.supply.fault(),
      started: this.#held !== undefined,
      ...this.#renewal.state(),
    };
  }

  #alive(): Token | undefined {
    const held = this.#held;
    return held !== undefined && isUsable(held, this.#life.now()) ? held : undefined;
  }

  #need(): TokenNeed {
    const held = this.#alive();
    if (held === undefined) return { reason: 'first', held };
    return { reason: this.#standing === 'good' ? 'renewal' : 'unauthorized', held };
  }

  #take(token: Token): void {
    if (this.#standing !== 'good') this.#cooldown = noteReplaced(this.#cooldown, token.serial);
    this.#held = token;
    this.#standing = 'good';
    this.#compareScopes(token);
  }

  #compareScopes({ scope }: Token): void {
    const { credential, observe } = this.#options;
    const missing = findMissingScopes(this.#options.scope, scope);
    const hasChanged = missing.join(' ') !== this.#missingScopes.join(' ');
    this.#missingScopes = missing;
    if (hasChanged) observe({ kind: 'token-scopes-missing', credential, missing });
  }

  #holdsNewer(than: Token): boolean {
    const token = this.current();
    return token !== undefined && token.serial > than.serial;
  }

  async #awaitToken(signal: AbortSignal): Promise<Token> {
    for (let token = this.current(); ; token = this.current()) {
      if (token !== undefined) return token;
      const attempt = this.#renewal.attempt();
      if (attempt.kind === 'refused') throw attempt.error;
      await abortable(attempt.done, signal);
    }
  }

  /** The refresh that a 401 for `token` has to wait for; undefined when there is to be none. */
  #refreshFor(token: Token): Promise<void> | undefined {
    // An older token, or one that has ended meanwhile: what is asked for anyway replaces it.
    if (token.serial !== this.#alive()?.serial) return this.#join();
    this.#cooldown = noteRefused(this.#cooldown, token.serial);
    switch (this.#standing) {
      case 'withheld':
        return this.#renewal.underWay;
      case 'doubtful':
        return undefined;
      case 'good':
        return mayRefresh(this.#cooldown, this.#life.now()) ? this.#invalidate() : undefined;
    }
  }

  /** A token request that happens to be under way counts as this refresh: it brings a newer token. */
  #invalidate(): Promise<void> | undefined {
    const { credential, observe } = this.#options;
    observe({ kind: 'token-invalidated', credential, reason: 'unauthorized' });
    const refresh = this.#join();
    this.#standing = refresh === undefined ? 'doubtful' : 'withheld';
    if (refresh !== undefined) this.#cooldown = noteRefreshBegun(this.#cooldown, this.#life.now());
    return refresh;
  }

  #join(): Promise<void> | undefined {
    const attempt = this.#renewal.attempt();
    return attempt.kind === 'under-way' ? attempt.done : undefined;
  }
}
