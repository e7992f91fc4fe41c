/**
 * Keeps the refresh token of a server that replaces it at each use (RFC 6749 §6): the next token request sends the newest one. It belongs to
 * the configured one, which is also the key that seals it, so that a change of the configuration ends it and a change of the client's
 * secret does not. token-cache.ts writes it to a file before the new access token is used.
 */
import type { ClientCredential } from '../client/client-authentication.ts';
import type { TokenRequestResult } from '../endpoint/token-response.ts';
import { readTextFile } from '../client/secret-file.ts';
import { openList, sealText } from './sealed-token.ts';
import { MAX_STORED_CHARS } from './shared-token-store.ts';

export interface RefreshTokensOptions {
  /** Sends one token request. Never rejects, and ends by itself. */
  readonly send: (credential: ClientCredential) => Promise<TokenRequestResult>;
  /** Called with each one before it is kept, to mask it. */
  readonly onReceived: (value: string) => void;
  /** Why no file can keep it; undefined while one can. */
  readonly lossCause: string | undefined;
  readonly warn: (message: string) => void;
}

interface KeptRefreshToken {
  readonly configured: string;
  readonly newest: string;
}

/** A cache file has two lines of at most 64 KiB. */
export const MAX_FILE_BYTES = 2 * MAX_STORED_CHARS + 2;

/** The parameter of the token request, the member of the response, and the grant type. */
export const REFRESH_TOKEN = 'refresh_token';

/** Whether a cache file keeps a newer one than the configured one, which is used up then. */
export async function isRefreshTokenReplaced(path: string | undefined, configured = ''): Promise<boolean> {
  const reading = path === undefined ? undefined : await readTextFile('auth.cacheFile', path, MAX_FILE_BYTES);
  return reading?.kind === 'read' && open(reading.value.split('\n')[1], configured) !== undefined;
}

function open(sealed = '', configured: string): string | undefined {
  const [newest] = openList(sealed, { binding: {}, keyMaterial: configured }, 'bsr1') ?? [];
  return typeof newest === 'string' ? newest : undefined;
}

export class RefreshTokens {
  readonly #options: RefreshTokensOptions;
  #kept: KeptRefreshToken | undefined;
  /** From a file; the configured one that opens it is known when a request is sent. */
  sealed: string | undefined;
  #isRetried = false;
  #hasWarned = false;
  /** Settles when no request is in flight whose response may have another one, and what came is written. */
  whenKept: Promise<unknown> = Promise.resolve();
  /** False while the file has an older one. */
  isWritten = true;
  /** Writes the file, and is awaited before a new access token is used. */
  save: () => Promise<void> = () => Promise.resolve();

  constructor(options: RefreshTokensOptions) {
    this.#options = options;
  }

  /** Why the next process cannot request a token, and what to do; undefined when it can. */
  get fault(): string | undefined {
    const cause = this.#options.lossCause ?? (this.isWritten ? undefined : 'auth.cacheFile cannot be written');
    if (this.#kept === undefined || cause === undefined) return undefined;
    return `the authorization server replaces the refresh token at each use, and ${cause}: after a restart the configured one is refused; use one replica with auth.cacheFile (SIDECAR_AUTH_CACHE_FILE) on a disk that stays, or the grant client_credentials`;
  }

  /** One line of printable ASCII; undefined without one. */
  seal(): string | undefined {
    if (this.#kept === undefined) return this.sealed;
    const { configured, newest } = this.#kept;
    return sealText(JSON.stringify([newest]), { binding: {}, keyMaterial: configured }, 'bsr1');
  }

  /** One after the other and each to its end: the response that nothing waits for may hold the only one that is still good. */
  request(credential: ClientCredential): Promise<TokenRequestResult> {
    const result = this.whenKept.then(() => this.#request(credential));
    this.whenKept = result;
    return result;
  }

  async #request(credential: ClientCredential): Promise<TokenRequestResult> {
    const configured = credential.extraParameters[REFRESH_TOKEN];
    if (configured === undefined) return this.#options.send(credential);
    const sent = this.#open(configured);
    const result = await this.#sendWith(sent, configured, credential);
    const isRefused = result.kind === 'rejected' && result.error === 'invalid_grant';
    if (!isRefused || sent === configured || this.#isRetried) return result;
    // Once: a server that was set up anew, or restored, may accept it again.
    this.#isRetried = true;
    const retried = await this.#sendWith(configured, configured, credential);
    return retried.kind === 'ok' ? retried : result;
  }

  #open(configured: string): string {
    const opened = open(this.sealed, configured);
    this.sealed = undefined;
    if (opened !== undefined) this.#keep({ configured, newest: opened });
    return this.#kept?.configured === configured ? this.#kept.newest : configured;
  }

  async #sendWith(sent: string, configured: string, credential: ClientCredential): Promise<TokenRequestResult> {
    const { refreshToken, ...result } = await this.#options.send({
      ...credential,
      extraParameters: { ...credential.extraParameters, [REFRESH_TOKEN]: sent },
      sentSecrets: [...credential.sentSecrets, sent],
    });
    if (refreshToken === undefined || refreshToken === sent) return result;
    this.#keep({ configured, newest: refreshToken });
    this.#isRetried = false;
    await this.save();
    if (this.fault !== undefined && !this.#hasWarned) this.#options.warn(this.fault);
    this.#hasWarned ||= this.fault !== undefined;
    return result;
  }

  #keep(kept: KeptRefreshToken): void {
    this.#options.onReceived(kept.newest);
    this.#kept = kept;
  }
}
