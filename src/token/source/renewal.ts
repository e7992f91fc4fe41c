/**
 * Asks for tokens: one request in flight whatever asks, ahead of the end of the held one, and as the circuit allows after
 * a failure. Which token is held and who may use it is token-source's; where it comes from is the supply's.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { Observe } from '../../telemetry/events.ts';
import { fetchBounded } from '../endpoint/bounded-fetch.ts';
import { Circuit } from '../endpoint/circuit.ts';
import type { LifeClock } from './life-clock.ts';
import { chooseRefreshDelayMs, isUsable } from './refresh-schedule.ts';
import { describeSettlement } from './settlement.ts';
import type { Settlement } from './settlement.ts';
import type { TokenNeed, TokenSupply } from './supply.ts';
import type { FailedAnswer } from '../endpoint/token-answer.ts';
import type { Token, TokenState } from '../token.ts';

export interface RenewalOptions {
  /** Label of the events. */
  readonly credential: string;
  readonly supply: TokenSupply;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** What the renewal needs to know of, and tells, the holder of the token. */
interface TokenHolder {
  /** Why a token is asked for at this moment; `renewal` when a good one is held. */
  need(): TokenNeed;
  take(token: Token): void;
  /** The attempt under way failed. */
  endure(): void;
}

/** Answer to "a token is needed". */
type Attempt =
  /** Settles, never rejects, when the one request under way has ended, in a token or not. */
  | { readonly kind: 'under-way'; readonly done: Promise<void> }
  | { readonly kind: 'refused'; readonly error: SidecarError };

interface Failure {
  readonly answer: FailedAnswer;
  readonly wallAt: number;
}

/** Sleeps are cut into these, so that the end of a suspend or a stepped wall clock is noticed. */
const LONGEST_SLEEP_MS = 60_000;
const DRAINING_RETRY_MS = 1_000;

export class Renewal {
  readonly #options: RenewalOptions;
  readonly #life: LifeClock;
  readonly #holder: TokenHolder;
  readonly #stop = new AbortController();
  readonly #circuit = new Circuit();
  #underWay: Promise<void> | undefined;
  #failure: Failure | undefined;
  /** When the held token's successor is due. */
  #refreshAt: number | undefined;
  /** Somebody who needs a token has been refused since the last request. */
  #isWanted = false;
  #cancelSleep: Cancel | undefined;
  #cancelWatch: Cancel | undefined;
  #serial = 0;

  constructor(options: RenewalOptions, life: LifeClock, holder: TokenHolder) {
    this.#options = options;
    this.#life = life;
    this.#holder = holder;
  }

  /** From now on new credentials are noticed. */
  start(): void {
    if (!this.#stop.signal.aborted) this.#cancelWatch ??= this.#options.supply.watch(() => this.#tryNewCredentials());
  }

  /** Joins the request under way or begins one, unless the endpoint's failures forbid it now. */
  attempt(): Attempt {
    if (this.#stop.signal.aborted) return { kind: 'refused', error: describeStop() };
    const waitMs = this.#circuit.nextAt(true) - this.#life.now();
    if (this.#underWay === undefined && this.#failure !== undefined && waitMs > 0) {
      this.#want();
      return { kind: 'refused', error: describeRefusal(this.#failure.answer, waitMs) };
    }
    return { kind: 'under-way', done: this.#underWay ?? this.#begin(this.#holder.need()) };
  }

  /** The request under way, if one is. */
  get underWay(): Promise<void> | undefined {
    return this.#underWay;
  }

  stop(): void {
    this.#stop.abort(describeStop());
    this.#cancelSleep?.();
    this.#cancelWatch?.();
  }

  state(): Pick<TokenState, 'consecutiveFailures' | 'lastFailure' | 'circuit' | 'nextRequestInMs'> {
    const failure = this.#failure;
    return {
      consecutiveFailures: this.#circuit.failures,
      lastFailure: failure && { outcome: failure.answer.kind, detail: failure.answer.detail, wallAt: failure.wallAt },
      circuit: this.#circuit.phase,
      nextRequestInMs: this.#dueInMs(),
    };
  }

  /** Whoever was refused once is going to ask again: the token is to be there by then. */
  #want(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#sleep();
  }

  /** In an outage they are part of the next probe; after a refusal they are what has been waited for. */
  #tryNewCredentials(): void {
    const isDown = this.#failure !== undefined && this.#failure.answer.kind !== 'rejected';
    if (this.#stop.signal.aborted || this.#underWay !== undefined || isDown) return;
    const need = this.#holder.need();
    void this.#begin(need.reason === 'renewal' ? { ...need, reason: 'rotated' } : need);
  }

  #begin(need: TokenNeed): Promise<void> {
    this.#cancelSleep?.();
    this.#isWanted = false;
    this.#circuit.begin();
    return (this.#underWay = this.#request(need));
  }

  async #request(need: TokenNeed): Promise<void> {
    const askedAt = this.#life.now();
    const askedWallAt = this.#options.clock.wallNow();
    const fetched = await fetchBounded(this.#options, need, this.#stop.signal, this.#circuit.patienceMs);
    // The held token may have been lost while new credentials were on trial.
    const left = this.#holder.need();
    if (fetched.kind === 'declined' && left.reason !== 'renewal' && !this.#stop.signal.aborted)
      return this.#request(left);
    this.#underWay = undefined;
    if (this.#stop.signal.aborted) return;
    const durationMs = this.#life.now() - askedAt;
    if (fetched.kind === 'declined') this.#circuit.abandon();
    const settled = fetched.kind === 'declined' ? undefined : this.#settle(fetched, askedAt, askedWallAt);
    this.#sleep();
    if (settled === undefined) return;
    const { credential, observe, clock } = this.#options;
    const facts = { credential, durationMs, nextInMs: this.#dueInMs(), wallNow: clock.wallNow() };
    observe(describeSettlement(settled, facts));
  }

  /** Returns what was made of it: a token that comes too late is a failure. */
  #settle(fetched: Settlement, askedAt: number, askedWallAt: number): Settlement {
    if (fetched.kind !== 'ok' && fetched.kind !== 'found') return this.#fail(fetched, askedAt);
    const { value, scope, lifetimeMs, ageMs } = describeGain(fetched, askedWallAt);
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
    if (!isUsable(token, this.#life.now()))
      return this.#fail({ kind: 'unavailable', detail: 'the token had expired before it arrived' }, askedAt);
    this.#serial = token.serial;
    this.#failure = undefined;
    this.#refreshAt = obtainedAt + chooseRefreshDelayMs(lifetimeMs, this.#options.random());
    this.#moveCircuit(() => this.#circuit.close());
    this.#holder.take(token);
    return fetched;
  }

  #fail(answer: FailedAnswer, askedAt: number): FailedAnswer {
    const { clock, random } = this.#options;
    this.#failure = { answer, wallAt: clock.wallNow() };
    this.#moveCircuit(() => this.#circuit.fail(answer, askedAt, this.#life.now(), random()));
    this.#holder.endure();
    return answer;
  }

  /** Probes that fail are no news. */
  #moveCircuit(move: () => void): void {
    const { credential, observe } = this.#options;
    const wasClosed = this.#circuit.phase === 'closed';
    move();
    const isClosed = this.#circuit.phase === 'closed';
    if (isClosed !== wasClosed) observe({ kind: 'token-circuit', credential, phase: isClosed ? 'closed' : 'open' });
  }

  #dueInMs(): number | undefined {
    if (this.#underWay !== undefined || this.#stop.signal.aborted) return undefined;
    const dueAt = this.#failure === undefined ? this.#refreshAt : this.#circuit.nextAt(this.#isWanted);
    return dueAt === undefined ? undefined : Math.max(0, dueAt - this.#life.now());
  }

  #sleep(): void {
    this.#cancelSleep?.();
    const sleepMs = Math.min(this.#dueInMs() ?? LONGEST_SLEEP_MS, LONGEST_SLEEP_MS);
    this.#cancelSleep = this.#options.clock.after(sleepMs, () => {
      if (this.#dueInMs() === 0) this.attempt();
      else this.#sleep();
    });
  }
}

/** One that was asked for earlier has lived already; the clock of whoever asked for it may be ahead of this one. */
function describeGain(fetched: Extract<Settlement, { kind: 'ok' | 'found' }>, wallNow: number) {
  if (fetched.kind === 'ok') return { ...fetched, ageMs: 0 };
  const { obtainedWallAt, expiresWallAt } = fetched.token;
  const ageMs = Math.max(0, wallNow - obtainedWallAt);
  return { ...fetched.token, lifetimeMs: expiresWallAt - obtainedWallAt, ageMs };
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
