/**
 * Which credentials a token is asked for with, when they can change under a running process: new ones are tried as soon
 * as they are seen, and those that last worked stay in use until newer ones do. What credentials are made of, and the
 * request itself, are the token endpoint's.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { Observe } from '../../telemetry/events.ts';
import type { Fetched, Found, TokenNeed, TokenSupply } from '../source/supply.ts';
import type { TokenAnswer } from '../endpoint/token-answer.ts';
import type { CredentialFault } from '../token.ts';

/** One reading of all that a client shows of itself. */
export interface Credentials {
  readonly kind: 'ready';
  /** Equal as long as nothing has changed. */
  readonly version: string;
}

/** `detail` is fit for a log. */
export type CredentialReading<C extends Credentials> = C | { readonly kind: 'unreadable'; readonly detail: string };

export interface CredentialSupplyOptions<C extends Credentials> {
  /** Label of the events. */
  readonly credential: string;
  /** Reads all anew. Must not reject. */
  readonly read: () => Promise<CredentialReading<C>>;
  /** Sends one token request; must settle in bounded time. */
  readonly request: (credentials: C, signal: AbortSignal, need: TokenNeed) => Promise<TokenAnswer | Found>;
  /** False when all is given in place, and there is nothing to watch. */
  readonly canChange: boolean;
  readonly clock: Clock;
  readonly observe: Observe;
}

/** Reading small files is cheap, and sees what notifications miss: links that are swapped, network file systems. */
const POLL_MS = 2_000;

/** Refused ones may be on their way to being known: they are tried again, ever more seldom. */
const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 900_000;

/** The version of what could not be read. */
const NOTHING = '';

/** Files may change under a request: how often that is followed at once. */
const MOST_READINGS = 3;

/** Newer credentials that were refused while older ones are in use. */
interface Refusal {
  readonly version: string;
  readonly fault: CredentialFault;
  readonly restMs: number;
  readonly againAt: number;
  /** False once the older ones have been refused as well. */
  readonly doOlderWork: boolean;
}

/** A supply that asks the token endpoint. */
export function createCredentialSupply<C extends Credentials>(options: CredentialSupplyOptions<C>): TokenSupply {
  const supply = new CredentialSupply(options);
  return {
    fetch: (need, signal) => supply.fetch(need, signal, MOST_READINGS),
    watch: (onNews) => supply.watch(onNews),
    fault: () => supply.fault(),
  };
}

class CredentialSupply<C extends Credentials> {
  readonly #options: CredentialSupplyOptions<C>;
  /** Those that last brought a token. */
  #inUse: C | undefined;
  /** The newest ones that a request was made with. */
  #tried: string | undefined;
  #refusal: Refusal | undefined;
  #unreadable: CredentialFault | undefined;

  constructor(options: CredentialSupplyOptions<C>) {
    this.#options = options;
  }

  fault(): CredentialFault | undefined {
    return this.#unreadable ?? this.#refusal?.fault;
  }

  async fetch(need: TokenNeed, signal: AbortSignal, readings: number): Promise<Fetched> {
    const older = this.#inUse;
    const newest = await this.#read();
    if (newest.kind === 'unreadable') {
      this.#tried ??= NOTHING;
      return older === undefined ? { kind: 'unavailable', detail: newest.detail } : this.#request(older, signal, need);
    }
    const isNew = newest.version !== older?.version;
    if (older !== undefined && isNew && need.reason !== 'rotated' && this.#rests(newest) && this.#refusal?.doOlderWork)
      return this.#fallBack(older, signal, need);
    this.#tried = newest.version;
    const startedAt = this.#options.clock.now();
    const answer = await this.#request(newest, signal, need);
    if (answer.kind === 'ok' || answer.kind === 'found') this.#adopt(newest);
    if (answer.kind !== 'rejected') return answer;
    if (readings > 1 && (await this.#differs(newest))) {
      this.#tellRequest(answer, startedAt);
      return this.fetch(need, signal, readings - 1);
    }
    if (older === undefined || !isNew) return answer;
    this.#tellRequest(answer, startedAt);
    this.#refuse(newest, answer.detail);
    return need.reason === 'rotated' ? { kind: 'declined' } : this.#fallBack(older, signal, need);
  }

  watch(onNews: () => void): Cancel {
    const { canChange, clock } = this.#options;
    if (!canChange) return () => undefined;
    let isOver = false;
    const sleep = (): Cancel => clock.after(POLL_MS, () => void poll());
    const poll = async (): Promise<void> => {
      const hasNews = await this.#hasNews();
      // Cancelled while the files were read.
      if (isOver) return;
      cancel = sleep();
      if (hasNews) onNews();
    };
    let cancel = sleep();
    return () => {
      isOver = true;
      cancel();
    };
  }

  async #hasNews(): Promise<boolean> {
    const newest = await this.#read();
    if (newest.kind === 'unreadable') return false;
    // A token is held that was not asked for here: what is first seen is what it was had with.
    if (this.#tried === undefined) this.#inUse ??= newest;
    if (this.#inUse === undefined) return newest.version !== this.#tried;
    return newest.version !== this.#inUse.version && !this.#rests(newest);
  }

  async #read(): Promise<CredentialReading<C>> {
    const newest = await this.#options.read();
    if (newest.kind === 'unreadable') this.#noteUnreadable(newest.detail);
    else this.#unreadable = undefined;
    // Taken back: there is nothing newer any more.
    if (newest.kind === 'ready' && newest.version === this.#inUse?.version) this.#refusal = undefined;
    return newest;
  }

  async #differs({ version }: C): Promise<boolean> {
    const newest = await this.#read();
    return newest.kind === 'ready' && newest.version !== version;
  }

  #request(credentials: C, signal: AbortSignal, need: TokenNeed): Promise<TokenAnswer | Found> {
    return this.#options.request(credentials, signal, need);
  }

  /** @returns what the older ones brought, be it a refusal too */
  async #fallBack(older: C, signal: AbortSignal, need: TokenNeed): Promise<TokenAnswer | Found> {
    const answer = await this.#request(older, signal, need);
    // When nothing works, whichever becomes valid first is to be found out at the next turn.
    if (this.#refusal) this.#refusal = { ...this.#refusal, doOlderWork: answer.kind !== 'rejected' };
    return answer;
  }

  #rests({ version }: C): boolean {
    const refusal = this.#refusal;
    return refusal?.version === version && this.#options.clock.now() < refusal.againAt;
  }

  #adopt(credentials: C): void {
    const { credential, observe } = this.#options;
    const isRotation = this.#inUse !== undefined && this.#inUse.version !== credentials.version;
    this.#inUse = credentials;
    this.#refusal = undefined;
    if (!isRotation) return;
    observe({ kind: 'token-invalidated', credential, reason: 'rotated' });
    observe({ kind: 'credential-rotation', credential, outcome: 'taken' });
  }

  #refuse({ version }: C, detail: string): void {
    const { clock, credential, observe } = this.#options;
    const earlier = this.#refusal?.version === version ? this.#refusal : undefined;
    const restMs = earlier === undefined ? FIRST_REST_MS : Math.min(earlier.restMs * 2, LONGEST_REST_MS);
    const fault = earlier?.fault ?? { detail: `the new credentials were refused: ${detail}`, wallAt: clock.wallNow() };
    this.#refusal = { version, fault, restMs, againAt: clock.now() + restMs, doOlderWork: true };
    observe({ kind: 'credential-rotation', credential, outcome: 'refused', detail });
  }

  #noteUnreadable(detail: string): void {
    const { clock, credential, observe } = this.#options;
    if (this.#inUse === undefined || this.#unreadable?.detail === detail) return;
    this.#unreadable = { detail, wallAt: clock.wallNow() };
    observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
  }

  /** For a request whose answer goes no further. */
  #tellRequest({ kind, detail, from }: Extract<TokenAnswer, { kind: 'rejected' }>, startedAt: number): void {
    if (from !== undefined) return;
    const { clock, credential, observe } = this.#options;
    observe({ kind: 'token-requested', credential, outcome: kind, durationMs: clock.now() - startedAt, detail });
  }
}
