/**
 * Keeps the newest token in a file, sealed, so that a restart while the token endpoint is down begins with one. Wraps the
 * supply of a token source. A file that cannot be used or written costs one warning and nothing else.
 */
import { rm, stat } from 'node:fs/promises';
import type { Clock } from '../../platform/clock.ts';
import { systemErrorCode, writeFileAtomically } from '../../platform/atomic-write.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { isUsable } from '../source/refresh-schedule.ts';
import { openToken, sealToken } from './sealed-token.ts';
import type { StoredToken, TokenBinding } from './sealed-token.ts';
import { readTextFile } from '../client/secret-file.ts';
import type { DeclinableFetchResult, TokenNeed, TokenFetcher } from '../source/token-fetcher.ts';

/** What a token is sealed with. */
export interface SealInputs {
  readonly binding: TokenBinding;
  /** The client secret or the private key. */
  readonly keyMaterial: string;
}

export interface TokenCacheOptions {
  readonly path: string;
  /** Undefined while the credentials cannot be read. Must not reject. */
  readonly readSealInputs: () => Promise<SealInputs | undefined>;
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly observe: EventObserver;
}

/** The longest token is 16 KiB. */
const MAX_FILE_BYTES = 64 * 1024;

/** As `supply`, beginning with what the file holds. */
export function withTokenCache(supply: TokenFetcher, options: TokenCacheOptions): TokenFetcher {
  const cache = new TokenCache(options);
  return { ...supply, fetch: (need, signal) => cache.fetch(need, () => supply.fetch(need, signal)) };
}

class TokenCache {
  readonly #options: TokenCacheOptions;
  #isFirst = true;
  #isWritable = true;
  /** Changes of the file, one after the other. */
  #pendingWrites: Promise<void> = Promise.resolve();

  constructor(options: TokenCacheOptions) {
    this.#options = options;
  }

  async fetch(need: TokenNeed, askFurther: () => Promise<DeclinableFetchResult>): Promise<DeclinableFetchResult> {
    const kept = this.#isFirst && need.reason === 'first' ? await this.#load() : undefined;
    this.#isFirst = false;
    if (kept !== undefined) return { kind: 'found', token: kept, from: 'auth.cacheFile' };
    // A restart must not begin with a token that the upstream refuses.
    if (need.reason === 'unauthorized') this.#queueWrite(() => rm(this.#options.path, { force: true }));
    const askedWallAt = this.#options.clock.wallNow();
    const fetched = await askFurther();
    const token = toStoredToken(fetched, askedWallAt);
    if (token !== undefined) this.#queueWrite(() => this.#save(token));
    return fetched;
  }

  async #load(): Promise<StoredToken | undefined> {
    const found = await this.#open();
    if (typeof found !== 'string') return found;
    this.#warn(found);
    return undefined;
  }

  /** The token, words when there is one that is no use, or undefined when there is none to speak of. */
  async #open(): Promise<StoredToken | string | undefined> {
    const { path, readSealInputs, clock } = this.#options;
    if (!(await exists(path))) return undefined;
    const reading = await readTextFile('auth.cacheFile', path, MAX_FILE_BYTES);
    if (reading.kind === 'unreadable') return `${reading.detail}: it is not used`;
    const seal = await readSealInputs();
    if (seal === undefined) return undefined;
    const token = openToken(reading.value.trimEnd(), seal.binding, seal.keyMaterial);
    if (token === undefined)
      return `auth.cacheFile: the file ${path} is damaged, or of other credentials or settings: it is not used`;
    if (token.obtainedWallAt > clock.wallNow())
      return `auth.cacheFile: the token in ${path} is from the future, since the clock was set back: it is not used`;
    const life = { obtainedAt: token.obtainedWallAt, expiresAt: token.expiresWallAt };
    return isUsable(life, clock.wallNow()) ? token : undefined;
  }

  async #save(token: StoredToken): Promise<void> {
    const seal = await this.#options.readSealInputs();
    if (seal === undefined) return;
    await writeFileAtomically(this.#options.path, `${sealToken(token, seal.binding, seal.keyMaterial)}\n`);
    this.#isWritable = true;
  }

  #queueWrite(change: () => Promise<void>): void {
    this.#pendingWrites = this.#pendingWrites.then(change).catch((error: unknown) => {
      if (this.#isWritable)
        this.#warn(
          `auth.cacheFile: ${this.#options.path} cannot be written (${systemErrorCode(error)}); tokens are not kept`,
        );
      this.#isWritable = false;
    });
  }

  #warn(message: string): void {
    this.#options.observe({ kind: 'warning', message });
  }
}

function toStoredToken(fetched: DeclinableFetchResult, askedWallAt: number): StoredToken | undefined {
  if (fetched.kind === 'found') return fetched.token;
  if (fetched.kind !== 'ok') return undefined;
  const { value, scope, lifetimeMs } = fetched;
  return { value, scope, obtainedWallAt: askedWallAt, expiresWallAt: askedWallAt + lifetimeMs };
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ENOENT';
  }
}
