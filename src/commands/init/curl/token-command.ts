/**
 * What a partner's curl commands say about the token request and the API: settings of the sidecar, the client secret, what was ignored
 * and what is a placeholder (RFC 6749 §4.4.2, §2.3.1). Asks nothing and writes nothing. Pure.
 */
import { maskQuery } from '../../../platform/secret-redaction.ts';
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { splitTokenUrl } from '../../../token/endpoint/token-url.ts';
import { extraHeaderNameFault } from '../../../config/schema/formats/credentials.ts';
import { extraParameterNameFault } from '../../../config/schema/formats/credentials.ts';
import type { InitSettingKey } from '../init-settings.ts';
import { findCurlArguments, readCurlArguments } from './curl-arguments.ts';
import type { CurlData, CurlRequest } from './curl-arguments.ts';
import { expandVariables, hasExpansion, showExpansions } from './expansion.ts';
import type { CommandWords } from './word-scanner.ts';

/** What was understood. */
export interface UnderstoodCommand {
  /** Texts as in the environment. */
  readonly settings: ReadonlyMap<InitSettingKey, string>;
  /** Undefined: not in the command. */
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

/** @param commands as split from the pasted text */
export function readTokenCommand(commands: readonly CommandWords[]): CommandReading {
  const requests = listCurlRequests(commands).map((request) => ({ request, fields: listFields(request) }));
  if (requests.length === 0) return { kind: 'refused', fault: 'has no curl command' };
  const token = requests.find(({ request, fields }) => isTokenRequest(request, fields));
  const grant = token?.fields.find(({ name }) => name === 'grant_type')?.value;
  if (grant !== undefined && grant !== 'client_credentials' && !isPlaceholder(grant))
    return {
      kind: 'refused',
      fault: `requests a token by the grant ${/^[\w:.-]{1,60}$/.test(grant) ? grant : 'of another kind'}; expected client_credentials, the only one that the sidecar sends`,
    };
  if (token?.fields.some(({ name }) => name.startsWith('client_assertion')) === true)
    return {
      kind: 'refused',
      fault:
        'authenticates by a client assertion; set auth.method to private_key_jwt or client_assertion in the file (config/reference.md)',
    };
  const derivation = new Derivation();
  if (token !== undefined) derivation.takeTokenRequest(token.request, token.fields);
  const call = requests.find(({ request }) => request !== token?.request && request.url !== undefined);
  if (call !== undefined) derivation.takeApiCall(call.request);
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
      const [, name, value = ''] = /^(?:\$(?:env:)?)?([A-Za-z_]\w*)=([^]*)$/.exec(word) ?? [];
      // What still has a variable in it stays a placeholder by its own name.
      if (name !== undefined && !hasExpansion(value)) values.set(name, value);
    }
    return [];
  });
}

interface FormField {
  readonly name: string;
  readonly value: string;
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

/** Undefined when the body is no JSON object of texts. */
function parseJsonFields(text: string): readonly FormField[] | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    const parsed = JSON.parse(text) as Record<string, unknown>;
    return Object.entries(parsed).flatMap(([name, value]) =>
      [value].flat().map((entry) => ({ name, value: typeof entry === 'string' ? entry : JSON.stringify(entry) })),
    );
  } catch {
    // Its message quotes the text.
    return undefined;
  }
}

const TOKEN_FIELDS: ReadonlySet<string> = new Set(
  'grant_type client_id client_secret scope audience resource client_assertion client_assertion_type'.split(' '),
);

function isTokenField({ name }: FormField): boolean {
  return TOKEN_FIELDS.has(name);
}

function isTokenRequest(request: CurlRequest, fields: readonly FormField[]): boolean {
  const isNamed = fields.some(({ name }) => name === 'grant_type' || name === 'client_id' || name === 'client_secret');
  const isBasic = request.headers.some(([name, value]) => isAuthorization(name) && /^basic\b/i.test(value));
  return isNamed || isBasic || request.user !== undefined || /^[a-z]+:\/\/[^/?#]*@/i.test(request.url ?? '');
}

function isAuthorization(name: string): boolean {
  return name.toLowerCase() === 'authorization';
}

const PLACEHOLDER_FORMS: readonly RegExp[] = [
  /^<[a-z][\w .:/()-]+>$/i,
  /^\{\{?\s*[a-z][\w .-]+\}?\}$/i,
  /^\[[a-z][\w .-]+\]$/i,
  /^%[a-z_]\w+%$/i,
  /^\$\{?\w*(?:id|client|secret|password|key|audience|scope|url|user)\w*\}?$/i,
  /^(?:your|my|the|insert|enter)[ _-](?:[a-z\d]+[ _-])*(?:id|secret|key|password|audience|scope|user(?:name)?)(?:[ _-]here)?$/i,
  /^(?:client|app|application|consumer)[ _-]?(?:id|secret|key)$/i,
  /^(?:x{4,}|\*{3,}|\.{3,}|…)$/i,
];

/** Whether a value of a document stands for another one. */
function isPlaceholder(value: string): boolean {
  return (
    hasExpansion(value) || (value.length <= MAX_PLACEHOLDER_CHARS && PLACEHOLDER_FORMS.some((form) => form.test(value)))
  );
}

const MAX_PLACEHOLDER_CHARS = 100;

/** In a URL, or in a text that names one, a part alone may be a placeholder. */
function hasPlaceholderPart(text: string): boolean {
  return isPlaceholder(text) || /<[a-z][\w .-]+>|\{[a-z][\w.-]+\}|%7B[a-z][\w.-]+%7D/i.test(text);
}

interface ClientPair {
  readonly id: string | undefined;
  readonly secret: string | undefined;
}

/** Collects what one token request and one call of the API say. */
class Derivation implements UnderstoodCommand {
  readonly settings = new Map<InitSettingKey, string>();
  readonly ignored: string[] = [];
  readonly placeholders: string[] = [];
  secret: string | undefined;
  tokenUrl: string | undefined;

  takeTokenRequest(request: CurlRequest, fields: readonly FormField[]): void {
    this.#takeUrl(request.url);
    this.#takeClient(request, fields);
    this.#takeGrantFields(fields);
    this.#takeExtraParameters(fields);
    this.#takeExtraHeaders(request.headers);
    this.#noteDifferences(request);
    this.ignored.push(...request.ignored);
  }

  /** Only the origin: how much of the path belongs to every call is not known, and none is always right. */
  takeApiCall({ url }: CurlRequest): void {
    const parsed = parseUrl(url ?? '');
    if (parsed === undefined || hasPlaceholderPart(parsed.host)) return;
    this.settings.set('upstream.baseUrl', parsed.origin);
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
    this.ignored.push(`${name} in the URL: the sidecar sends it in the form, and no credential in a URL`);
  }

  #takeClient(request: CurlRequest, fields: readonly FormField[]): void {
    // A header field replaces -u, and without a value it removes what -u would send.
    const header = request.headers.findLast(([name]) => isAuthorization(name))?.[1];
    const user = request.user ?? userOf(request.url);
    const basic = header === undefined ? splitUser(user) : readBasicHeader(header);
    const inForm: ClientPair = { id: lastValue(fields, 'client_id'), secret: lastValue(fields, 'client_secret') };
    const isPost = basic === undefined && (inForm.id !== undefined || inForm.secret !== undefined);
    if (basic !== undefined && inForm.id !== undefined)
      this.ignored.push('client_id in the form: the client is named by Basic authentication already');
    if (basic !== undefined && inForm.secret !== undefined)
      this.ignored.push('client_secret in the form: the secret is sent by Basic authentication already');
    const { id, secret } = basic ?? inForm;
    this.settings.set('auth.method', isPost ? 'client_secret_post' : 'client_secret_basic');
    if (id !== undefined && this.#isValue('client id', id)) this.settings.set('auth.clientId', id);
    if (secret !== undefined && this.#isValue('client secret', secret)) this.secret = secret;
    if (id === undefined) this.placeholders.push('client id');
    if (secret === undefined) this.placeholders.push('client secret');
  }

  #takeGrantFields(fields: readonly FormField[]): void {
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
    const extra = fields.filter((field) => !isTokenField(field) && field.name !== '');
    const known = extra.filter(({ name }) => extraParameterNameFault(name) === undefined);
    if (known.length < extra.length) this.ignored.push('a form field whose name auth.extraParameters does not accept');
    const usable = known.filter(({ name, value }) => value !== '' && this.#isValue(`form field ${name}`, value));
    if (usable.length > 0)
      this.settings.set('auth.extraParameters', JSON.stringify(Object.fromEntries(usable.map(toEntry))));
  }

  #takeExtraHeaders(headers: CurlRequest['headers']): void {
    const extra = headers.filter(([name, value]) => {
      const lower = name.toLowerCase();
      if (lower === 'authorization' && /^(?:basic\b|$)/i.test(value)) return false;
      if (DEFAULT_HEADERS.has(lower)) return false;
      if (lower !== 'cookie' && extraHeaderNameFault(name) === undefined) return this.#isValue(`header ${name}`, value);
      this.ignored.push(`the header field ${/^[\w-]{1,60}$/.test(name) ? name : 'of another name'}`);
      return false;
    });
    if (extra.length > 0) this.settings.set('auth.extraHeaders', JSON.stringify(Object.fromEntries(extra)));
  }

  #noteDifferences({ method, data, headers, isDataInQuery }: CurlRequest): void {
    const isGet = isDataInQuery || (data.length === 0 && method === undefined);
    if (isGet || (method !== undefined && method.toUpperCase() !== 'POST'))
      this.ignored.push('the method: the sidecar sends POST with a form (RFC 6749 section 4.4.2)');
    const contentType = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? '';
    const [first] = data;
    const isJson = /\bjson\b/i.test(contentType) || (first?.kind === 'raw' && /^\s*\{/.test(first.text));
    if (isJson) this.ignored.push('JSON: the sidecar sends the same fields as a form (RFC 6749 section 4.4.2)');
  }

  /** False, with a note, for a placeholder. */
  #isValue(what: string, value: string, isNone: (value: string) => boolean = isPlaceholder): boolean {
    if (!isNone(value)) return true;
    this.placeholders.push(`${what}: ${showPlaceholder(value)}`);
    return false;
  }
}

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

/** Undefined for another scheme. */
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

/** A placeholder as it stands in the document. What looks like a variable may be a part of a secret, and is shown only by a usual name. */
function showPlaceholder(text: string): string {
  const shown = showExpansions(text);
  if (PLACEHOLDER_FORMS.some((form) => form.test(shown.slice(0, MAX_PLACEHOLDER_CHARS)))) return shown;
  if (hasExpansion(text)) return 'has a variable or a command in it';
  return /<[^<>]{1,60}>|\{+[^{}]{1,60}\}+/.exec(text)?.[0] ?? 'not readable';
}
