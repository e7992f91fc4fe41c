/**
 * The header fields that the sidecar adds to the calls of each route. Values in files are polled, as client secrets are; while a file
 * cannot be used, its last good value stays in use. A value may be a secret: it is masked in kept texts.
 */
import type { Config } from '../config/config.ts';
import { headerValueFault } from '../config/schema/formats/credentials.ts';
import type { Cancel } from '../platform/clock.ts';
import { memoizeLast } from '../platform/memoize.ts';
import { pollFiles, readSecret, type SecretSource } from '../token/client/secret-file.ts';
import type { CredentialFault } from '../token/token.ts';
import { createRequestHeaderFilter, type AddedHeaders } from '../upstream/headers.ts';
import type { SidecarContext } from './context.ts';

/** A key: letters, digits, and too long to be chosen by a person. */
const RANDOM_VALUE = /^(?=.*\d)(?=.*[a-z]).{16,}$/i;
/** Their values are media types, languages and the like. */
const PUBLIC_NAMES = /^(?:accept|content)(?:[-_]|$)/i;

/** A value of the configuration: routes that share it have one fault. */
interface HeaderValue {
  readonly source: SecretSource;
  /** The first field that has it labels the events. */
  readonly credential: string;
  readonly name: string;
  /** The last good one. */
  text?: string;
  fault?: CredentialFault | undefined;
}

type RouteHeadersOptions = Omit<SidecarContext, 'random'> & { readonly config: Config };

export class RouteHeaders {
  readonly #options: RouteHeadersOptions;
  /** By source. */
  readonly #values = new Map<string, HeaderValue>();
  /** Filled by `read`. */
  readonly byRoute = new Map<string, AddedHeaders>();
  #cancel: Cancel | undefined;

  constructor(options: RouteHeadersOptions) {
    this.#options = options;
    for (const { credential, upstream } of options.config.routes)
      for (const [name, source] of Object.entries(upstream.headers)) {
        const key = JSON.stringify(source);
        if (!this.#values.has(key)) this.#values.set(key, { source, credential, name });
      }
  }

  /** Reads all values; before the other methods. @throws Error that names a file without a good value so far */
  async read(): Promise<this> {
    const { routes, listen } = this.#options.config;
    for (const [key, value] of this.#values) await this.#readValue(key, value);
    for (const { name: route, upstream } of routes) {
      const { tokenHeader, tokenPrefix, headers } = upstream;
      const textOf = (source: SecretSource): string => this.#values.get(JSON.stringify(source))?.text ?? '';
      const fixed = Object.entries(headers).flatMap(([name, source]) => [name, textOf(source)]);
      const list = memoizeLast((token: string) => [tokenHeader, tokenPrefix + token, ...fixed]);
      const ownNames = [tokenHeader, ...Object.keys(headers)].concat(listen.requiredHeader?.name ?? []);
      const own = this.byRoute.get(route) ?? { filter: createRequestHeaderFilter(ownNames) };
      this.byRoute.set(route, Object.assign(own, { list }));
    }
    return this;
  }

  /** Why the calls of a credential have an earlier value than that of a file. */
  readonly fault = (credential: string): CredentialFault | undefined =>
    [...this.#values.values()].find((value) => value.credential === credential && value.fault)?.fault;

  /** Polls the files from now on. */
  watch(): void {
    const isInFile = [...this.#values.values()].some(({ source }) => source.kind === 'file');
    if (isInFile) this.#cancel = pollFiles(this.#options.clock, () => this.read());
  }

  stop(): void {
    this.#cancel?.();
  }

  async #readValue(key: string, value: HeaderValue): Promise<void> {
    const { secrets, clock, observe } = this.#options;
    const { source, credential, name, text: known } = value;
    const setting = `upstream.headers ${name}`;
    const reading = await readSecret(setting, source, headerValueFault);
    if (reading.kind === 'unreadable') {
      const { detail } = reading;
      if (known === undefined) throw new Error(detail);
      if (value.fault === undefined)
        observe({ kind: 'credential-rotation', credential, outcome: 'unreadable', detail });
      value.fault ??= { detail, wallAt: clock.wallNow() };
      return;
    }
    value.fault = undefined;
    value.text = reading.value;
    if (value.text === known) return;
    if (!PUBLIC_NAMES.test(name)) {
      // A server may echo a part of it; words, as in a tenant's name, are no part of a secret.
      if (RANDOM_VALUE.test(value.text)) secrets.addToken(value.text, key);
      else secrets.add(value.text, key);
    }
    if (known !== undefined) observe({ kind: 'credential-rotation', credential, outcome: 'taken', detail: setting });
  }
}
