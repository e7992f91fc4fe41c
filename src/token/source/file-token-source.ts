/**
 * A token source without token requests: another program writes the token into a file and renews it. The file is read every 2 s, and
 * at each 401; a changed token is used at once. A good token stays in use while its file is missing or not valid.
 */
import { abortable, sleep, type Cancel } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import { POLL_INTERVAL_MS, pollFiles, readSecret, type SecretReadResult } from '../client/secret-file.ts';
import { TOKEN_SYNTAX } from '../endpoint/token-response.ts';
import type { CredentialFault, Token, TokenSource, TokenState, TokenUse } from '../token.ts';
import type { TokenPartOptions } from './token-fetcher.ts';
import { createShutdownError } from './token-refresher.ts';
import type { TokenSourceOptions } from './token-source.ts';

export interface FileTokenSourceOptions
  extends Omit<TokenPartOptions, 'random'>, Pick<TokenSourceOptions, 'onToken' | 'headerFault'> {
  readonly path: string;
  /** What calls put before the token. Default: Bearer alone. */
  readonly tokenPrefixes?: readonly string[];
}

/** A file that is truncated and then written is empty for a moment: a new fault is looked at again before it counts. */
const READS_OF_NEW_FAULT = 5;
const READ_PAUSE_MS = 50;

/** One path may always respond 401: the token is suspect when no other call is accepted for this long. */
const SUSPECT_AFTER_MS = 10_000;

export class FileTokenSource implements TokenSource {
  readonly #options: FileTokenSourceOptions;
  readonly #stop = new AbortController();
  #tokenUse: TokenUse | undefined;
  /** The first rejection since the token was accepted last. */
  #rejectedAt: number | undefined;
  #fault: CredentialFault | undefined;
  #reading: Promise<void> | undefined;
  /** Begins when `#reading` has ended. */
  #nextReading: Promise<void> | undefined;
  #cancelPoll: Cancel | undefined;

  constructor(options: FileTokenSourceOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#stop.signal.aborted) return;
    this.requestIfMissing();
    this.#cancelPoll ??= pollFiles(this.#options.clock, () => this.#read());
  }

  requestIfMissing(): void {
    if (this.#isUnread) void this.#read();
  }

  stop(): void {
    this.#stop.abort(createShutdownError());
    this.#cancelPoll?.();
  }

  current(): TokenUse | undefined {
    return this.#tokenUse;
  }

  async waitForToken(signal: AbortSignal): Promise<Token> {
    if (this.#isUnread) await abortable(this.#reading ?? this.#read(), AbortSignal.any([signal, this.#stop.signal]));
    if (this.#tokenUse !== undefined) return this.#tokenUse.token;
    const detail = `No access token: ${this.#fault?.detail ?? 'the file was not read'}`;
    throw new SidecarError('TOKEN_UNAVAILABLE', detail, { retryAfterMs: POLL_INTERVAL_MS });
  }

  recordAccepted({ token }: TokenUse): void {
    if (token === this.#tokenUse?.token) this.#rejectedAt = undefined;
  }

  recordRejected({ token }: TokenUse): void {
    if (token !== this.#tokenUse?.token) return;
    this.#rejectedAt ??= this.#options.clock.now();
    void this.#read();
  }

  async waitForReplacement({ token }: TokenUse, signal: AbortSignal): Promise<boolean> {
    const reading = this.#nextReading ?? this.#reading;
    if (token === this.#tokenUse?.token && reading !== undefined) await abortable(reading, signal);
    return token !== this.#tokenUse?.token;
  }

  state(): TokenState {
    const { credential, path } = this.#options;
    const isHeld = this.#tokenUse !== undefined;
    const fault = this.#fault;
    return {
      credential,
      file: path,
      status: isHeld ? (this.#isSuspect ? 'suspect' : 'valid') : 'none',
      usesPrevious: false,
      serial: this.#tokenUse?.token.serial ?? 0,
      scope: undefined,
      expiresWallAt: undefined,
      validForMs: undefined,
      missingScopes: [],
      consecutiveFailures: isHeld || fault === undefined ? 0 : 1,
      lastFailure: isHeld ? undefined : fault && { outcome: 'unavailable', ...fault },
      circuit: 'closed',
      credentialFault: (isHeld ? fault : undefined) ?? this.#options.headerFault?.(this.#options.credential),
      nextRequestInMs: undefined,
      hasHadToken: isHeld,
    };
  }

  get #isUnread(): boolean {
    return this.#tokenUse === undefined && this.#fault === undefined;
  }

  get #isSuspect(): boolean {
    return this.#rejectedAt !== undefined && this.#options.clock.now() - this.#rejectedAt >= SUSPECT_AFTER_MS;
  }

  /** One read at a time. Callers share the next one, since one in flight may have begun before the file changed. */
  #read(): Promise<void> {
    if (this.#reading === undefined)
      return (this.#reading = this.#readFile().finally(() => {
        this.#reading = undefined;
      }));
    return (this.#nextReading ??= this.#reading.then(() => {
      this.#nextReading = undefined;
      return this.#read();
    }));
  }

  async #readFile(): Promise<void> {
    const { path, tokenPrefixes, clock } = this.#options;
    const startedAt = clock.now();
    let reading = await readTokenFile(path, tokenPrefixes);
    for (let reads = 1; reading.kind === 'unreadable' && this.#fault === undefined; reads++) {
      if (reads === READS_OF_NEW_FAULT || this.#stop.signal.aborted) break;
      await sleep(clock, READ_PAUSE_MS, this.#stop.signal);
      reading = await readTokenFile(path, tokenPrefixes);
    }
    if (!this.#stop.signal.aborted) this.#apply(reading, clock.now() - startedAt);
  }

  #apply(reading: SecretReadResult, durationMs: number): void {
    if (reading.kind === 'unreadable') {
      this.#recordFault(reading.detail, durationMs);
      return;
    }
    const { credential, path: file, onToken, clock, observe } = this.#options;
    const held = this.#tokenUse?.token;
    this.#fault = undefined;
    if (reading.value === held?.value) return;
    onToken?.(reading.value);
    const [takenAt, endless] = [clock.now(), { expiresAt: Infinity, expiresWallAt: Infinity }];
    const serial = (held?.serial ?? 0) + 1;
    const token = { value: reading.value, serial, scope: undefined, obtainedAt: takenAt, ...endless };
    this.#tokenUse = { token, takenAt };
    this.#rejectedAt = undefined;
    observe({ kind: 'token-requested', credential, file, outcome: 'ok', durationMs });
  }

  #recordFault(detail: string, durationMs: number): void {
    if (this.#fault?.detail === detail) return;
    const { credential, path: file, clock, observe } = this.#options;
    this.#fault = { detail, wallAt: clock.wallNow() };
    if (this.#tokenUse === undefined)
      observe({ kind: 'token-requested', credential, file, outcome: 'unavailable', durationMs, detail });
    else observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
  }
}

/** As the longest access token of a token endpoint. */
const LARGEST_TOKEN_BYTES = 16 * 1024;

/** A field value (RFC 9110 §5.5) without the bytes above ASCII, which servers read in different ways. */
const FIELD_VALUE = /^[!-~](?:[\t -~]*[!-~])?$/;

/**
 * The token, without one trailing line end. Never rejects; a fault names the setting and the path, never the contents.
 * @param tokenPrefixes what calls put before the token: without Bearer among them it may be any field value, such as a list
 */
export function readTokenFile(path: string, tokenPrefixes: readonly string[] = ['Bearer ']): Promise<SecretReadResult> {
  const isBearer = tokenPrefixes.some((prefix) => prefix.trim().toLowerCase() === 'bearer');
  return readSecret('auth.tokenFile', { kind: 'file', path }, (token) => {
    if (token.length > LARGEST_TOKEN_BYTES) return `is larger than ${String(LARGEST_TOKEN_BYTES)} bytes`;
    if ((isBearer ? TOKEN_SYNTAX : FIELD_VALUE).test(token)) return undefined;
    return isBearer
      ? 'holds characters that a token may not have, such as a blank, a comma or a second line'
      : 'holds what no header field can carry, such as a blank at an end, a second line or a character that is not ASCII';
  });
}
