/** What a user pastes from a partner's documents: curl commands, or one URL of the authorization server. Pure. */
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint } from '../terminal.ts';
import { isTokenPath, splitTokenUrl } from '../../token/endpoint/token-url.ts';
import { splitCommands } from './curl/shell-words.ts';
import { readTokenCommand } from './curl/token-command.ts';
import type { AssumedKind, CommandReading, UnderstoodCommand } from './curl/token-command.ts';
import type { InitSettingKey } from './init-settings.ts';

export type PartnerText =
  | { readonly kind: 'empty' }
  | { readonly kind: 'address'; readonly settings: ReadonlyMap<InitSettingKey, string> }
  /** More lines may follow. `fault` is for a text that has ended. */
  | { readonly kind: 'incomplete'; readonly fault: string }
  | CommandReading;

/** Whether a line begins or holds a curl command, so that its text may be a secret. */
export function isCurlCommand(line: string): boolean {
  return /(?:^|[\s"'(\\/])curl(?:\.exe)?(?:\s|$)/i.test(line);
}

/** Executes nothing. @param assumed of a command that does not show what it does. Default: the result is `unclear` */
export function readPartnerText(text: string, assumed?: AssumedKind): PartnerText {
  const trimmed = text.trim();
  if (trimmed === '') return { kind: 'empty' };
  if (/^https?:\/\/\S{1,2000}$/i.test(trimmed)) return { kind: 'address', settings: readAuthAddress(trimmed) };
  const split = splitCommands(text);
  if (split.kind !== 'split') return split;
  return readTokenCommand(split.commands, assumed);
}

const LABEL_WIDTH = 28;

/** The lines that show what was understood; neither the client id nor a secret is in them. */
export function describeCommand(command: UnderstoodCommand, paint: Paint): readonly string[] {
  const { settings, secret, tokenUrl, ignored, placeholders } = command;
  const rows: (readonly [string, string])[] = [];
  if (tokenUrl !== undefined) rows.push(['token URL', tokenUrl]);
  for (const [key, value] of settings)
    if (key !== 'auth.url' && key !== 'auth.tokenPath') rows.push([key, showValue(key, value)]);
  const what = settings.get('auth.method') === 'static' ? 'token' : 'client secret';
  if (secret !== undefined) rows.push([what, 'taken over, goes into its own file']);
  return [
    'Understood from the curl command, which was not executed:',
    ...rows.map(([label, value]) => `  ${label.padEnd(LABEL_WIDTH)}${toSingleLine(value)}`),
    ...[...new Set(ignored)].map((note) => paint('quiet', `  ${'ignored'.padEnd(LABEL_WIDTH)}${toSingleLine(note)}`)),
    ...placeholders.map((name) => paint('warning', `  ${'not given'.padEnd(LABEL_WIDTH)}${toSingleLine(name)}`)),
  ];
}

function showValue(key: InitSettingKey, value: string): string {
  switch (key) {
    case 'auth.clientId':
      return 'taken over';
    // Their values may be secrets.
    case 'auth.extraParameters':
    case 'auth.extraHeaders':
    case 'upstream.headers':
    case 'upstream.query':
      return Object.keys(JSON.parse(value) as object).join(', ');
    default:
      return value === '' ? 'none' : value;
  }
}

/** The URL of published metadata (RFC 8414, OpenID Connect Discovery 1.0). */
const WELL_KNOWN = /^(.*)\/\.well-known\/(?:openid-configuration|oauth-authorization-server)(\/.*)?$/;

/** What cannot be an address is returned as `auth.url`, whose format has the message. @param tokenPath as given by the user */
export function readAuthAddress(text: string, tokenPath?: string): ReadonlyMap<InitSettingKey, string> {
  const url = URL.parse(text);
  const given = new Map<InitSettingKey, string>([['auth.url', text]]);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.hash !== '')
    return given;
  const [, before, after = ''] = WELL_KNOWN.exec(url.pathname) ?? [];
  if (before !== undefined) return new Map([['auth.issuer', url.origin + before + after]]);
  if (tokenPath !== undefined) return given;
  const parts = isTokenPath(url.pathname) || url.search !== '' ? splitTokenUrl(url) : undefined;
  if (parts === undefined) return given;
  return new Map([
    ['auth.url', parts.authUrl],
    ['auth.tokenPath', parts.tokenPath],
  ]);
}
