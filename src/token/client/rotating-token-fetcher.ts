/**
 * Chooses the credentials of a token request when they can change in a running process: new ones are tried as soon as they
 * are seen, and the last accepted ones stay in use until newer ones are accepted.
 */
import type { Cancel } from '../../platform/clock.ts';
import type {
  DeclinableFetchResult,
  SendTokenRequest,
  TokenFetcher,
  TokenFetchResult,
  TokenNeed,
  TokenPartOptions,
} from '../source/token-fetcher.ts';
import type { TokenRequestResult } from '../endpoint/token-response.ts';
import { isLasting } from '../source/refresh-schedule.ts';
import type { CredentialFault } from '../token.ts';
import type { ClientCredential, ClientCredentialReadResult } from './client-authentication.ts';
import { pollFiles } from './secret-file.ts';

export interface RotatingTokenFetcherOptions extends Omit<TokenPartOptions, 'random'> {
  /** Reads the newest credentials. Must not reject. */
  readonly read: () => Promise<ClientCredentialReadResult>;
  readonly request: SendTokenRequest;
}

/** New credentials may not be known to the server yet: rejected ones are tried again, at growing intervals. */
const FIRST_RETRY_DELAY_MS = 60_000;
const MAX_RETRY_DELAY_MS = 900_000;

const UNREADABLE_VERSION = '';

/** If the files change during a rejected request, it is repeated at once, up to this number of reads. */
const MAX_READS = 3;

/** Newer credentials that were rejected while the accepted ones are in use. */
interface RejectedCredentials {
  readonly version: string;
  readonly fault: CredentialFault;
  readonly retryDelayMs: number;
  readonly retryAt: number;
  /** False once the accepted ones have been rejected too. */
  readonly isFallbackWorking: boolean;
}

export class RotatingTokenFetcher implements TokenFetcher {
  readonly #options: RotatingTokenFetcherOptions;
  #accepted: ClientCredential | undefined;
  #lastTriedVersion: string | undefined;
  #rejected: RejectedCredentials | undefined;
  /** Set when the last request brought a response without a token: the next one that is due tries these credentials again. */
  #failedVersion: string | undefined;
  /** The proof of the last request, if that failed. */
  #failedProofVersion: string | undefined;
  #readFault: CredentialFault | undefined;

  constructor(options: RotatingTokenFetcherOptions) {
    this.#options = options;
  }

  fault(): CredentialFault | undefined {
    return this.#readFault ?? this.#rejected?.fault;
  }

  fetch(need: TokenNeed, signal: AbortSignal): Promise<DeclinableFetchResult> {
    return this.#fetch(need, signal, MAX_READS);
  }

  async #fetch(need: TokenNeed, signal: AbortSignal, readsLeft: number): Promise<DeclinableFetchResult> {
    const accepted = this.#accepted;
    const newest = await this.#read();
    if (newest.kind === 'unreadable') {
      this.#lastTriedVersion ??= UNREADABLE_VERSION;
      if (accepted === undefined) return { kind: 'unavailable', detail: newest.detail, isUnsent: true };
      return this.#options.request(accepted, signal, need);
    }
    const isNew = newest.version !== accepted?.version;
    const canSkipNew = need.reason !== 'rotated' && this.#isBackedOff(newest) && this.#rejected?.isFallbackWorking;
    if (accepted !== undefined && isNew && canSkipNew) return this.#requestWithAccepted(accepted, signal, need);
    this.#lastTriedVersion = newest.version;
    const startedAt = this.#options.clock.now();
    const result = await this.#options.request(newest, signal, need);
    const isSuccess = result.kind === 'ok' || result.kind === 'found';
    this.#recordTry(newest, result);
    if (isSuccess) return { ...result, isUsedAtOnce: this.#adopt(newest) };
    if (result.kind !== 'rejected') return result;
    if (readsLeft > 1 && (await this.#hasChangedSince(newest))) {
      this.#reportRequest(result, startedAt);
      return this.#fetch(need, signal, readsLeft - 1);
    }
    if (accepted === undefined || !isNew) return result;
    this.#reportRequest(result, startedAt);
    this.#recordRejected(newest, result.detail);
    return need.reason === 'rotated' ? { kind: 'declined' } : this.#requestWithAccepted(accepted, signal, need);
  }

  /** Calls `onChange` each time untried credentials are seen, until it is cancelled. */
  watch(onChange: () => void): Cancel {
    return pollFiles(this.#options.clock, async () => {
      if (await this.#hasUntriedCredentials()) onChange();
    });
  }

  async #hasUntriedCredentials(): Promise<boolean> {
    const newest = await this.#read();
    if (newest.kind === 'unreadable') return false;
    if (this.#failedProofVersion !== undefined && newest.proofVersion !== this.#failedProofVersion) {
      // Once for each renewal.
      this.#failedProofVersion = newest.proofVersion;
      return true;
    }
    // The held token was not requested here (cache file): assume the credentials seen first.
    if (this.#lastTriedVersion === undefined) this.#accepted ??= newest;
    if (this.#accepted === undefined) return newest.version !== this.#lastTriedVersion;
    const isDue = newest.version !== this.#failedVersion && !this.#isBackedOff(newest);
    return newest.version !== this.#accepted.version && isDue;
  }

  async #read(): Promise<ClientCredentialReadResult> {
    const newest = await this.#options.read();
    if (newest.kind === 'unreadable') this.#reportUnreadable(newest.detail);
    else this.#readFault = undefined;
    // The change was reverted.
    if (newest.kind === 'ready' && newest.version === this.#accepted?.version) this.#rejected = undefined;
    return newest;
  }

  async #hasChangedSince({ version }: ClientCredential): Promise<boolean> {
    const newest = await this.#read();
    return newest.kind === 'ready' && newest.version !== version;
  }

  async #requestWithAccepted(
    accepted: ClientCredential,
    signal: AbortSignal,
    need: TokenNeed,
  ): Promise<TokenFetchResult> {
    const result = await this.#options.request(accepted, signal, need);
    // If these are rejected too, the next fetch tries the new ones first, and then these again.
    if (this.#rejected) this.#rejected = { ...this.#rejected, isFallbackWorking: result.kind !== 'rejected' };
    return result;
  }

  #recordTry({ version, proofVersion }: ClientCredential, result: TokenFetchResult): void {
    const isSuccess = result.kind === 'ok' || result.kind === 'found';
    this.#failedProofVersion = isSuccess ? undefined : proofVersion;
    this.#failedVersion = !isSuccess && result.kind !== 'rejected' && isLasting(result) ? version : undefined;
  }

  #isBackedOff({ version }: ClientCredential): boolean {
    return this.#rejected?.version === version && this.#options.clock.now() < this.#rejected.retryAt;
  }

  /** @returns whether they replace others */
  #adopt(credentials: ClientCredential): boolean {
    const { credential, observe } = this.#options;
    const isRotation = this.#accepted !== undefined && this.#accepted.version !== credentials.version;
    this.#accepted = credentials;
    this.#rejected = undefined;
    if (!isRotation) return false;
    observe({ kind: 'token-invalidated', credential, reason: 'rotated' });
    observe({ kind: 'credential-rotation', credential, outcome: 'taken' });
    return true;
  }

  #recordRejected({ version }: ClientCredential, detail: string): void {
    const { clock, credential, observe } = this.#options;
    const earlier = this.#rejected?.version === version ? this.#rejected : undefined;
    const retryDelayMs =
      earlier === undefined ? FIRST_RETRY_DELAY_MS : Math.min(earlier.retryDelayMs * 2, MAX_RETRY_DELAY_MS);
    const fault = earlier?.fault ?? { detail: `the new credentials were refused: ${detail}`, wallAt: clock.wallNow() };
    this.#rejected = { version, fault, retryDelayMs, retryAt: clock.now() + retryDelayMs, isFallbackWorking: true };
    observe({ kind: 'credential-rotation', credential, outcome: 'refused', detail });
  }

  #reportUnreadable(detail: string): void {
    const { clock, credential, observe } = this.#options;
    if (this.#accepted === undefined || this.#readFault?.detail === detail) return;
    this.#readFault = { detail, wallAt: clock.wallNow() };
    observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
  }

  /** For a rejection that the token source does not see. */
  #reportRequest({ kind, detail, from }: Extract<TokenRequestResult, { kind: 'rejected' }>, startedAt: number): void {
    if (from !== undefined) return;
    const { clock, credential, observe } = this.#options;
    observe({ kind: 'token-requested', credential, outcome: kind, durationMs: clock.now() - startedAt, detail });
  }
}
