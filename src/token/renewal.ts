/**
 * Asks for tokens: one request in flight whatever asks, ahead of the end of the held one, with backoff after a failure.
 * Which token is held and who may use it is token-source's; the wire is token-endpoint's.
 */
import type { Cancel, Clock, Random } from '../clock.ts';
import { SidecarError } from '../errors.ts';
import type { Observe } from '../telemetry/events.ts';
import { abortable } from './abortable.ts';
import { chooseRefreshDelayMs, chooseRetryDelayMs, isUsable } from './refresh-schedule.ts';
import type { TokenAnswer } from './token-answer.ts';
import type { Token, TokenState } from './token.ts';

export interface RenewalOptions {
  /** Label of the events. */
  readonly credential: string;
  /** Sends one token request; must settle in bounded time. */
  readonly requestToken: (signal: AbortSignal) => Promise<TokenAnswer>;
  /** True when id or secret are no longer those of the last request. */
  readonly credentialsChanged: () => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** What the renewal needs to know of, and tells, the holder of the token. */
interface TokenHolder {
  isHolding(): boolean;
  take(token: Token): void;
  /** The attempt under way failed. */
  endure(): void;
}

/** Answer to "a token is needed". */
type Attempt =
  /** Settles, never rejects, when the one request under way has ended, in a token or not. */
  | { readonly kind: 'under-way'; readonly done: Promise<void> }
  | { readonly kind: 'refused'; readonly error: SidecarError };

type FailedAnswer = Exclude<TokenAnswer, { kind: 'ok' }>;

interface Failure {
  readonly answer: FailedAnswer;
  readonly inARow: number;
  readonly wallAt: number;
}

/** Sleeps are cut into these, so that the end of a suspend or a stepped wall clock is noticed. */
const LONGEST_SLEEP_MS = 60_000;
const SECRET_POLL_MS = 5_000;
const DRAINING_RETRY_MS = 1_000;

export class Renewal {
  readonly #options: RenewalOptions;
  readonly #holder: TokenHolder;
  readonly #stop = new AbortController();
  #underWay: Promise<void> | undefined;
  #failure: Failure | undefined;
  #dueAt: number | undefined;
  #cancelSleep: Cancel | undefined;
  #pollingSecret = false;
  #serial = 0;

  constructor(options: RenewalOptions, holder: TokenHolder) {
    this.#options = options;
    this.#holder = holder;
  }

  /** Joins the request under way or begins one, unless the endpoint's failures forbid it now. */
  attempt(): Attempt {
    if (this.#stop.signal.aborted) return { kind: 'refused', error: describeStop() };
    if (this.#underWay === undefined) {
      const waitMs = this.#dueInMs() ?? 0;
      if (this.#failure !== undefined && waitMs > 0)
        return { kind: 'refused', error: describeRefusal(this.#failure.answer, waitMs) };
      this.#cancelSleep?.();
      this.#underWay = this.#request();
    }
    return { kind: 'under-way', done: this.#underWay };
  }

  /** The request under way, if one is. */
  get underWay(): Promise<void> | undefined {
    return this.#underWay;
  }

  stop(): void {
    this.#stop.abort(describeStop());
    this.#cancelSleep?.();
    this.#dueAt = undefined;
  }

  state(): Pick<TokenState, 'consecutiveFailures' | 'lastFailure' | 'nextRequestInMs'> {
    const failure = this.#failure;
    return {
      consecutiveFailures: failure?.inARow ?? 0,
      lastFailure: failure && { outcome: failure.answer.kind, detail: failure.answer.detail, wallAt: failure.wallAt },
      nextRequestInMs: this.#dueInMs(),
    };
  }

  async #request(): Promise<void> {
    const { clock, observe, credential } = this.#options;
    const askedAt = clock.now();
    const askedWallAt = clock.wallNow();
    this.#dueAt = undefined;
    const received = await this.#ask();
    this.#underWay = undefined;
    if (this.#stop.signal.aborted) return;
    const answer = this.#settle(received, askedAt, askedWallAt);
    this.#sleep();
    const nextInMs = this.#dueInMs();
    observe({
      kind: 'token-requested',
      credential,
      outcome: answer.kind,
      durationMs: clock.now() - askedAt,
      ...(answer.kind === 'ok' ? { lifetimeMs: answer.lifetimeMs } : { detail: answer.detail }),
      ...(nextInMs === undefined ? {} : { nextInMs }),
    });
  }

  async #ask(): Promise<TokenAnswer> {
    const { signal } = this.#stop;
    try {
      return await abortable(this.#options.requestToken(signal), signal);
    } catch {
      // Whatever was thrown was not made for showing: it may quote what was sent.
      return { kind: 'unavailable', detail: 'the token request failed unexpectedly' };
    }
  }

  /** Returns the answer as it was taken. The life counts from the request on, as it may have begun with its arrival. */
  #settle(answer: TokenAnswer, askedAt: number, askedWallAt: number): TokenAnswer {
    const { clock, random } = this.#options;
    if (answer.kind !== 'ok') return this.#fail(answer);
    const { value, scope, lifetimeMs } = answer;
    const token: Token = {
      value,
      serial: this.#serial + 1,
      scope,
      obtainedAt: askedAt,
      expiresAt: askedAt + lifetimeMs,
      expiresWallAt: askedWallAt + lifetimeMs,
    };
    if (!isUsable(token, clock.now(), clock.wallNow()))
      return this.#fail({ kind: 'unavailable', detail: 'the token had expired before it arrived' });
    this.#serial = token.serial;
    this.#failure = undefined;
    this.#dueAt = askedAt + chooseRefreshDelayMs(lifetimeMs, random());
    this.#holder.take(token);
    return answer;
  }

  #fail(answer: FailedAnswer): FailedAnswer {
    const { clock, random } = this.#options;
    const inARow = (this.#failure?.inARow ?? 0) + 1;
    this.#failure = { answer, inARow, wallAt: clock.wallNow() };
    this.#dueAt = clock.now() + chooseRetryDelayMs(answer, inARow, random());
    this.#holder.endure();
    return answer;
  }

  #dueInMs(): number | undefined {
    return this.#dueAt === undefined ? undefined : Math.max(0, this.#dueAt - this.#options.clock.now());
  }

  #isRejected(): boolean {
    return this.#failure?.answer.kind === 'rejected';
  }

  #sleep(): void {
    const longestMs = this.#isRejected() ? SECRET_POLL_MS : LONGEST_SLEEP_MS;
    this.#cancelSleep = this.#options.clock.after(Math.min(this.#dueInMs() ?? longestMs, longestMs), () => {
      this.#wake();
    });
  }

  #wake(): void {
    const lostEarly = this.#failure === undefined && !this.#holder.isHolding();
    if (lostEarly || this.#dueInMs() === 0) {
      this.attempt();
      return;
    }
    this.#sleep();
    if (this.#isRejected() && !this.#pollingSecret) void this.#pollSecret();
  }

  async #pollSecret(): Promise<void> {
    this.#pollingSecret = true;
    const changed = await this.#options.credentialsChanged().catch(() => false);
    this.#pollingSecret = false;
    if (!changed || !this.#isRejected() || this.#underWay !== undefined) return;
    this.#dueAt = this.#options.clock.now();
    this.attempt();
  }
}

function describeRefusal(answer: FailedAnswer, retryAfterMs: number): SidecarError {
  if (answer.kind === 'rejected') return new SidecarError('TOKEN_REJECTED', `No access token: ${answer.detail}`);
  return new SidecarError('TOKEN_UNAVAILABLE', `No access token: ${answer.detail}`, { retryAfterMs });
}

function describeStop(): SidecarError {
  return new SidecarError('TOKEN_UNAVAILABLE', 'No access token: the sidecar is shutting down', {
    retryAfterMs: DRAINING_RETRY_MS,
  });
}
