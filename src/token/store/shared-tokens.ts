/**
 * One token for a fleet: wraps a token request so that of all replicas with one credential a single one sends it, and the others
 * take over what it brought, be it a token or a failure. Replicas meet at a board that is handed in. Whenever it does not answer
 * in time, or the one who asks is not heard of, the request is sent as if there were no fleet. When a token is needed is
 * renewal's, what replicas can read of each other shared-record's.
 */
import { randomUUID } from 'node:crypto';
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import type { Observe } from '../../telemetry/events.ts';
import { pause } from '../source/abortable.ts';
import { LifeClock } from '../source/life-clock.ts';
import { Patience } from '../source/patience.ts';
import { chooseRetryDelays } from '../source/refresh-schedule.ts';
import { openToken, sealToken } from './sealed-token.ts';
import { markToken, nameRecord, openFailure, sealFailure } from './shared-record.ts';
import type { TokenIdentity } from './shared-record.ts';
import type { Found, TokenNeed } from '../source/supply.ts';
import type { FailedAnswer, TokenAnswer } from '../endpoint/token-answer.ts';
import type { Claim, ClaimRequest, Posting, TokenBoard } from './token-board.ts';

export interface SharingOptions<C> {
  readonly board: TokenBoard;
  /** Sends one token request. Never rejects, and ends when its signal is aborted. */
  readonly request: (credentials: C, signal: AbortSignal) => Promise<TokenAnswer>;
  readonly identify: (credentials: C) => TokenIdentity;
  /** Longest wait for what one other replica asks for, milliseconds: as long as a request may take. */
  readonly patienceMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** As a token request; `found` when another replica has asked. */
export type SharedRequest<C> = (credentials: C, signal: AbortSignal, need: TokenNeed) => Promise<TokenAnswer | Found>;

/** Kept up while the request is under way, so that the others notice within this time that whoever asks has died. */
const LEASE_MS = 3_000;
const LEASE_RENEWAL_MS = 1_000;

/** How often a board that owes an answer, and is likely to give it soon, is asked anew. */
const MOST_CLAIMS = 3;

/** Whatever the board says, each replica finds out for itself now and then: what was left there may be a lie. */
const LONGEST_HEARSAY_MS = 600_000;

/** Between two looks at the board while another replica asks. */
const FIRST_LOOK_MS = 20;
const LONGEST_LOOK_MS = 100;
const LOOK_GROWTH = 1.5;

/** The tenth of a life in which a token is not worth beginning with, and the part in which its refresh is due. */
const LEAST_SHARE = 0.1;
const LEAST_SHARE_TO_RENEW = 0.25;

/** A request that is sent by one replica of a fleet at a time. */
export function shareTokens<C>(options: SharingOptions<C>): SharedRequest<C> {
  const sharing = new TokenSharing(options);
  return (credentials, signal, need) => sharing.obtain(credentials, signal, need);
}

type Granted = Extract<TokenAnswer, { kind: 'ok' }>;

/** Undefined when the board cannot be asked now. */
type Post = () => Promise<boolean | undefined>;

const ABANDONED: TokenAnswer = { kind: 'unavailable', detail: 'the token request was abandoned' };

/** One need of one replica. */
interface Errand<C> {
  readonly credentials: C;
  readonly identity: TokenIdentity;
  readonly name: string;
  readonly need: TokenNeed;
  readonly signal: AbortSignal;
}

class TokenSharing<C> {
  readonly #options: SharingOptions<C>;
  readonly #life: LifeClock;
  readonly #owner = randomUUID();
  #failures = 0;
  /** Since when all that is known is what others were refused. */
  #hearsaySince: number | undefined;
  #hasWarned = false;

  constructor(options: SharingOptions<C>) {
    this.#options = options;
    this.#life = new LifeClock(options.clock);
  }

  async obtain(credentials: C, signal: AbortSignal, need: TokenNeed): Promise<TokenAnswer | Found> {
    const { clock, random, patienceMs } = this.#options;
    const identity = this.#options.identify(credentials);
    const errand: Errand<C> = { credentials, identity, name: nameRecord(identity), need, signal };
    const patience = new Patience(patienceMs, this.#life.now());
    for (let looks = 0; patience.lasts(this.#life.now()) && !signal.aborted; looks++) {
      const askedAt = this.#life.now();
      const claim = await this.#claim(errand);
      if (claim === undefined || (claim.kind === 'failed' && this.#hasHeardEnough(askedAt))) break;
      if (claim.kind === 'yours') return this.#ask(errand, claim.boardNow);
      if (claim.kind === 'taken') patience.waitFor(claim.by, this.#life.now());
      const answer = claim.kind === 'taken' ? undefined : await this.#read(errand, claim, askedAt);
      if (answer !== undefined) return answer;
      // Spread, so that those who wait together do not ask together.
      const lookMs = Math.min(LONGEST_LOOK_MS, FIRST_LOOK_MS * LOOK_GROWTH ** looks) * (0.75 + random() / 2);
      await pause(clock, lookMs, signal);
    }
    this.#hearsaySince = undefined;
    return signal.aborted ? ABANDONED : this.#options.request(credentials, signal);
  }

  #hasHeardEnough(now: number): boolean {
    return this.#hearsaySince !== undefined && now - this.#hearsaySince >= LONGEST_HEARSAY_MS;
  }

  async #claim({ name, identity, need }: Errand<C>): Promise<Claim | undefined> {
    const { board } = this.#options;
    const request: ClaimRequest = {
      owner: this.#owner,
      leaseMs: LEASE_MS,
      unwanted: need.held && markToken(identity, need.held.value),
      isRefused: need.reason === 'unauthorized',
      leastShare: need.reason === 'renewal' ? LEAST_SHARE_TO_RENEW : LEAST_SHARE,
    };
    for (let tries = 0; tries < MOST_CLAIMS && (await board.whenReady()); tries++) {
      const claim = await board.claim(name, request);
      if (claim !== undefined) return claim;
    }
    return undefined;
  }

  /** What another replica left; undefined when it cannot be read, and then it is gone. */
  async #read(
    { name, identity }: Errand<C>,
    claim: Extract<Claim, { kind: 'found' | 'failed' }>,
    askedAt: number,
  ): Promise<TokenAnswer | Found | undefined> {
    const { sealed, leftMs } = claim;
    const answer =
      claim.kind === 'found' ? this.#openFound(sealed, identity, leftMs, askedAt) : openEcho(sealed, identity, leftMs);
    if (answer === undefined) {
      this.#warn();
      await this.#options.board.discard(name, sealed);
    } else {
      this.#failures = answer.kind === 'found' ? 0 : this.#failures + 1;
      this.#hearsaySince = answer.kind === 'found' ? undefined : (this.#hearsaySince ?? askedAt);
    }
    return answer;
  }

  /** Its life is what the board says is left of it: the wall clocks of two replicas need not agree. */
  #openFound(sealed: string, identity: TokenIdentity, leftMs: number, askedAt: number): Found | undefined {
    const kept = openToken(sealed, identity.binding, identity.keyMaterial);
    if (kept === undefined) return undefined;
    const lifetimeMs = kept.expiresWallAt - kept.obtainedWallAt;
    // Counted from before the board was asked, so that no way of the answer prolongs it.
    const passedMs = this.#life.now() - askedAt;
    const expiresWallAt = this.#options.clock.wallNow() - passedMs + Math.min(leftMs, lifetimeMs);
    return {
      kind: 'found',
      token: { ...kept, obtainedWallAt: expiresWallAt - lifetimeMs, expiresWallAt },
      from: 'fleet',
    };
  }

  async #ask(errand: Errand<C>, boardNow: number): Promise<TokenAnswer> {
    const { board, request, clock } = this.#options;
    const { credentials, name, signal } = errand;
    this.#hearsaySince = undefined;
    const release = (): void => void board.release(name, this.#owner);
    signal.addEventListener('abort', release, { once: true });
    const askedWallAt = clock.wallNow();
    const endUpkeep = this.#keepLease(errand);
    try {
      const answer = await request(credentials, signal);
      // In the background: the callers of this replica do not wait for the others.
      if (!signal.aborted) void this.#post(errand, answer, askedWallAt, boardNow);
      return answer;
    } finally {
      endUpkeep();
      signal.removeEventListener('abort', release);
    }
  }

  #keepLease(errand: Errand<C>): Cancel {
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
  async #post(errand: Errand<C>, answer: TokenAnswer, askedWallAt: number, boardNow: number): Promise<void> {
    this.#failures = answer.kind === 'ok' ? 0 : this.#failures + 1;
    const post =
      answer.kind === 'ok' ? this.#postToken(errand, answer, askedWallAt, boardNow) : this.#postFailure(errand, answer);
    for (let tries = 0; tries < MOST_CLAIMS && (await this.#options.board.whenReady()); tries++)
      if ((await post()) !== undefined) return;
  }

  /** @param boardNow before the request was sent: no life on the board is longer than the token's own */
  #postToken({ name, identity }: Errand<C>, answer: Granted, askedWallAt: number, boardNow: number): Post {
    const { value, scope, lifetimeMs } = answer;
    const kept = { value, scope, obtainedWallAt: askedWallAt, expiresWallAt: askedWallAt + lifetimeMs };
    const posting: Posting = {
      owner: this.#owner,
      sealed: sealToken(kept, identity.binding, identity.keyMaterial),
      mark: markToken(identity, value),
      expiresAt: boardNow + lifetimeMs,
      lifetimeMs,
    };
    return () => this.#options.board.publish(name, posting);
  }

  #postFailure({ name, identity }: Errand<C>, answer: FailedAnswer): Post {
    const { board } = this.#options;
    const sealed = sealFailure(answer, identity);
    // As long as one process alone might wait: all that are told of it then ask again together, which is one request.
    const { eagerMs } = chooseRetryDelays(answer, { failures: this.#failures, isOpen: false, tookMs: 0, random: 1 });
    return () => board.fail(name, this.#owner, sealed, eagerMs);
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = 'what another replica left in Redis cannot be read: it is ignored, and replaced';
    this.#options.observe({ kind: 'warning', message });
  }
}

/** The failure of another replica, as one to wait after. */
function openEcho(sealed: string, identity: TokenIdentity, leftMs: number): FailedAnswer | undefined {
  const failure = openFailure(sealed, identity);
  return failure?.kind === 'unavailable'
    ? { ...failure, retryAfterMs: leftMs, from: 'fleet' }
    : failure && { ...failure, from: 'fleet' };
}
