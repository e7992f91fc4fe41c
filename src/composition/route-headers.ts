/**
 * The header fields and query parameters that the sidecar adds to the calls of each route. Values in files are polled, as client secrets are; while a file
 * cannot be used, its last good value stays in use. A value may be a secret: it is masked in kept texts.
 */
import type { Config } from '../config/config.ts';
import { headerValueFault, queryValueFault } from '../config/schema/formats/credentials.ts';
import type { Cancel } from '../platform/clock.ts';
import { memoizeLast } from '../platform/memoize.ts';
import { Secrets } from '../platform/secrets.ts';
import { pollFiles, readSecret, type SecretSource } from '../token/client/secret-file.ts';
import type { CredentialFault } from '../token/token.ts';
import { createAddedQuery } from '../upstream/added-query.ts';
import { createRequestHeaderFilter, type AddedHeaders } from '../upstream/headers.ts';
import type { SidecarContext } from './context.ts';

/** A key: letters, digits, and too long to be chosen by a person. */
const RANDOM_VALUE = /^(?=.*\d)(?=.*[a-z]).{16,}$/i;
/** Their values are media types, languages and the like. */
const PUBLIC_NAMES = /^(?:accept|content)(?:[-_]|$)/i;

const VALUE_FAULTS = { headers: headerValueFault, query: queryValueFault } as const;
type Section = keyof typeof VALUE_FAULTS;

/** A value of the configuration: routes that share it have one fault. */
interface AddedValue {
  readonly source: SecretSource;
  /** The first field or parameter that has it labels the events. */
  readonly credential: string;
  readonly section: Section;
  readonly name: string;
  /** The last good one. */
  text?: string;
  fault?: CredentialFault | undefined;
}

type RouteHeadersOptions = Omit<SidecarContext, 'random'> & { readonly config: Config };

export class RouteHeaders {
  readonly #options: RouteHeadersOptions;
  /** By section and source. */
  readonly #values = new Map<string, AddedValue>();
  /** The keys among the parameters: a server may state one in another parameter, or one that a file had before. */
  readonly #queryKeys: Secrets;
  /** Filled by `read`. */
  readonly byRoute = new Map<string, AddedHeaders>();
  #cancel: Cancel | undefined;

  constructor(options: RouteHeadersOptions) {
    this.#options = options;
    this.#queryKeys = new Secrets(options.clock);
    for (const { credential, upstream } of options.config.routes)
      for (const section of ['headers', 'query'] as const)
        for (const [name, source] of Object.entries(upstream[section])) {
          const key = createValueKey(section, source);
          if (!this.#values.has(key)) this.#values.set(key, { source, credential, section, name });
        }
  }

  /** Reads all values; before the other methods. @throws Error that names a file without a good value so far */
  async read(): Promise<this> {
    const { routes, listen } = this.#options.config;
    for (const [key, value] of this.#values) await this.#readValue(key, value);
    for (const { name: route, upstream } of routes) {
      const { tokenHeader, tokenPrefix, hasTokenField, headers } = upstream;
      const fixed = this.#listTexts('headers', headers).flat();
      const parameters = this.#listTexts('query', upstream.query);
      const list = memoizeLast((token: string) =>
        hasTokenField ? [tokenHeader, tokenPrefix + token, ...fixed] : fixed,
      );
      const ownNames = [tokenHeader, ...Object.keys(headers)].concat(listen.requiredHeader?.name ?? []);
      const own = this.byRoute.get(route) ?? { filter: createRequestHeaderFilter(ownNames) };
      const query = parameters.length === 0 ? undefined : createAddedQuery(parameters, this.#queryKeys.mask);
      this.byRoute.set(route, Object.assign(own, { list, query }));
    }
    return this;
  }

  #listTexts(section: Section, sources: Readonly<Record<string, SecretSource>>): (readonly [string, string])[] {
    const textOf = (source: SecretSource): string => this.#values.get(createValueKey(section, source))?.text ?? '';
    return Object.entries(sources).map(([name, source]) => [name, textOf(source)]);
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

  async #readValue(key: string, value: AddedValue): Promise<void> {
    const { secrets, clock, observe } = this.#options;
    const { source, credential, section, name, text: known } = value;
    const setting = `upstream.${section} ${name}`;
    const reading = await readSecret(setting, source, VALUE_FAULTS[section]);
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
    const isKey = RANDOM_VALUE.test(value.text);
    if (section === 'query' && isKey) this.#queryKeys.add(value.text, key);
    if (section === 'query' || !PUBLIC_NAMES.test(name)) {
      // A server may echo a part of it; words, as in a tenant's name, are no part of a secret.
      if (isKey) secrets.addToken(value.text, key);
      else secrets.add(value.text, key);
    }
    if (known !== undefined) observe({ kind: 'credential-rotation', credential, outcome: 'taken', detail: setting });
  }
}

function createValueKey(section: Section, source: SecretSource): string {
  return `${section} ${JSON.stringify(source)}`;
}
