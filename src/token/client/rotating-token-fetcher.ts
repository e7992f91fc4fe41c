/**
 * Which credentials a token is asked for with, when they can change under a running process: new ones are tried as soon
 * as they are seen, and those that last worked stay in use until newer ones do. What credentials are made of, and the
 * request itself, are the token endpoint's.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { DeclinableFetchResult, ReusedToken, TokenNeed, TokenFetcher } from '../source/token-fetcher.ts';
import type { TokenRequestResult } from '../endpoint/token-response.ts';
import type { CredentialFault } from '../token.ts';

/** One reading of all that a client shows of itself. */
export interface VersionedCredentials {
  readonly kind: 'ready';
  /** Equal as long as nothing has changed. */
  readonly version: string;
}

/** `detail` is fit for a log. */
export type CredentialReadResult<C extends VersionedCredentials> =
  C | { readonly kind: 'unreadable'; readonly detail: string };

export interface RotatingTokenFetcherOptions<C extends VersionedCredentials> {
  /** Label of the events. */
  readonly credential: string;
  /** Reads all anew. Must not reject. */
  readonly read: () => Promise<CredentialReadResult<C>>;
  /** Sends one token request; must settle in bounded time. */
  readonly request: (credentials: C, signal: AbortSignal, need: TokenNeed) => Promise<TokenRequestResult | ReusedToken>;
  /** False when all is given in place, and there is nothing to watch. */
  readonly canChange: boolean;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

/** Reading small files is cheap, and sees what notifications miss: links that are swapped, network file systems. */
const POLL_INTERVAL_MS = 2_000;

/** Refused ones may be on their way to being known: they are tried again, ever more seldom. */
const FIRST_RETRY_DELAY_MS = 60_000;
const LONGEST_RETRY_DELAY_MS = 900_000;

/** The version of what could not be read. */
const UNREADABLE_VERSION = '';

/** Files may change under a request: how often that is followed at once. */
const MAX_READS = 3;

/** Newer credentials that were refused while older ones are in use. */
interface RejectedCredentials {
  readonly version: string;
  readonly fault: CredentialFault;
  readonly retryDelayMs: number;
  readonly retryAt: number;
  /** False once the older ones have been refused as well. */
  readonly isFallbackWorking: boolean;
}

/** A supply that asks the token endpoint. */
export function createRotatingTokenFetcher<C extends VersionedCredentials>(
  options: RotatingTokenFetcherOptions<C>,
): TokenFetcher {
  const supply = new RotatingTokenFetcher(options);
  return {
    fetch: (need, signal) => supply.fetch(need, signal, MAX_READS),
    watchCredentials: (onNews) => supply.watchCredentials(onNews),
    credentialFault: () => supply.credentialFault(),
  };
}

class RotatingTokenFetcher<C extends VersionedCredentials> {
  readonly #options: RotatingTokenFetcherOptions<C>;
  /** Those that last brought a token. */
  #accepted: C | undefined;
  /** The newest ones that a request was made with. */
  #lastTriedVersion: string | undefined;
  #rejected: RejectedCredentials | undefined;
  #readFault: CredentialFault | undefined;

  constructor(options: RotatingTokenFetcherOptions<C>) {
    this.#options = options;
  }

  credentialFault(): CredentialFault | undefined {
    return this.#readFault ?? this.#rejected?.fault;
  }

  async fetch(need: TokenNeed, signal: AbortSignal, readings: number): Promise<DeclinableFetchResult> {
    const older = this.#accepted;
    const newest = await this.#read();
    if (newest.kind === 'unreadable') {
      this.#lastTriedVersion ??= UNREADABLE_VERSION;
      return older === undefined ? { kind: 'unavailable', detail: newest.detail } : this.#request(older, signal, need);
    }
    const isNew = newest.version !== older?.version;
    if (
      older !== undefined &&
      isNew &&
      need.reason !== 'rotated' &&
      this.#isBackedOff(newest) &&
      this.#rejected?.isFallbackWorking
    )
      return this.#requestWithPrevious(older, signal, need);
    this.#lastTriedVersion = newest.version;
    const startedAt = this.#options.clock.now();
    const answer = await this.#request(newest, signal, need);
    if (answer.kind === 'ok' || answer.kind === 'found') this.#adopt(newest);
    if (answer.kind !== 'rejected') return answer;
    if (readings > 1 && (await this.#hasChangedSince(newest))) {
      this.#reportRequest(answer, startedAt);
      return this.fetch(need, signal, readings - 1);
    }
    if (older === undefined || !isNew) return answer;
    this.#reportRequest(answer, startedAt);
    this.#recordRejected(newest, answer.detail);
    return need.reason === 'rotated' ? { kind: 'declined' } : this.#requestWithPrevious(older, signal, need);
  }

  watchCredentials(onNews: () => void): Cancel {
    const { canChange, clock } = this.#options;
    if (!canChange) return () => undefined;
    let isOver = false;
    const sleep = (): Cancel => clock.after(POLL_INTERVAL_MS, () => void poll());
    const poll = async (): Promise<void> => {
      const hasNews = await this.#hasUntriedCredentials();
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

  async #hasUntriedCredentials(): Promise<boolean> {
    const newest = await this.#read();
    if (newest.kind === 'unreadable') return false;
    // A token is held that was not asked for here: what is first seen is what it was had with.
    if (this.#lastTriedVersion === undefined) this.#accepted ??= newest;
    if (this.#accepted === undefined) return newest.version !== this.#lastTriedVersion;
    return newest.version !== this.#accepted.version && !this.#isBackedOff(newest);
  }

  async #read(): Promise<CredentialReadResult<C>> {
    const newest = await this.#options.read();
    if (newest.kind === 'unreadable') this.#reportUnreadable(newest.detail);
    else this.#readFault = undefined;
    // Taken back: there is nothing newer any more.
    if (newest.kind === 'ready' && newest.version === this.#accepted?.version) this.#rejected = undefined;
    return newest;
  }

  async #hasChangedSince({ version }: C): Promise<boolean> {
    const newest = await this.#read();
    return newest.kind === 'ready' && newest.version !== version;
  }

  #request(credentials: C, signal: AbortSignal, need: TokenNeed): Promise<TokenRequestResult | ReusedToken> {
    return this.#options.request(credentials, signal, need);
  }

  /** @returns what the older ones brought, be it a refusal too */
  async #requestWithPrevious(
    older: C,
    signal: AbortSignal,
    need: TokenNeed,
  ): Promise<TokenRequestResult | ReusedToken> {
    const answer = await this.#request(older, signal, need);
    // When nothing works, whichever becomes valid first is to be found out at the next turn.
    if (this.#rejected) this.#rejected = { ...this.#rejected, isFallbackWorking: answer.kind !== 'rejected' };
    return answer;
  }

  #isBackedOff({ version }: C): boolean {
    const refusal = this.#rejected;
    return refusal?.version === version && this.#options.clock.now() < refusal.retryAt;
  }

  #adopt(credentials: C): void {
    const { credential, observe } = this.#options;
    const isRotation = this.#accepted !== undefined && this.#accepted.version !== credentials.version;
    this.#accepted = credentials;
    this.#rejected = undefined;
    if (!isRotation) return;
    observe({ kind: 'token-invalidated', credential, reason: 'rotated' });
    observe({ kind: 'credential-rotation', credential, outcome: 'taken' });
  }

  #recordRejected({ version }: C, detail: string): void {
    const { clock, credential, observe } = this.#options;
    const earlier = this.#rejected?.version === version ? this.#rejected : undefined;
    const restMs =
      earlier === undefined ? FIRST_RETRY_DELAY_MS : Math.min(earlier.retryDelayMs * 2, LONGEST_RETRY_DELAY_MS);
    const fault = earlier?.fault ?? { detail: `the new credentials were refused: ${detail}`, wallAt: clock.wallNow() };
    this.#rejected = { version, fault, retryDelayMs: restMs, retryAt: clock.now() + restMs, isFallbackWorking: true };
    observe({ kind: 'credential-rotation', credential, outcome: 'refused', detail });
  }

  #reportUnreadable(detail: string): void {
    const { clock, credential, observe } = this.#options;
    if (this.#accepted === undefined || this.#readFault?.detail === detail) return;
    this.#readFault = { detail, wallAt: clock.wallNow() };
    observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
  }

  /** For a request whose answer goes no further. */
  #reportRequest({ kind, detail, from }: Extract<TokenRequestResult, { kind: 'rejected' }>, startedAt: number): void {
    if (from !== undefined) return;
    const { clock, credential, observe } = this.#options;
    observe({ kind: 'token-requested', credential, outcome: kind, durationMs: clock.now() - startedAt, detail });
  }
}
