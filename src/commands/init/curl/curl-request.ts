/**
 * What one curl command sends, by its arguments as curl reads them (curl.1): URL, method, client, header fields, body and client
 * certificate. Files are not read, and an option that is not known is ignored.
 */
import { parseArgs } from 'node:util';
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { decodePercent } from '../../../platform/secret-redaction.ts';
import { parseJsonObject } from '../../../token/endpoint/json-object.ts';
import { isPlaceholder } from './placeholders.ts';
import type { CommandWords } from './shell-words.ts';

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

export type CurlRequest = ReturnType<typeof readCurlRequest>;

interface GivenOption {
  /** The long name; `url` also for a word that is no option. */
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
}

/** The options of curl 8 that take a value, with their letters. */
const VALUE_OPTIONS: ReadonlyMap<string, string | undefined> = new Map(
  (
    'abstract-unix-socket alt-svc aws-sigv4 cacert capath cert:E cert-type ciphers config:K connect-timeout connect-to continue-at:C ' +
    'cookie:b cookie-jar:c create-file-mode crlfile curves data:d data-ascii data-binary data-raw data-urlencode delegation ' +
    'dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url dump-header:D ech egd-file engine etag-compare etag-save ' +
    'expect100-timeout form:F form-string ftp-account ftp-alternative-to-user ftp-method ftp-port:P ftp-ssl-ccc-mode ' +
    'happy-eyeballs-timeout-ms haproxy-clientip header:H help:h hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway json ' +
    'keepalive-cnt keepalive-time key key-type krb libcurl limit-rate local-port login-options mail-auth mail-from mail-rcpt ' +
    'max-filesize max-redirs max-time:m netrc-file noproxy oauth2-bearer output:o output-dir parallel-max pass pinnedpubkey preproxy ' +
    'proto proto-default proto-redir proxy:x proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile ' +
    'proxy-header proxy-key proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype ' +
    'proxy-tlspassword proxy-tlsuser proxy-user:U proxy1.0 pubkey quote:Q random-file range:r rate referer:e request:X request-target ' +
    'resolve retry retry-delay retry-max-time sasl-authzid service-name sigalgs socks4 socks4a socks5 socks5-gssapi-service ' +
    'socks5-hostname speed-limit:Y speed-time:y stderr telnet-option:t tftp-blksize time-cond:z tls-max tls13-ciphers tlsauthtype ' +
    'tlspassword tlsuser trace trace-ascii trace-config unix-socket upload-file:T url url-query user:u user-agent:A variable ' +
    'vlan-priority write-out:w'
  )
    .split(' ')
    .map((option) => [option.split(':')[0] ?? '', option.split(':')[1]] as const),
);

/** More than any command has; parseArgs would take seconds for hundreds of thousands. */
const MAX_WORDS = 10_000;

const OPTIONS = {
  get: { type: 'boolean', short: 'G' },
  head: { type: 'boolean', short: 'I' },
  ...Object.fromEntries(
    Array.from(VALUE_OPTIONS, ([name, short]) => [name, { type: 'string', ...(short !== undefined && { short }) }]),
  ),
} as const;

const READ_OPTION = /^(?:url|request|user|cert|key|user-agent|oauth2-bearer|get|head|upload-file)$/;
const RAW_DATA = /^(?:data(?:-ascii|-binary|-raw)?|json)$/;
const ENCODED_DATA = /^(?:data-urlencode|url-query|form|form-string)$/;
const HEADER_LINE = /^\s*([^\s:][^:]*):([^]*)$/;

const METHODS = new Map(Object.entries({ head: 'HEAD', get: 'GET', 'upload-file': 'PUT' }));
const HEADER_STARTS = new Map(
  Object.entries({ header: '', 'user-agent': 'User-Agent: ', 'oauth2-bearer': 'Authorization: Bearer ' }),
);

const MULTIPART = 'requests a token by multipart/form-data (-F), which is not supported: use -d';
const FIELDS_ADDED_TO_URL =
  'requests a token by -G or --url-query, which is not supported: write the fields into the URL';
const BODY_IN_FILE = 'requests a token by data in a file (@…), which is not read: write the data in its place';
const VALUE_IS_MISSING = 'has a curl option without its value; does the line end lack a backslash?';

const BODY_FAULTS = new Map([
  ['form', MULTIPART],
  ['form-string', MULTIPART],
  ['get', FIELDS_ADDED_TO_URL],
  ['url-query', FIELDS_ADDED_TO_URL],
  ['upload-file', BODY_IN_FILE],
]);

/** Other schemes of authentication, an encrypted key, and options in a file. */
const UNSUPPORTED: ReadonlySet<string> = new Set(['digest', 'ntlm', 'negotiate', 'aws-sigv4', 'pass', 'config']);

const ROOTS = 'certificates are always verified; auth.caFile names a private authority';
/** Options that trust other certificates. */
const TRUST = /^(?:-k|--insecure|--cacert)$/;

/** Undefined when the words hold no curl. Never throws. */
export function readCurlCommand(words: CommandWords): CurlRequest | undefined {
  const at = words.findIndex((word) => /^(?:.*[\\/])?curl(?:\.exe)?$/i.test(word));
  return at < 0 ? undefined : readCurlRequest(listOptions(words.slice(at + 1, at + MAX_WORDS)));
}

/** The options of the first request, in their order. */
function listOptions(args: string[]): readonly GivenOption[] {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true, tokens: true });
  const options = tokens.flatMap((token): readonly GivenOption[] => {
    if (token.kind === 'option') return [token];
    return token.kind === 'positional' ? [{ name: 'url', rawName: '', value: token.value }] : [];
  });
  const next = options.findIndex(({ name }) => name === 'next' || name === ':');
  return next < 0 ? options : options.slice(0, next);
}

function readCurlRequest(options: readonly GivenOption[]) {
  // curl takes the last of several.
  const findLast = <T>(read: (option: GivenOption) => T | undefined): T | undefined =>
    options.map(read).findLast((found) => found !== undefined);
  const valueOf = (wanted: string) => findLast(({ name, value }) => (name === wanted ? value : undefined));
  const url = options.find(({ name }) => name === 'url');
  const user = valueOf('user');
  const headers = options.flatMap(readHeader);
  const data = options.flatMap(readData);
  const { body, bodyFormat, jsonFault } = readBody(data);
  const bodyFault = findLast(findBodyFault);
  const usual = data.length > 0 || bodyFault !== undefined ? 'POST' : 'GET';
  const method = valueOf('request') ?? findLast(({ name }) => METHODS.get(name)) ?? usual;
  return {
    /** The first URL as given; undefined without one. */
    url: url?.value,
    method: /^[a-z]{1,9}$/i.test(method) ? method.toUpperCase() : 'another method',
    user,
    certificateFile: valueOf('cert'),
    keyFile: valueOf('key'),
    ...readAuthorization(headers, user ?? userOf(url?.value)),
    headers: headers.filter((header) => !isAuthorization(header)),
    query: parseForm(/\?([^#]*)/.exec(url?.value ?? '')?.[1] ?? ''),
    body,
    bodyFormat,
    /** Why the request cannot be carried out; follows "the pasted text". */
    fault: findLast(findFault),
    /** Why a token request cannot have this body; follows "the pasted text". */
    bodyFault: bodyFault ?? jsonFault,
    /** Options without effect on what is understood, such as `-s`, without their values. */
    ignored: options.flatMap((option) => (option === url ? [] : describeIgnored(option))),
  };
}

function readHeader({ name: option, value: given = '' }: GivenOption): readonly Field[] {
  if (option === 'json') return [{ name: 'Content-Type', value: 'application/json' }];
  const start = HEADER_STARTS.get(option);
  const [, name = '', value = ''] = start === undefined ? [] : (HEADER_LINE.exec(start + given) ?? []);
  const header = { name: name.trim(), value: value.trim() };
  // curl leaves out a field without a value, also one that it would add itself.
  return header.name !== '' && (header.value !== '' || isAuthorization(header)) ? [header] : [];
}

/** The parts of the body, and with a `bodyFault` those of the query too, as they are sent. */
function readData(option: GivenOption): readonly string[] {
  const { name, value = '' } = option;
  if (isInFile(option)) return [];
  if (RAW_DATA.test(name)) return [value];
  if (!ENCODED_DATA.test(name)) return [];
  // `content`, `=content` or `name=content`.
  const equals = value.indexOf('=');
  const field = equals > 0 ? [value.slice(0, equals), value.slice(equals + 1)] : [value.slice(equals + 1), ''];
  return [new URLSearchParams([field]).toString()];
}

/** `@file`, and encoded also `name@file`. */
function isInFile({ name, value = '' }: GivenOption): boolean {
  if (ENCODED_DATA.test(name)) return value.includes('@') && !value.includes('=');
  return RAW_DATA.test(name) && name !== 'data-raw' && value.startsWith('@');
}

function findBodyFault(option: GivenOption): string | undefined {
  return isInFile(option) ? BODY_IN_FILE : BODY_FAULTS.get(option.name);
}

function findFault({ name, rawName, value }: GivenOption): string | undefined {
  if (UNSUPPORTED.has(name)) return `has the option ${rawName}, which init does not support`;
  if (name === 'header' && value?.startsWith('@') === true)
    return 'takes header fields from a file (-H @…), which is not read';
  return value === undefined && VALUE_OPTIONS.has(name) ? VALUE_IS_MISSING : undefined;
}

function describeIgnored({ name, rawName, value = '' }: GivenOption): readonly string[] {
  if (name === 'url') return ['a second URL'];
  if (name === 'header') return HEADER_LINE.test(value) ? [] : ['-H without a header field'];
  if (READ_OPTION.test(name) || RAW_DATA.test(name) || ENCODED_DATA.test(name)) return [];
  return [TRUST.test(rawName) ? `${rawName}: ${ROOTS}` : rawName];
}

function readBody(data: readonly string[]) {
  const text = data.join('&');
  const json = parseJsonFields(text);
  const isJson = json !== undefined || /^\s*[{[]/.test(text);
  return {
    body: json ?? data.flatMap(parseForm),
    bodyFormat: isJson ? ('json' as const) : ('form' as const),
    jsonFault: isJson && json === undefined ? 'requests a token by JSON that cannot be read' : undefined,
  };
}

/** `basic` is the client that `-u`, the URL or an `Authorization` field names; `authorization` has another scheme with its blank. */
function readAuthorization(headers: readonly Field[], user: string | undefined) {
  const header = headers.findLast(isAuthorization)?.value;
  // A header field replaces -u, and without a value it removes what -u would send.
  if (header === undefined) return { basic: splitUser(user), authorization: undefined };
  if (/^basic\b/i.test(header)) return { basic: decodeBasic(header.slice(5).trim()), authorization: undefined };
  const prefix = /^[a-z][\w-]* +(?=\S)/i.exec(header)?.[0] ?? '';
  const authorization = header === '' ? undefined : ([prefix, header.slice(prefix.length)] as const);
  return { basic: undefined, authorization };
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

function isAuthorization({ name }: Field): boolean {
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
