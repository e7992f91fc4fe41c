/**
 * What a partner's curl commands say about the token request and the API: settings of the sidecar, the client secret, what was ignored
 * and what is a placeholder (RFC 6749 §4.4.2, §2.3.1). Asks nothing and writes nothing. Pure.
 */
import { maskQuery } from '../../../platform/secret-redaction.ts';
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { parseJsonObject } from '../../../token/endpoint/json-object.ts';
import { isTokenPath, splitTokenUrl } from '../../../token/endpoint/token-url.ts';
import { extraHeaderNameFault, upstreamHeaderNameFault } from '../../../config/schema/formats/credentials.ts';
import { extraParameterNameFault } from '../../../config/schema/formats/credentials.ts';
import { TOKEN_SYNTAX } from '../../../token/endpoint/token-response.ts';
import type { InitSettingKey } from '../init-settings.ts';
import { findCurlArguments, readCurlArguments, type CurlData, type CurlRequest } from './curl-arguments.ts';
import {
  expandVariables,
  hasExpansion,
  hasPlaceholderPart,
  isPlaceholder,
  showExpansions,
  showPlaceholder,
} from './placeholders.ts';
import type { CommandWords } from './command-pieces.ts';

export interface UnderstoodCommand {
  /** Texts as in the environment. */
  readonly settings: ReadonlyMap<InitSettingKey, string>;
  /** The client secret, or the token of a call without a token request. Undefined: not in the command. */
  readonly secret: string | undefined;
  /** The token endpoint as it may be shown; undefined without a token request. */
  readonly tokenUrl: string | undefined;
  /** Sentences about what was left out or is sent in another way. Without values. */
  readonly ignored: readonly string[];
  /** Placeholders that stand for a value: `client secret: $CLIENT_SECRET`. */
  readonly placeholders: readonly string[];
}

export type CommandReading =
  | { readonly kind: 'command'; readonly command: UnderstoodCommand }
  /** `fault` follows "the pasted text" and quotes no value. */
  | { readonly kind: 'refused'; readonly fault: string };

export function readTokenCommand(commands: readonly CommandWords[]): CommandReading {
  const requests = listCurlRequests(commands).map((request) => ({ request, fields: listFields(request) }));
  if (requests.length === 0) return { kind: 'refused', fault: 'has no curl command' };
  const token = requests.find(({ request, fields }) => isTokenRequest(request, fields));
  const grant = token?.fields.find(({ name }) => name === 'grant_type')?.value ?? '';
  if (/^(?:authorization_code|refresh_token|.*:device_code)$/.test(grant))
    return { kind: 'refused', fault: `requests a token by the grant ${grant}, which needs a person` };
  if (grant.endsWith(':jwt-bearer') || token?.fields.some(({ name }) => name.startsWith('client_assertion')) === true)
    return {
      kind: 'refused',
      fault:
        'authenticates by a signed JWT (assertion), which init cannot write: write the file by hand as in docs/authorization-servers.md, with auth.method private_key_jwt or client_assertion, or auth.grantType urn:ietf:params:oauth:grant-type:jwt-bearer',
    };
  const derivation = new Derivation();
  if (token !== undefined) derivation.takeTokenRequest(token.request, token.fields);
  const call = requests.find(({ request }) => request !== token?.request && request.url !== undefined);
  if (call !== undefined) derivation.takeApiCall(call.request, token === undefined);
  if (token === undefined && call === undefined) return { kind: 'refused', fault: 'has a curl command without a URL' };
  return { kind: 'command', command: derivation };
}

/** Assignments before a command (`ID=abc`, `export ID=abc`) are values of later variables. */
function listCurlRequests(commands: readonly CommandWords[]): readonly CurlRequest[] {
  const values = new Map<string, string>();
  return commands.flatMap((command) => {
    const words = command.map((word) => expandVariables(word, values));
    const curl = findCurlArguments(words);
    if (curl !== undefined) return [readCurlArguments(curl)];
    for (const word of words) {
      const [, name, value = ''] = /^([A-Za-z_]\w*)=([^]*)$/.exec(word) ?? [];
      // What still has a variable in it stays a placeholder by its own name.
      if (name !== undefined && !hasExpansion(value)) values.set(name, value);
    }
    return [];
  });
}

interface FormField {
  readonly name: string;
  readonly value: string;
  /** Whether it is another JSON value than a text. Default: false. */
  readonly isOtherJson?: boolean;
}

/** The fields of the body, and those of the query that belong to a token request. */
function listFields(request: CurlRequest): readonly FormField[] {
  const text = request.data.map((data) => (data.kind === 'raw' ? data.text : '')).join('&');
  const inBody = parseJsonFields(text) ?? request.data.flatMap(parseFormFields);
  const query = /\?([^#]*)/.exec(request.url ?? '')?.[1] ?? '';
  return [...inBody, ...request.query.flatMap(parseFormFields), ...parseForm(query).filter(isTokenField)];
}

function parseFormFields(data: CurlData): readonly FormField[] {
  return data.kind === 'field' ? [{ name: data.name, value: data.value }] : parseForm(data.text);
}

function parseForm(text: string): readonly FormField[] {
  // A body over several lines has line ends that no field means.
  const lines = text.split('\n');
  const joined = lines.length === 1 ? text : lines.map((line) => line.trim()).join('');
  return [...new URLSearchParams(joined)].map(([name, value]) => ({ name, value }));
}

function parseJsonFields(text: string): readonly FormField[] | undefined {
  const fields = parseJsonObject(text);
  return (
    fields &&
    Object.entries(fields).flatMap(([name, value]) =>
      [value].flat().map((entry: unknown) => ({
        name,
        value: typeof entry === 'string' ? entry : JSON.stringify(entry),
        isOtherJson: typeof value !== 'string',
      })),
    )
  );
}

const TOKEN_FIELDS: ReadonlySet<string> = new Set(
  'grant_type client_id client_secret scope audience resource client_assertion client_assertion_type'.split(' '),
);

function isTokenField({ name }: FormField): boolean {
  return TOKEN_FIELDS.has(name);
}

function isTokenRequest(request: CurlRequest, fields: readonly FormField[]): boolean {
  const isNamed = fields.some(({ name }) => /^(?:grant|client)[_-]?(?:type|id|secret)$/i.test(name));
  const isBasic = request.headers.some(([name, value]) => isAuthorization(name) && /^basic\b/i.test(value));
  const hasTokenBody = fields.length > 0 && isTokenPath(parseUrl(request.url ?? '')?.pathname ?? '');
  return (
    isNamed || hasTokenBody || isBasic || request.user !== undefined || /^[a-z]+:\/\/[^/?#]*@/i.test(request.url ?? '')
  );
}

function isAuthorization(name: string): boolean {
  return name.toLowerCase() === 'authorization';
}

interface ClientPair {
  readonly id: string | undefined;
  readonly secret: string | undefined;
}

class Derivation implements UnderstoodCommand {
  readonly settings = new Map<InitSettingKey, string>();
  readonly ignored: string[] = [];
  readonly placeholders: string[] = [];
  secret: string | undefined;
  tokenUrl: string | undefined;

  takeTokenRequest(request: CurlRequest, fields: readonly FormField[]): void {
    this.#takeUrl(request.url);
    this.#takeGrantFields(request, fields);
    this.#takeClient(request, fields);
    this.#takeExtraParameters(fields);
    this.#takeHeaders('auth.extraHeaders', request.headers, extraHeaderNameFault);
    this.#noteMethod(request);
    this.ignored.push(...request.ignored);
  }

  /**
   * Of the URL only the origin: how much of the path belongs to every call is not known, and none is always right.
   * @param isAlone there is no token request: what authenticates the call is a token that something else renews
   */
  takeApiCall({ url, headers }: CurlRequest, isAlone: boolean): void {
    const parsed = parseUrl(url ?? '');
    if (parsed !== undefined && !hasPlaceholderPart(parsed.host)) this.settings.set('upstream.baseUrl', parsed.origin);
    const carrier =
      headers.find(([name]) => isAuthorization(name)) ??
      headers.find(([name, value]) => KEY_HEADER.test(name) && (isAlone || isPlaceholder(value)));
    if (carrier !== undefined) this.#takeCarrier(carrier, isAlone);
    const fixed = headers.filter((header) => header !== carrier);
    this.#takeHeaders('upstream.headers', fixed, (name) =>
      PER_CALL_HEADER.test(name) ? 'differs in each call' : upstreamHeaderNameFault(name),
    );
  }

  #takeCarrier([name, value]: CurlRequest['headers'][number], isAlone: boolean): void {
    const prefix = isAuthorization(name) ? (/^[a-z][\w-]* +(?=\S)/i.exec(value)?.[0] ?? '') : '';
    if (!isAuthorization(name)) this.settings.set('upstream.tokenHeader', name);
    if (prefix.toLowerCase() !== 'bearer ') this.settings.set('upstream.tokenPrefix', prefix);
    if (!isAlone) return;
    this.settings.set('auth.method', 'static');
    const token = value.slice(prefix.length);
    if (!this.#isValue('token', token)) return;
    if (TOKEN_SYNTAX.test(token)) this.secret = token;
    else this.placeholders.push('token: has characters that a token may not have');
  }

  #takeUrl(text: string | undefined): void {
    if (text === undefined) return;
    const url = parseUrl(text);
    if (url === undefined || hasPlaceholderPart(showExpansions(text)) || hasExpansion(text)) {
      this.placeholders.push(`token URL: ${showPlaceholder(text)}`);
      return;
    }
    for (const name of [...url.searchParams.keys()]) if (TOKEN_FIELDS.has(name)) this.#moveFromQuery(url, name);
    const parts = splitTokenUrl(url);
    this.tokenUrl = maskQuery(url);
    this.settings.set('auth.url', parts?.authUrl ?? url.origin);
    if (parts !== undefined) this.settings.set('auth.tokenPath', parts.tokenPath);
  }

  #moveFromQuery(url: URL, name: string): void {
    // Deleted as text: URLSearchParams would encode the rest anew.
    const kept = url.search
      .slice(1)
      .split('&')
      .filter((part) => new URLSearchParams(part).keys().next().value !== name);
    url.search = kept.join('&');
    this.ignored.push(`${name} in the URL: the sidecar sends it in the body, and no credential in a URL`);
  }

  #takeClient(request: CurlRequest, fields: readonly FormField[]): void {
    // A header field replaces -u, and without a value it removes what -u would send.
    const header = request.headers.findLast(([name]) => isAuthorization(name))?.[1];
    const user = request.user ?? userOf(request.url);
    const basic = header === undefined ? splitUser(user) : readBasicHeader(header);
    const inForm: ClientPair = { id: lastValue(fields, 'client_id'), secret: lastValue(fields, 'client_secret') };
    const isInForm = inForm.id !== undefined || inForm.secret !== undefined;
    const hasOtherProof = (header ?? '') !== '' || fields.some((field) => !isTokenField(field));
    const isPublic = inForm.id === undefined || this.settings.has('auth.grantType');
    if (basic !== undefined) this.#takeBasic(basic, inForm);
    else if (inForm.secret === undefined && hasOtherProof && isPublic) this.settings.set('auth.method', 'none');
    else this.#takePair(isInForm ? 'client_secret_post' : 'client_secret_basic', inForm);
  }

  #takeBasic(pair: ClientPair, inForm: ClientPair): void {
    if (inForm.id !== undefined)
      this.ignored.push('client_id in the form: the client is named by Basic authentication already');
    if (inForm.secret !== undefined)
      this.ignored.push('client_secret in the form: the secret is sent by Basic authentication already');
    this.#takePair('client_secret_basic', pair);
  }

  #takePair(method: 'client_secret_basic' | 'client_secret_post', { id, secret }: ClientPair): void {
    this.settings.set('auth.method', method);
    if (id !== undefined && this.#isValue('client id', id)) this.settings.set('auth.clientId', id);
    if (secret !== undefined && this.#isValue('client secret', secret)) this.secret = secret;
    if (id === undefined) this.placeholders.push('client id');
    if (secret === undefined) this.placeholders.push('client secret');
  }

  #takeGrantFields({ data, headers }: CurlRequest, fields: readonly FormField[]): void {
    const grant = lastValue(fields, 'grant_type') ?? '';
    // A request without any field is not shown whole.
    if (fields.length > 0 && grant !== 'client_credentials' && !isPlaceholder(grant))
      this.settings.set('auth.grantType', grant);
    const contentType = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
    const [first] = data;
    if (/\bjson\b/i.test(contentType) || (first?.kind === 'raw' && /^\s*\{/.test(first.text)))
      this.settings.set('auth.bodyFormat', 'json');
    for (const name of ['audience', 'resource'] as const) {
      const values = [...new Set(listValues(fields, name))].filter(
        (value) => value !== '' && this.#isValue(name, value, hasPlaceholderPart),
      );
      const [first] = values;
      if (first === undefined) continue;
      // A text that begins like a JSON array would be read as one.
      const isPlain = values.length === 1 && !first.trimStart().startsWith('[');
      this.settings.set(`auth.${name}`, isPlain ? first : JSON.stringify(values));
    }
    const scopes = listValues(fields, 'scope').flatMap((value) => value.split(/\s+/));
    const scope = [...new Set(scopes)].filter((name) => name !== '').join(' ');
    if (scope !== '' && this.#isValue('scope', scope, hasPlaceholderPart)) this.settings.set('auth.scope', scope);
  }

  #takeExtraParameters(fields: readonly FormField[]): void {
    // A client without authentication is named by a field like others.
    const isPublic = this.settings.get('auth.method') === 'none';
    const extra = fields.filter((field) =>
      field.name === 'client_id' ? isPublic : !isTokenField(field) && field.name !== '',
    );
    const known = extra.filter(({ name }) => extraParameterNameFault(name) === undefined);
    if (known.length < extra.length) this.ignored.push('a form field whose name auth.extraParameters does not accept');
    for (const { name } of known.filter(({ isOtherJson }) => isOtherJson))
      this.ignored.push(`the type of ${name} in JSON: the sidecar sends one text`);
    const usable = known.filter(({ name, value }) => value !== '' && this.#isValue(`form field ${name}`, value));
    if (usable.length > 0)
      this.settings.set('auth.extraParameters', JSON.stringify(Object.fromEntries(usable.map(toEntry))));
  }

  #takeHeaders(
    key: 'auth.extraHeaders' | 'upstream.headers',
    headers: CurlRequest['headers'],
    nameFault: typeof extraHeaderNameFault,
  ): void {
    const extra = headers.filter(([name, value]) => {
      const lower = name.toLowerCase();
      if (lower === 'authorization' && /^(?:basic\b|$)/i.test(value)) return false;
      if (DEFAULT_HEADERS.has(lower)) return false;
      if (lower !== 'cookie' && nameFault(name) === undefined) return this.#isValue(`header ${name}`, value);
      this.ignored.push(`the header field ${/^[\w-]{1,60}$/.test(name) ? name : 'of another name'}`);
      return false;
    });
    if (extra.length > 0) this.settings.set(key, JSON.stringify(Object.fromEntries(extra)));
  }

  #noteMethod({ method, data, isDataInQuery }: CurlRequest): void {
    const isGet = isDataInQuery || (data.length === 0 && method === undefined);
    if (isGet || (method !== undefined && method.toUpperCase() !== 'POST'))
      this.ignored.push('the method: the sidecar sends POST (RFC 6749 section 4.4.2)');
  }

  /** False, with a note, for a placeholder. */
  #isValue(what: string, value: string, isNone: (value: string) => boolean = isPlaceholder): boolean {
    if (!isNone(value)) return true;
    this.placeholders.push(`${what}: ${showPlaceholder(value)}`);
    return false;
  }
}

const KEY_HEADER = /(?<!idempotency-|[cx]srf-)(?:key|token)$/i;
const PER_CALL_HEADER = /idempotency|request-?id|correlation|trace|csrf|xsrf|^if-|^range$|^origin$|^referer$/i;

/** Fields that the sidecar sends itself, or that change nothing. */
const DEFAULT_HEADERS: ReadonlySet<string> = new Set(
  'accept accept-encoding cache-control content-type content-length host connection user-agent'.split(' '),
);

function toEntry({ name, value }: FormField): [string, string] {
  return [name, value];
}

function listValues(fields: readonly FormField[], name: string): readonly string[] {
  return fields.filter((field) => field.name === name).map(({ value }) => value);
}

function lastValue(fields: readonly FormField[], name: string): string | undefined {
  return noneIfEmpty(listValues(fields, name).at(-1));
}

/** `id:secret` as curl splits it: at the first colon. */
function splitUser(user: string | undefined): ClientPair | undefined {
  if (user === undefined) return undefined;
  const [, id = user, secret] = /^([^:]*):([^]*)$/.exec(user) ?? [];
  return { id: noneIfEmpty(id), secret: noneIfEmpty(secret) };
}

function noneIfEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function readBasicHeader(value: string): ClientPair | undefined {
  return /^basic\b/i.test(value) ? decodeBasic(value.replace(/^basic\s*/i, '')) : undefined;
}

/** Neither is known when it is no base64 of a pair in UTF-8. */
function decodeBasic(text: string): ClientPair {
  const unknown = { id: undefined, secret: undefined };
  if (!/^[\w+/-]+={0,2}$/.test(text)) return unknown;
  try {
    const bytes = Buffer.from(text, 'base64');
    const pair = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return pair.includes(':') ? (splitUser(pair) ?? unknown) : unknown;
  } catch {
    return unknown;
  }
}

/** The user information of a URL, decoded as curl does; undefined without one. */
function userOf(text: string | undefined): string | undefined {
  const url = parseUrl(text ?? '');
  if (url === undefined || url.username === '') return undefined;
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  const id = decode(url.username);
  return url.password === '' ? id : `${id}:${decode(url.password)}`;
}

/** A URL without a scheme is taken for https:, since no credential is sent in the clear. */
function parseUrl(text: string): URL | undefined {
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `${schemeFor(text)}//${text}`;
  const url = URL.parse(whole);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

function schemeFor(text: string): string {
  const [host = ''] = text.split(/[/:?#]/, 1);
  return isLoopbackHost(host) ? 'http:' : 'https:';
}
