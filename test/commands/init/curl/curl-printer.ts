/** Prints generated token requests as curl commands, in the quoting of each shell, as partners' documents have them. */
import fc from 'fast-check';

export interface PrintedClient {
  readonly id: string;
  readonly secret: string;
  readonly by: 'user' | 'basic-header' | 'form';
}

export interface PrintedRequest {
  readonly url: string;
  readonly client: PrintedClient;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

const SPECIAL_CHARACTERS = Array.from(' "\'\\$`!%^&|<>;#()[]{}*?~=+@/:,');

/** Text that a form, a header and a setting can carry: no control character, no placeholder of a document. */
const TEXT = fc
  .string({
    unit: fc.oneof(fc.constantFrom(...SPECIAL_CHARACTERS), fc.string({ minLength: 1, maxLength: 1 })),
  })
  .map((text) => `k${text}9`)
  .filter((text) => !/<[a-z][\w .-]+>|\{[a-z][\w.-]+\}|%7B[a-z][\w.-]+%7D/i.test(text));

const HOST_PATHS = [
  '/oauth/token',
  '/token',
  '/oauth2/v2.0/token',
  '/tenant/oauth/token?api-version=1&x=y',
  '/realms/a b/token',
];

/** @param origin where the request is sent */
export function printedRequests(origin: string): fc.Arbitrary<PrintedRequest> {
  const by = fc.constantFrom<PrintedClient['by'][]>('user', 'basic-header', 'form');
  const client = fc.record({ id: TEXT.map((text) => text.replaceAll(':', '')), secret: TEXT, by });
  const fields = fc
    .record({
      audience: fc.option(TEXT),
      scope: fc.option(fc.constantFrom('read', 'read write', 'urn:x.y')),
      tenant: fc.option(TEXT),
    })
    .map((record) => Object.entries(record).filter((entry): entry is [string, string] => entry[1] !== null));
  const path = fc.constantFrom(...HOST_PATHS).map((text) => encodeURI(text));
  return fc.record({ url: path.map((text) => origin + text), client, fields });
}

/** One word in one of the ways to quote it. */
export type Quote = (word: string) => string;

const POSIX_QUOTES: readonly Quote[] = [
  (word) => `'${word.replaceAll("'", String.raw`'\''`)}'`,
  (word) => `"${word.replaceAll(/["\\$`]/g, '\\$&')}"`,
  (word) => `$'${word.replaceAll(/['\\]/g, '\\$&')}'`,
  (word) => `$'${[...Buffer.from(word)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`,
  (word) => word.replaceAll(/[^\w./:=-]/gu, '\\$&'),
];

/** For cmd.exe: the C runtime's quotes, and a caret before what cmd reads outside of quotes. */
const CMD_QUOTES: readonly Quote[] = [(word) => quoteForRuntime(word).replaceAll(/[\^"&|<>()%!]/g, '^$&')];

/** CommandLineToArgvW: backslashes count only before a quote. */
function quoteForRuntime(word: string): string {
  return `"${word.replaceAll(/(\\*)"/g, String.raw`$1$1\"`).replace(/(\\+)$/, '$1$1')}"`;
}

/** Refused: only that no such command is misread is tested. */
const POWERSHELL_QUOTES: readonly Quote[] = [
  (word) => `'${word.replaceAll("'", "''")}'`,
  (word) => `"${word.replaceAll(/["`$]/g, '`$&')}"`,
];

export const SHELLS = {
  posix: { quotes: POSIX_QUOTES, newline: ' \\\n  ' },
  cmd: { quotes: CMD_QUOTES, newline: ' ^\n  ' },
  powershell: { quotes: POWERSHELL_QUOTES, newline: ' `\n  ' },
} as const;

export interface Style {
  readonly shell: keyof typeof SHELLS;
  /** Chooses among equal ways, one number after another. */
  readonly choices: readonly number[];
}

export function styles(shell: Style['shell']): fc.Arbitrary<Style> {
  return fc.record({ shell: fc.constant(shell), choices: fc.array(fc.nat(1000), { minLength: 12, maxLength: 12 }) });
}

/** The command and its words. */
export function printCurl(
  { url, client, fields }: PrintedRequest,
  { shell, choices }: Style,
): { text: string; words: string[] } {
  let next = 0;
  const choose = <T>(options: readonly T[]): T =>
    options[(choices[next++ % choices.length] ?? 0) % options.length] as T;
  const pair = `${client.id}:${client.secret}`;
  const all: (readonly [string, string])[] = [['grant_type', 'client_credentials'], ...fields];
  if (client.by === 'form') all.push(['client_id', client.id], ['client_secret', client.secret]);
  const parts: string[][] = [choose([['-X', 'POST'], ['-XPOST'], ['--request', 'POST'], ['-sSX', 'POST']])];
  if (client.by === 'user') parts.push(choose([['-u', pair], ['--user', pair], [`-u${pair}`], [`-su${pair}`]]));
  if (client.by === 'basic-header')
    parts.push([choose(['-H', '--header']), `Authorization: Basic ${Buffer.from(pair).toString('base64')}`]);
  parts.push(['-H', 'Content-Type: application/x-www-form-urlencoded'], ['-H', 'Accept: application/json']);
  const encoded = all.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  parts.push(
    ...choose([
      [['-d', encoded.join('&')]],
      [['--data-raw', encoded.join('&')]],
      encoded.map((field) => ['--data', field]),
      all.map(([name, value]) => ['--data-urlencode', `${name}=${value}`]),
    ]),
  );
  const at = (choices[0] ?? 0) % (parts.length + 1);
  parts.splice(at, 0, choose([[url], ['--url', url]]));
  const { quotes, newline } = SHELLS[shell];
  const text = parts.map((words) =>
    words.map((word) => (/^[\w./:-]+$/.test(word) ? word : choose(quotes)(word))).join(' '),
  );
  return { text: ['curl', ...text].join(newline), words: parts.flat() };
}
