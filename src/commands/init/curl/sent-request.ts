/** What a curl command sends: its URL, the fields of its query and body, and the client in HTTP Basic (RFC 7617). Pure. */
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { decodePercent } from '../../../platform/secret-redaction.ts';
import { parseJsonObject } from '../../../token/endpoint/json-object.ts';
import type { CurlRequest } from './curl-arguments.ts';
import { isPlaceholder } from './placeholders.ts';

export interface Field {
  readonly name: string;
  readonly value: string;
  /** Whether it is another JSON value than a text, or than several texts. Default: false. */
  readonly isOtherJson?: boolean;
}

export interface Client {
  readonly id: string | undefined;
  readonly secret: string | undefined;
  /** What follows `Basic `; undefined when it is not known. */
  readonly token?: string | undefined;
}

/** A curl command, read further; `headers` has no `Authorization`. */
export interface SentRequest extends CurlRequest {
  readonly method: string;
  readonly query: readonly Field[];
  readonly body: readonly Field[];
  readonly bodyFormat: 'form' | 'json';
  /** The client that `-u`, an `Authorization` field or the URL names; undefined without one. */
  readonly basic: Client | undefined;
  /** The scheme of another `Authorization` field with its blank, and what follows; undefined without one. */
  readonly authorization: readonly [prefix: string, token: string] | undefined;
}

export function describeSentRequest(curl: CurlRequest): SentRequest {
  const { url, data, givenMethod, defaultMethod } = curl;
  const isPost = data.length > 0 || curl.bodyFault !== undefined;
  const method = givenMethod ?? defaultMethod ?? (isPost ? 'POST' : 'GET');
  const text = data.map((piece) => (piece.kind === 'raw' ? piece.text : '')).join('&');
  const json = parseJsonFields(text);
  const isJson = json !== undefined || /^\s*[{[]/.test(text);
  const isUnreadable = isJson && json === undefined;
  return {
    ...curl,
    ...readAuthorization(curl),
    method: /^[a-z]{1,9}$/i.test(method) ? method.toUpperCase() : 'another method',
    headers: curl.headers.filter(([name]) => !isAuthorization(name)),
    query: parseForm(/\?([^#]*)/.exec(url ?? '')?.[1] ?? ''),
    body:
      json ??
      data.flatMap((piece) =>
        piece.kind === 'raw' ? parseForm(piece.text) : { name: piece.name, value: piece.value },
      ),
    bodyFormat: isJson ? 'json' : 'form',
    bodyFault: curl.bodyFault ?? (isUnreadable ? 'requests a token by JSON that cannot be read' : undefined),
  };
}

/** A header field replaces -u, and without a value it removes what -u would send. */
function readAuthorization({ headers, user, url }: CurlRequest): Pick<SentRequest, 'basic' | 'authorization'> {
  const header = headers.findLast(([name]) => isAuthorization(name))?.[1];
  if (header === undefined) return { basic: splitUser(user ?? userOf(url)), authorization: undefined };
  if (/^basic\b/i.test(header)) return { basic: decodeBasic(header.slice(5).trim()), authorization: undefined };
  const prefix = /^[a-z][\w-]* +(?=\S)/i.exec(header)?.[0] ?? '';
  return { basic: undefined, authorization: header === '' ? undefined : [prefix, header.slice(prefix.length)] };
}

/** A URL without a scheme is taken for https:, since no credential is sent in the clear. */
export function parseUrl(text: string): URL | undefined {
  const [host = ''] = text.split(/[/:?#]/, 1);
  const scheme = isLoopbackHost(host) ? 'http:' : 'https:';
  const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `${scheme}//${text}`);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

function parseForm(text: string): readonly Field[] {
  // A body over several lines has line ends that no field means.
  const lines = text.split('\n');
  const joined = lines.length === 1 ? text : lines.map((line) => line.trim()).join('');
  return [...new URLSearchParams(joined)].map(([name, value]) => ({ name, value }));
}

/** Several texts of one name are several fields. */
function parseJsonFields(text: string): readonly Field[] | undefined {
  const members = parseJsonObject(text);
  if (members === undefined) return undefined;
  return Object.entries(members).flatMap(([name, value]): readonly Field[] => {
    const texts: readonly unknown[] = Array.isArray(value) && value.length > 1 ? value : [value];
    const isText = texts.every((one) => typeof one === 'string');
    return isText ? texts.map((one) => ({ name, value: one })) : [{ name, value: '', isOtherJson: true }];
  });
}

function isAuthorization(name: string): boolean {
  return name.toLowerCase() === 'authorization';
}

/** `id:secret` as curl splits it: at the first colon. */
export function splitUser(user: string | undefined): Client | undefined {
  if (user === undefined) return undefined;
  const [, id = user, secret] = /^([^:]*):([^]*)$/.exec(user) ?? [];
  const isKnown = secret !== undefined && ![id, secret].some(isPlaceholder);
  const token = isKnown ? Buffer.from(user).toString('base64') : undefined;
  return { id: noneIfEmpty(id), secret: noneIfEmpty(secret), token };
}

export function noneIfEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** Neither is known when it is no base64 of a pair in UTF-8. */
function decodeBasic(text: string): Client {
  const pair = /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64').toString() : '';
  const isPair = pair.includes(':') && !pair.includes('\uFFFD');
  return (isPair ? splitUser(pair) : undefined) ?? { id: undefined, secret: undefined };
}

/** The user information of a URL, decoded as curl does; undefined without one. */
function userOf(text: string | undefined): string | undefined {
  const { username = '', password = '' } = parseUrl(text ?? '') ?? {};
  return username === '' ? undefined : decodePercent(password === '' ? username : `${username}:${password}`);
}
