/**
 * Builds the header fields that the sidecar adds to the calls of each route. Values in files are read at the start and polled, as client
 * secrets are; while a file cannot be used, its last good value stays in use. A value may be a secret: it is masked in kept texts.
 */
import { headerValueFault } from '../config/schema/formats/credentials.ts';
import type { Config, RouteConfig } from '../config/config.ts';
import type { Cancel, Clock } from '../platform/clock.ts';
import type { TokensInUse } from '../platform/tokens-in-use.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { POLL_INTERVAL_MS } from '../token/client/poll-files.ts';
import { readSecret, type SecretReadResult, type SecretSource } from '../token/client/secret-file.ts';
import type { CredentialFault } from '../token/token.ts';
import { OwnHeaders } from '../upstream/own-headers.ts';
import type { RedactValue } from './tokens.ts';

/** Shorter values are words such as `true`: masking them would garble other texts. */
const SHORTEST_MASKED = 8;
/** Their values are media types, languages and the like. */
const PUBLIC_NAMES = /^(?:accept|content)[-_]?/i;

/** Whether texts that are kept or shown must not contain the value of a fixed field. */
function isMaskedHeader(name: string, value: string): boolean {
  return value.length >= SHORTEST_MASKED && !PUBLIC_NAMES.test(name);
}

/** The value of a field of `upstream.headers`, fit for a header. Never rejects. */
async function readHeaderValue(name: string, source: SecretSource): Promise<SecretReadResult> {
  const key = `upstream.headers ${JSON.stringify(name)}`;
  const reading = await readSecret(key, source);
  if (source.kind === 'value' || reading.kind === 'unreadable') return reading;
  const fault = headerValueFault(reading.value);
  return fault === undefined ? reading : { kind: 'unreadable', detail: `${key}: the file ${source.path} ${fault}` };
}

export interface RouteHeadersOptions {
  readonly config: Pick<Config, 'routes' | 'listen'>;
  /** Called with each value, the first time and after a change. */
  readonly redactValue: RedactValue;
  readonly tokensInUse: TokensInUse;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

interface HeaderFile {
  /** Labels the events of the file. */
  readonly credential: string;
  /** The first field with the value of the file. */
  readonly name: string;
  readonly source: SecretSource;
  value: string;
  fault: CredentialFault | undefined;
}

/** @throws Error that names a file that cannot be used */
export async function readRouteHeaders(options: RouteHeadersOptions): Promise<RouteHeaders> {
  const headers = new RouteHeaders(options);
  await headers.read();
  return headers;
}

export class RouteHeaders {
  readonly #options: RouteHeadersOptions;
  /** By credential and path. */
  readonly #files = new Map<string, HeaderFile>();
  readonly #byRoute = new Map<string, OwnHeaders>();
  /** Undefined while the files are not polled. */
  #cancel: Cancel | undefined;

  constructor(options: RouteHeadersOptions) {
    this.#options = options;
  }

  /** Before the other methods. @throws Error that names a file that cannot be used */
  async read(): Promise<void> {
    const { routes, listen } = this.#options.config;
    for (const route of routes) {
      for (const [name, source] of Object.entries(route.upstream.headers)) await this.#add(route, name, source);
      const { tokenHeader, tokenPrefix } = route.upstream;
      const requiredHeader = listen.requiredHeader?.name;
      const own = new OwnHeaders({ tokenHeader, tokenPrefix, requiredHeader, fixed: this.#listFixed(route) });
      this.#byRoute.set(route.name, own);
    }
  }

  of(route: string): OwnHeaders {
    const own = this.#byRoute.get(route);
    if (own === undefined) throw new Error(`the header fields of the route ${route} have not been read`);
    return own;
  }

  /** Why the routes of a credential have an earlier value than that of a file. */
  fault(credential: string): CredentialFault | undefined {
    return [...this.#files.values()].find((file) => file.credential === credential && file.fault)?.fault;
  }

  /** Polls the files from now on. */
  watch(): void {
    if (this.#files.size > 0) this.#cancel = this.#options.clock.after(POLL_INTERVAL_MS, () => void this.#poll());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #add({ name: route, credential }: RouteConfig, name: string, source: SecretSource): Promise<void> {
    const key = createKey(credential, source);
    if (this.#files.has(key)) return;
    const reading = await readHeaderValue(name, source);
    if (reading.kind === 'unreadable') throw new Error(reading.detail);
    this.#mask(source.kind === 'file' ? key : `${route} ${name}`, name, reading.value);
    if (source.kind === 'file')
      this.#files.set(key, { credential, name, source, value: reading.value, fault: undefined });
  }

  #listFixed({ credential, upstream }: RouteConfig): string[] {
    return Object.entries(upstream.headers).flatMap(([name, source]) => {
      const value = source.kind === 'value' ? source.value : this.#files.get(createKey(credential, source))?.value;
      return [name, value ?? ''];
    });
  }

  async #poll(): Promise<void> {
    const changes = await Promise.all([...this.#files].map(([key, file]) => this.#readAgain(key, file)));
    // Stopped while the files were read.
    if (this.#cancel === undefined) return;
    if (changes.includes(true))
      for (const route of this.#options.config.routes) this.of(route.name).replaceFixed(this.#listFixed(route));
    this.watch();
  }

  /** Whether the value has changed. */
  async #readAgain(key: string, file: HeaderFile): Promise<boolean> {
    const { clock, observe } = this.#options;
    const { credential, name, source, value, fault } = file;
    const reading = await readHeaderValue(name, source);
    if (reading.kind === 'unreadable') {
      const { detail } = reading;
      file.fault = { detail, wallAt: fault?.wallAt ?? clock.wallNow() };
      if (fault === undefined) observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
      return false;
    }
    file.fault = undefined;
    if (reading.value === value) return false;
    this.#mask(key, name, reading.value, value);
    file.value = reading.value;
    observe({ kind: 'credential-rotation', credential, outcome: 'taken', detail: `upstream.headers ${name}` });
    return true;
  }

  #mask(label: string, name: string, value: string, replaced?: string): void {
    if (!isMaskedHeader(name, value)) return;
    this.#options.redactValue(value, undefined, replaced);
    this.#options.tokensInUse.add(`upstream.headers ${label}`, value);
  }
}

/** The empty text for a value that is in no file. */
function createKey(credential: string, source: SecretSource): string {
  return source.kind === 'file' ? JSON.stringify([credential, source.path]) : '';
}
