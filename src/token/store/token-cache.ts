/**
 * Keeps the newest token in a file, sealed, so that a restart while the token endpoint is down begins with one. Wraps the
 * supply of a token source. A file that cannot be used or written costs one warning and nothing else.
 */
import { rm, stat } from 'node:fs/promises';
import type { Clock } from '../../platform/clock.ts';
import { codeOf, replaceFile } from '../../platform/replace-file.ts';
import type { Observe } from '../../telemetry/events.ts';
import { isUsable } from '../source/refresh-schedule.ts';
import { openToken, sealToken } from './sealed-token.ts';
import type { KeptToken, TokenBinding } from './sealed-token.ts';
import { readTextFile } from '../client/secret-file.ts';
import type { Fetched, TokenNeed, TokenSupply } from '../source/supply.ts';

/** What a token is sealed with. */
export interface Seal {
  readonly binding: TokenBinding;
  /** The client secret or the private key. */
  readonly keyMaterial: string;
}

export interface TokenCacheOptions {
  readonly path: string;
  /** Undefined while the credentials cannot be read. Must not reject. */
  readonly readSeal: () => Promise<Seal | undefined>;
  readonly clock: Pick<Clock, 'wallNow'>;
  readonly observe: Observe;
}

/** The longest token is 16 KiB. */
const LARGEST_FILE_BYTES = 64 * 1024;

/** As `supply`, beginning with what the file holds. */
export function cacheTokens(supply: TokenSupply, options: TokenCacheOptions): TokenSupply {
  const cache = new TokenCache(options);
  return { ...supply, fetch: (need, signal) => cache.fetch(need, () => supply.fetch(need, signal)) };
}

class TokenCache {
  readonly #options: TokenCacheOptions;
  #isFirst = true;
  #isWritable = true;
  /** Changes of the file, one after the other. */
  #changes: Promise<void> = Promise.resolve();

  constructor(options: TokenCacheOptions) {
    this.#options = options;
  }

  async fetch(need: TokenNeed, askFurther: () => Promise<Fetched>): Promise<Fetched> {
    const kept = this.#isFirst && need.reason === 'first' ? await this.#load() : undefined;
    this.#isFirst = false;
    if (kept !== undefined) return { kind: 'found', token: kept, from: 'auth.cacheFile' };
    // A restart must not begin with a token that the upstream refuses.
    if (need.reason === 'unauthorized') this.#change(() => rm(this.#options.path, { force: true }));
    const askedWallAt = this.#options.clock.wallNow();
    const fetched = await askFurther();
    const token = describeKept(fetched, askedWallAt);
    if (token !== undefined) this.#change(() => this.#save(token));
    return fetched;
  }

  async #load(): Promise<KeptToken | undefined> {
    const found = await this.#open();
    if (typeof found !== 'string') return found;
    this.#warn(found);
    return undefined;
  }

  /** The token, words when there is one that is no use, or undefined when there is none to speak of. */
  async #open(): Promise<KeptToken | string | undefined> {
    const { path, readSeal, clock } = this.#options;
    if (!(await exists(path))) return undefined;
    const reading = await readTextFile('auth.cacheFile', path, LARGEST_FILE_BYTES);
    if (reading.kind === 'unreadable') return `${reading.detail}: it is not used`;
    const seal = await readSeal();
    if (seal === undefined) return undefined;
    const token = openToken(reading.value.trimEnd(), seal.binding, seal.keyMaterial);
    if (token === undefined)
      return `auth.cacheFile: the file ${path} is damaged, or of other credentials or settings: it is not used`;
    if (token.obtainedWallAt > clock.wallNow())
      return `auth.cacheFile: the token in ${path} is from the future, since the clock was set back: it is not used`;
    const life = { obtainedAt: token.obtainedWallAt, expiresAt: token.expiresWallAt };
    return isUsable(life, clock.wallNow()) ? token : undefined;
  }

  async #save(token: KeptToken): Promise<void> {
    const seal = await this.#options.readSeal();
    if (seal === undefined) return;
    await replaceFile(this.#options.path, `${sealToken(token, seal.binding, seal.keyMaterial)}\n`);
    this.#isWritable = true;
  }

  #change(change: () => Promise<void>): void {
    this.#changes = this.#changes.then(change).catch((error: unknown) => {
      if (this.#isWritable)
        this.#warn(`auth.cacheFile: ${this.#options.path} cannot be written (${codeOf(error)}); tokens are not kept`);
      this.#isWritable = false;
    });
  }

  #warn(message: string): void {
    this.#options.observe({ kind: 'warning', message });
  }
}

function describeKept(fetched: Fetched, askedWallAt: number): KeptToken | undefined {
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
    return codeOf(error) !== 'ENOENT';
  }
}
