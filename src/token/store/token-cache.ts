/**
 * Keeps the newest token in a file, sealed, so that a restart during an outage of the token endpoint begins with a token.
 * Wraps a token fetcher. A file that cannot be read or written causes one warning; what could not be written is tried again.
 */
import { rm, stat } from 'node:fs/promises';
import { writeFileAtomically } from '../../platform/atomic-write.ts';
import { systemErrorCode } from '../../platform/file-errors.ts';
import { waitAtMost, type Cancel } from '../../platform/clock.ts';
import { readTextFile } from '../client/secret-file.ts';
import { isUsable } from '../source/refresh-schedule.ts';
import type { DeclinableFetchResult, TokenNeed, TokenFetcher, TokenPartOptions } from '../source/token-fetcher.ts';
import { MAX_FILE_BYTES, type RefreshTokens } from './refresh-tokens.ts';
import { openToken, sealToken, type StoredToken, type TokenIdentity } from './sealed-token.ts';

export interface TokenCacheOptions extends Pick<TokenPartOptions, 'clock' | 'observe'> {
  readonly path: string;
  /** Undefined while the credentials cannot be read. Must not reject. */
  readonly readIdentity: () => Promise<TokenIdentity | undefined>;
  /** Kept too, in a line of its own. Undefined: the grant uses none. */
  readonly refreshTokens?: RefreshTokens | undefined;
}

/** How long a new token waits for the write of the refresh token that came with it: a disk may hang. */
const MAX_WRITE_MS = 2_000;
/** A disk that is full now may have space later, long before the next token. */
const RETRY_AFTER_MS = 30_000;

/** The first fetch returns the token in the file, if that is still usable. */
export class CachedTokenFetcher implements TokenFetcher {
  readonly #fetcher: TokenFetcher;
  readonly #options: TokenCacheOptions;
  #isFirst = true;
  #isWritable = true;
  /** What the file is to hold, if anything. */
  #token: StoredToken | undefined;
  #pendingWrites: Promise<void> = Promise.resolve();
  #cancelRetry: Cancel | undefined;

  constructor(fetcher: TokenFetcher, options: TokenCacheOptions) {
    this.#fetcher = fetcher;
    this.#options = options;
    if (options.refreshTokens !== undefined) options.refreshTokens.save = () => this.#saveInTime(this.#token);
  }

  async fetch(need: TokenNeed, signal: AbortSignal): Promise<DeclinableFetchResult> {
    const stored = this.#isFirst && need.reason === 'first' ? await this.#open() : undefined;
    this.#isFirst = false;
    if (typeof stored === 'string') this.#warn(stored);
    else if (stored !== undefined) return { kind: 'found', token: stored, from: 'auth.cacheFile' };
    // A restart must not begin with a token that the upstream rejects.
    if (need.reason === 'unauthorized') void this.#save(undefined);
    const startedWallAt = this.#options.clock.wallNow();
    const fetched = await this.#fetcher.fetch(need, signal);
    const token = toStoredToken(fetched, startedWallAt);
    if (token !== undefined) {
      const saved = this.#saveInTime(token);
      if (this.#options.refreshTokens !== undefined) await saved;
    }
    return fetched;
  }

  /** The token, a warning if the file is unusable, or undefined without a file and after the token's expiry. */
  async #open(): Promise<StoredToken | string | undefined> {
    const { path, readIdentity, refreshTokens, clock } = this.#options;
    if (!(await exists(path))) return undefined;
    const reading = await readTextFile('auth.cacheFile', path, MAX_FILE_BYTES);
    if (reading.kind === 'unreadable') return `${reading.detail}: it is not used`;
    const [sealed = '', refreshToken] = reading.value.split('\n');
    if (refreshToken && refreshTokens) refreshTokens.sealed = refreshToken;
    const identity = await readIdentity();
    if (identity === undefined || (sealed === '' && refreshToken)) return undefined;
    const token = openToken(sealed.trimEnd(), identity, 'bst3');
    if (token === undefined)
      return `auth.cacheFile: the file ${path} is damaged, or of other credentials or settings: it is not used`;
    if (token.obtainedWallAt > clock.wallNow())
      return `auth.cacheFile: the token in ${path} is from the future, since the clock was set back: it is not used`;
    const lifetime = { obtainedAt: token.obtainedWallAt, expiresAt: token.expiresWallAt };
    return isUsable(lifetime, clock.wallNow()) ? token : undefined;
  }

  #saveInTime(token: StoredToken | undefined): Promise<void> {
    return waitAtMost(this.#save(token), this.#options.clock, MAX_WRITE_MS);
  }

  #save(token: StoredToken | undefined): Promise<void> {
    this.#token = token;
    this.#cancelRetry?.();
    return (this.#pendingWrites = this.#pendingWrites.then(() => this.#write()));
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const { path, clock, refreshTokens } = this.#options;
    try {
      await this.#replaceFile();
      this.#isWritable = true;
    } catch (error) {
      if (this.#isWritable)
        this.#warn(`auth.cacheFile: ${path} cannot be written (${systemErrorCode(error)}); it is tried again`);
      this.#isWritable = false;
      this.#cancelRetry = clock.after(RETRY_AFTER_MS, () => void this.#save(this.#token));
    }
    if (refreshTokens !== undefined) refreshTokens.isWritten = this.#isWritable;
  }

  async #replaceFile(): Promise<void> {
    const { path, readIdentity, refreshTokens } = this.#options;
    const refreshToken = refreshTokens?.seal();
    if (this.#token === undefined && refreshToken === undefined) return rm(path, { force: true });
    const identity = this.#token && (await readIdentity());
    const sealed = this.#token && identity ? sealToken(this.#token, identity, 'bst3') : '';
    const lines = [sealed, refreshToken ?? []].flat();
    if (lines.some((line) => line !== '')) await writeFileAtomically(path, `${lines.join('\n')}\n`);
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
