/**
 * Keeps the newest token in a file, sealed, so that a restart during an outage of the token endpoint begins with a token.
 * Wraps a token fetcher. A file that cannot be read or written causes one warning; what could not be written is tried again.
 */
import { rm, stat } from 'node:fs/promises';
import { writeFileAtomically } from '../../platform/atomic-write.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
import { readTextFile } from '../client/secret-file.ts';
import { isUsable } from '../source/refresh-schedule.ts';
import type { DeclinableFetchResult, TokenNeed, TokenFetcher, TokenPartOptions } from '../source/token-fetcher.ts';
import { openToken, sealToken, type StoredToken, type TokenIdentity } from './sealed-token.ts';

export interface TokenCacheOptions extends Pick<TokenPartOptions, 'clock' | 'observe'> {
  readonly path: string;
  /** Undefined while the credentials cannot be read. Must not reject. */
  readonly readIdentity: () => Promise<TokenIdentity | undefined>;
}

/** The longest token is 16 KiB. */
const MAX_FILE_BYTES = 64 * 1024;
/** A disk that is full now may have space later, long before the next token. */
const RETRY_AFTER_MS = 30_000;

/** The first fetch returns the token in the file, if that is still usable. */
export class CachedTokenFetcher implements TokenFetcher {
  readonly #fetcher: TokenFetcher;
  readonly #options: TokenCacheOptions;
  #isFirst = true;
  #isWritable = true;
  /** The only one that is tried again. */
  #newestChange: (() => Promise<void>) | undefined;
  #pendingWrites: Promise<void> = Promise.resolve();

  constructor(fetcher: TokenFetcher, options: TokenCacheOptions) {
    this.#fetcher = fetcher;
    this.#options = options;
  }

  async fetch(need: TokenNeed, signal: AbortSignal): Promise<DeclinableFetchResult> {
    const stored = this.#isFirst && need.reason === 'first' ? await this.#open() : undefined;
    this.#isFirst = false;
    if (typeof stored === 'string') this.#warn(stored);
    else if (stored !== undefined) return { kind: 'found', token: stored, from: 'auth.cacheFile' };
    // A restart must not begin with a token that the upstream rejects.
    if (need.reason === 'unauthorized') this.#queueWrite(() => rm(this.#options.path, { force: true }));
    const startedWallAt = this.#options.clock.wallNow();
    const fetched = await this.#fetcher.fetch(need, signal);
    const token = toStoredToken(fetched, startedWallAt);
    if (token !== undefined) this.#queueWrite(() => this.#save(token));
    return fetched;
  }

  /** The token, a warning if the file is unusable, or undefined without a file and after the token's expiry. */
  async #open(): Promise<StoredToken | string | undefined> {
    const { path, readIdentity, clock } = this.#options;
    if (!(await exists(path))) return undefined;
    const reading = await readTextFile('auth.cacheFile', path, MAX_FILE_BYTES);
    if (reading.kind === 'unreadable') return `${reading.detail}: it is not used`;
    const identity = await readIdentity();
    if (identity === undefined) return undefined;
    const token = openToken(reading.value.trimEnd(), identity, 'bst3');
    if (token === undefined)
      return `auth.cacheFile: the file ${path} is damaged, or of other credentials or settings: it is not used`;
    if (token.obtainedWallAt > clock.wallNow())
      return `auth.cacheFile: the token in ${path} is from the future, since the clock was set back: it is not used`;
    const lifetime = { obtainedAt: token.obtainedWallAt, expiresAt: token.expiresWallAt };
    return isUsable(lifetime, clock.wallNow()) ? token : undefined;
  }

  async #save(token: StoredToken): Promise<void> {
    const identity = await this.#options.readIdentity();
    if (identity === undefined) return;
    await writeFileAtomically(this.#options.path, `${sealToken(token, identity, 'bst3')}\n`);
    this.#isWritable = true;
  }

  #queueWrite(change: () => Promise<void>): void {
    this.#newestChange = change;
    this.#pendingWrites = this.#pendingWrites.then(change).catch((error: unknown) => {
      if (this.#isWritable)
        this.#warn(
          `auth.cacheFile: ${this.#options.path} cannot be written (${systemErrorCode(error)}); it is tried again`,
        );
      this.#isWritable = false;
      this.#options.clock.after(RETRY_AFTER_MS, () => {
        if (this.#newestChange === change) this.#queueWrite(change);
      });
    });
  }

  #warn(message: string): void {
    this.#options.observe({ kind: 'warning', message });
  }
}

function toStoredToken(fetched: DeclinableFetchResult, startedWallAt: number): StoredToken | undefined {
  if (fetched.kind === 'found') return fetched.token;
  if (fetched.kind !== 'ok') return undefined;
  const { value, scope, lifetimeMs } = fetched;
  return { value, scope, obtainedWallAt: startedWallAt, expiresWallAt: startedWallAt + lifetimeMs };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ENOENT';
  }
}
