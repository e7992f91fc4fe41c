/**
 * Reads the arguments of one curl command as curl does (curl.1), as far as they decide what a request carries: URL, method, user,
 * header fields, body and client certificate. Files are not read. Pure.
 */
import type { CommandWords } from './shell-words.ts';

/** One piece of the body; curl joins those of one kind by `&`. */
export type CurlData =
  | { readonly kind: 'raw'; readonly text: string }
  /** To be encoded: `--data-urlencode name=value`. */
  | { readonly kind: 'field'; readonly name: string; readonly value: string };

export type CurlRequest = { readonly [K in Exclude<keyof ArgumentReader, 'take'>]: ArgumentReader[K] };

/** The arguments after the program's name; undefined when the words hold no curl. */
export function findCurlArguments(words: CommandWords): CommandWords | undefined {
  const at = words.findIndex((word) => /^(?:.*[\\/])?curl(?:\.exe)?$/i.test(word));
  return at < 0 ? undefined : words.slice(at + 1);
}

/** Never throws: an option that is not known is ignored. */
export function readCurlArguments(words: CommandWords): CurlRequest {
  const reader = new ArgumentReader();
  for (const { option, value } of listOptions(words)) reader.take(option, value);
  return reader;
}

/** Long options of curl 8 that take a value. */
const VALUE_OPTIONS: ReadonlySet<string> = new Set(
  (
    'abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config connect-timeout connect-to continue-at cookie ' +
    'cookie-jar create-file-mode crlfile curves data data-ascii data-binary data-raw data-urlencode delegation dns-interface ' +
    'dns-ipv4-addr dns-ipv6-addr dns-servers doh-url dump-header ech egd-file engine etag-compare etag-save expect100-timeout form ' +
    'form-string ftp-account ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms haproxy-clientip ' +
    'header hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway json keepalive-cnt keepalive-time key key-type krb libcurl ' +
    'limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time netrc-file noproxy ' +
    'oauth2-bearer output output-dir parallel-max pass pinnedpubkey preproxy proto proto-default proto-redir proxy proxy-cacert ' +
    'proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type proxy-pass ' +
    'proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 ' +
    'pubkey quote random-file range rate referer request request-target resolve retry retry-delay retry-max-time sasl-authzid ' +
    'service-name sigalgs socks4 socks4a socks5 socks5-gssapi-service socks5-hostname speed-limit speed-time stderr telnet-option ' +
    'tftp-blksize time-cond tls-max tls13-ciphers tlsauthtype tlspassword tlsuser trace trace-ascii trace-config unix-socket ' +
    'upload-file url url-query user user-agent variable vlan-priority write-out'
  ).split(' '),
);

/** Letters of options that take a value, with the long names of those that are read. */
const SHORT_VALUE_OPTIONS: ReadonlyMap<string, string> = new Map([
  ...'K C b c D P h m o Q r e Y y t z w'.split(' ').map((letter) => [letter, `-${letter}`] as const),
  ['A', 'user-agent'],
  ['E', 'cert'],
  ['d', 'data'],
  ['F', 'form'],
  ['H', 'header'],
  ['T', 'upload-file'],
  ['u', 'user'],
  ['U', 'proxy-user'],
  ['x', 'proxy'],
  ['X', 'request'],
]);

const SHORT_OPTIONS: Readonly<Record<string, string>> = { G: 'get', I: 'head' };

interface GivenOption {
  /** A long name, a letter with its dash, or '' for a URL. */
  readonly option: string;
  readonly value: string | undefined;
}

function* listOptions(words: CommandWords): Generator<GivenOption> {
  const rest = words.values();
  for (const word of rest) {
    if (word === '--next' || word === '-:') return;
    if (word.startsWith('--') && word !== '--') {
      const [, name = '', inline] = /^--([^=]*)(?:=([^]*))?$/.exec(word) ?? [];
      yield { option: name, value: VALUE_OPTIONS.has(name) ? (inline ?? nextOf(rest)) : undefined };
    } else if (word.startsWith('-') && word.length > 1 && word !== '--') yield* listShortOptions(word.slice(1), rest);
    else if (word !== '--') yield { option: '', value: word };
  }
}

/** `-sSX POST`, `-XPOST`: letters, of which the first with a value takes the rest of the word or the next one. */
function* listShortOptions(letters: string, rest: Iterator<string, undefined>): Generator<GivenOption> {
  for (let at = 0; at < letters.length; at++) {
    const letter = letters.charAt(at);
    const name = SHORT_VALUE_OPTIONS.get(letter);
    if (name === undefined) {
      yield { option: SHORT_OPTIONS[letter] ?? `-${letter}`, value: undefined };
      continue;
    }
    const attached = letters.slice(at + 1);
    yield { option: name, value: attached === '' ? nextOf(rest) : attached };
    return;
  }
}

function nextOf(words: Iterator<string, undefined>): string | undefined {
  return words.next().value;
}

const TEXTS: Readonly<Record<string, 'givenMethod' | 'user' | 'certificateFile' | 'keyFile'>> = {
  request: 'givenMethod',
  user: 'user',
  cert: 'certificateFile',
  key: 'keyFile',
};

const HEADER_LINES: Readonly<Record<string, string>> = {
  header: '',
  'user-agent': 'User-Agent: ',
  'oauth2-bearer': 'Authorization: Bearer ',
};

const METHODS: Readonly<Record<string, string>> = {
  head: 'HEAD',
  get: 'GET',
  'upload-file': 'PUT',
};

const MULTIPART = 'requests a token by multipart/form-data (-F), which is not supported: use -d';
const FIELDS_ADDED_TO_URL =
  'requests a token by -G or --url-query, which is not supported: write the fields into the URL';
const BODY_IN_FILE = 'requests a token by data in a file (@…), which is not read: write the data in its place';
const VALUE_IS_MISSING = 'has a curl option without its value; does the line end lack a backslash?';

const BODY_FAULTS: Readonly<Record<string, string>> = {
  form: MULTIPART,
  'form-string': MULTIPART,
  get: FIELDS_ADDED_TO_URL,
  'url-query': FIELDS_ADDED_TO_URL,
  'upload-file': BODY_IN_FILE,
};

class ArgumentReader {
  /** The first URL as given; undefined without one. */
  url: string | undefined;
  givenMethod: string | undefined;
  defaultMethod: string | undefined;
  user: string | undefined;
  certificateFile: string | undefined;
  keyFile: string | undefined;
  /** Why the request cannot be carried out; follows "the pasted text". */
  fault: string | undefined;
  /** Why a token request cannot have this body; follows "the pasted text". */
  bodyFault: string | undefined;
  readonly headers: (readonly [name: string, value: string])[] = [];
  /** The parts of the body, and with a `bodyFault` those of the query too. */
  readonly data: CurlData[] = [];
  /** Options without effect on what is understood, such as `-s`, without their values. */
  readonly ignored: string[] = [];

  take(option: string, given: string | undefined): void {
    const value = given ?? '';
    if (given === undefined && VALUE_OPTIONS.has(option)) this.fault = VALUE_IS_MISSING;
    const [text, headerStart] = [TEXTS[option], HEADER_LINES[option]];
    this.defaultMethod = METHODS[option] ?? this.defaultMethod;
    this.bodyFault = BODY_FAULTS[option] ?? this.bodyFault;
    if (text !== undefined) this[text] = value;
    else if (headerStart !== undefined) this.#takeHeader(headerStart + value);
    else if (/^(?:data(?:-ascii|-binary|-raw)?|json)$/.test(option)) this.#takeData(option, value);
    else if (/^(?:data-urlencode|url-query|form|form-string)$/.test(option)) this.#takeEncoded(value);
    else if (option !== '' && option !== 'url') this.#ignore(option);
    else if (this.url === undefined) this.url = value;
    else this.ignored.push('a second URL');
  }

  #takeHeader(text: string): void {
    const colon = text.indexOf(':');
    const [name, value] = [text.slice(0, Math.max(0, colon)).trim(), text.slice(colon + 1).trim()];
    if (text.startsWith('@')) this.fault = 'takes header fields from a file (-H @…), which is not read';
    else if (name === '') this.ignored.push('-H without a header field');
    // curl leaves out a field without a value, also one that it would add itself.
    else if (value !== '' || name.toLowerCase() === 'authorization') this.headers.push([name, value]);
  }

  #takeData(option: string, text: string): void {
    if (option === 'json') this.headers.push(['Content-Type', 'application/json']);
    if (text.startsWith('@') && option !== 'data-raw') this.bodyFault = BODY_IN_FILE;
    else this.data.push({ kind: 'raw', text });
  }

  /** `content`, `=content`, `name=content`, `@file`, `name@file`. */
  #takeEncoded(text: string): void {
    const equals = text.indexOf('=');
    if (equals < 0 && text.includes('@')) this.bodyFault = BODY_IN_FILE;
    else if (equals > 0) this.data.push({ kind: 'field', name: text.slice(0, equals), value: text.slice(equals + 1) });
    else this.data.push({ kind: 'field', name: text.slice(equals + 1), value: '' });
  }

  #ignore(option: string): void {
    const shown = option.startsWith('-') ? option : `--${option}`;
    if (UNSUPPORTED.has(option)) this.fault = `has the option ${shown}, which init does not support`;
    else if (METHODS[option] === undefined) this.ignored.push(TRUST.test(shown) ? `${shown}: ${ROOTS}` : shown);
  }
}

/** Other schemes of authentication, an encrypted key, and options in a file. */
const UNSUPPORTED: ReadonlySet<string> = new Set(['digest', 'ntlm', 'negotiate', 'aws-sigv4', 'pass', 'config', '-K']);

const ROOTS = 'certificates are always verified; auth.caFile names a private authority';
/** Options that trust other certificates. */
const TRUST = /^(?:-k|--insecure|--cacert)$/;
