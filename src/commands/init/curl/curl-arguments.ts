/**
 * Reads the arguments of one curl command as curl does (curl.1), as far as they decide what a request carries: URL, method, user,
 * header fields and body. Files are not read. Pure.
 */
import { hasExpansion } from './placeholders.ts';
import type { CommandWords } from './command-pieces.ts';

/** One piece of the body; curl joins those of one kind by `&`. */
export type CurlData =
  /** As it is sent. */
  | { readonly kind: 'raw'; readonly text: string }
  /** To be encoded: `--data-urlencode name=value` and `--form name=value`. */
  | { readonly kind: 'field'; readonly name: string; readonly value: string };

export interface CurlRequest {
  /** The first URL as given; undefined without one. */
  readonly url: string | undefined;
  /** Of `-X`; undefined: curl decides. */
  readonly method: string | undefined;
  /** `id:secret` of `-u`, or the id alone. */
  readonly user: string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly data: readonly CurlData[];
  /** `-G`: the data go into the query. */
  readonly isDataInQuery: boolean;
  /** Pieces of `--url-query`. */
  readonly query: readonly CurlData[];
  /** Options without effect on what is understood, such as `-s`, without their values. */
  readonly ignored: readonly string[];
}

/** The arguments after the program's name; undefined when the words hold no curl. */
export function findCurlArguments(words: CommandWords): CommandWords | undefined {
  const at = words.findIndex((word) => /^(?:.*[\\/])?curl(?:\.exe)?$/i.test(word));
  return at < 0 ? undefined : words.slice(at + 1);
}

/** Never throws: what is not known is ignored. */
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
  ...'E K C b c D P h m o Q r e Y y t z T w'.split(' ').map((letter) => [letter, `-${letter}`] as const),
  ['A', 'user-agent'],
  ['d', 'data'],
  ['F', 'form'],
  ['H', 'header'],
  ['u', 'user'],
  ['U', 'proxy-user'],
  ['x', 'proxy'],
  ['X', 'request'],
]);

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
      yield { option: `-${letter}`, value: undefined };
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

class ArgumentReader implements CurlRequest {
  url: string | undefined;
  method: string | undefined;
  user: string | undefined;
  isDataInQuery = false;
  readonly headers: [string, string][] = [];
  readonly data: CurlData[] = [];
  readonly query: CurlData[] = [];
  readonly ignored: string[] = [];

  take(option: string, value: string | undefined): void {
    switch (option) {
      case '':
      case 'url':
        if (this.url === undefined) this.url = value;
        else this.ignored.push('a second URL');
        return;
      case 'request':
        this.method = value;
        return;
      case 'user':
        this.user = value;
        return;
      case 'header':
        this.#takeHeader(value ?? '');
        return;
      case 'user-agent':
        this.headers.push(['User-Agent', value ?? '']);
        return;
      case 'get':
      case '-G':
        this.isDataInQuery = true;
        return;
      case 'url-query':
        this.query.push(...this.#readUrlQuery(value ?? ''));
        return;
      default:
        if (!this.#takeData(option, value ?? '')) this.#ignore(option);
    }
  }

  #takeData(option: string, value: string): boolean {
    switch (option) {
      case 'data':
      case 'data-ascii':
      case 'data-binary':
      case 'json':
        if (option === 'json') this.headers.push(['Content-Type', 'application/json']);
        if (value.startsWith('@')) this.ignored.push(`--${option} with a file: its contents are not read`);
        else this.data.push({ kind: 'raw', text: value });
        return true;
      case 'data-raw':
        this.data.push({ kind: 'raw', text: value });
        return true;
      case 'data-urlencode':
        this.data.push(...this.#readEncoded(value));
        return true;
      case 'form':
      case 'form-string':
        this.#takeForm(option, value);
        return true;
      default:
        return false;
    }
  }

  #takeHeader(text: string): void {
    const colon = text.indexOf(':');
    const [name, value] = [text.slice(0, Math.max(0, colon)).trim(), text.slice(colon + 1).trim()];
    if (text.startsWith('@')) this.ignored.push('-H with a file: its contents are not read');
    else if (name === '') this.ignored.push('-H without a header field');
    // curl leaves out a field without a value, also one that it would add itself.
    else if (value !== '' || name.toLowerCase() === 'authorization') this.headers.push([name, value]);
  }

  /** `content`, `=content`, `name=content`, `@file`, `name@file`. */
  #readEncoded(text: string): readonly CurlData[] {
    const equals = text.indexOf('=');
    if (equals >= 0) {
      const field = { kind: 'field', name: text.slice(0, equals), value: text.slice(equals + 1) } as const;
      return [equals === 0 ? { ...field, name: field.value, value: '' } : field];
    }
    if (text.includes('@')) {
      this.ignored.push('--data-urlencode with a file: its contents are not read');
      return [];
    }
    return [{ kind: 'field', name: text, value: '' }];
  }

  /** As --data-urlencode; text after a plus sign is not encoded. */
  #readUrlQuery(text: string): readonly CurlData[] {
    return text.startsWith('+') ? [{ kind: 'raw', text: text.slice(1) }] : this.#readEncoded(text);
  }

  #takeForm(option: 'form' | 'form-string', text: string): void {
    const [, name = text, given = ''] = /^([^=]*)=([^]*)$/.exec(text) ?? [];
    if (option === 'form' && /^[@<]/.test(given) && !hasExpansion(given) && !/^<[a-z][\w -]*>$/i.test(given)) {
      this.ignored.push('--form with a file: its contents are not read');
      return;
    }
    const [, quoted] = /^"((?:[^"\\]|\\.)*)"/s.exec(given) ?? [];
    const plain =
      quoted?.replaceAll(/\\(["\\])/g, '$1') ?? given.replace(/;(?:type|filename|headers|encoder)=[^]*$/, '');
    this.data.push({ kind: 'field', name, value: option === 'form' ? plain : given });
  }

  #ignore(option: string): void {
    const shown = option.startsWith('-') ? option : `--${option}`;
    this.ignored.push(IGNORED_WITH_SETTING[shown] ?? shown);
  }
}

const ROOTS = 'the certificate authorities to trust are set by auth.caFile';
const CERTIFICATE = 'a client certificate is set by auth.tlsCertificateFile and auth.tlsKeyFile';
const PROXY = 'a proxy is set by egress.proxy';

/** Options that have a setting of the sidecar, which init does not ask for. */
const IGNORED_WITH_SETTING: Readonly<Record<string, string>> = {
  '--cacert': `--cacert: ${ROOTS}`,
  '--cert': `--cert: ${CERTIFICATE}`,
  '-E': `-E: ${CERTIFICATE}`,
  '--key': `--key: ${CERTIFICATE}`,
  '--proxy': `-x: ${PROXY}`,
  '--insecure': '-k: certificates are always verified; auth.caFile names a private authority',
  '-k': '-k: certificates are always verified; auth.caFile names a private authority',
  '-b': '-b: cookies are not sent to a token endpoint',
  '--cookie': '--cookie: cookies are not sent to a token endpoint',
  '--digest': '--digest: the sidecar sends Basic',
  '--ntlm': '--ntlm: the sidecar sends Basic',
};
