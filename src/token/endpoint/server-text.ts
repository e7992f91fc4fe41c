/**
 * Makes text of an authorization server fit for a log, a page and a local reply: printable ASCII on one line, bounded, and
 * without the client id or a part of a secret that was sent, in any common encoding (RFC 6749 §5.2 has the characters). Pure.
 */
import { MASK, decodePercent, listSecretEncodings, type Redact } from '../../platform/secret-redaction.ts';
import { createRedact } from '../../platform/secrets.ts';
import type { ClientAuthentication, ClientCredential } from '../client/client-authentication.ts';

/** Cleans, masks, and cuts to `maxChars`. The result may be empty. */
export type ShowServerText = (text: string, maxChars: number) => string;

/** A shorter secret, or part of one, may be part of a token or a word by chance, and helps little to guess the rest. */
export const FRAGMENT_CHARS = 8;
/** More of a text is not looked at: at most 300 characters are shown. */
const MAX_READ_CHARS = 1024;
/** Before the cut to these, secrets are masked. */
const MAX_MASKED_CHARS = 8 * MAX_READ_CHARS;

/** Keeps what the authorization server knows out of its response, in case the server echoes it. */
export interface EchoFilter {
  /** The client's credential in every encoding. The access token, which goes to the upstream, must not contain it. */
  readonly credentialForms: readonly string[];
  /** Masks sent secrets, and tokens in use, in a text. */
  readonly redact: Redact;
  readonly showText: ShowServerText;
  /** Requested scopes, separated by blanks: these names are shown as they are. */
  readonly requestedScope: string | undefined;
}

/** For the secrets of one request, those of every request of the client included. @param maskSecrets Default: no tokens in use are known */
export function createEchoFilter(
  { clientId, sentSecrets }: Pick<ClientCredential, 'clientId' | 'sentSecrets'>,
  { valuesToRedact }: Pick<ClientAuthentication, 'valuesToRedact'>,
  {
    scope: requestedScope,
    maskSecrets = (text) => text,
  }: { readonly scope: string | undefined; readonly maskSecrets?: Redact },
): EchoFilter {
  const secrets = [...sentSecrets, ...valuesToRedact];
  const forms = valuesToRedact.flatMap((value) => listSecretEncodings(value, clientId));
  const redact = createRedact(secrets);
  const showText = createServerTextFilter(secrets, clientId);
  return {
    credentialForms: forms.filter(({ length }) => length >= FRAGMENT_CHARS),
    redact: (text) => maskSecrets(redact(text)),
    // Before and after the cut: the mask may be longer than what it replaces.
    showText: (text, maxChars) =>
      maskSecrets(showText(maskSecrets(text.slice(0, MAX_MASKED_CHARS)), maxChars)).slice(0, maxChars),
    requestedScope,
  };
}

/** Built for the first text only, since most responses have none. The client id is masked where it appears as a whole. */
export function createServerTextFilter(secrets: readonly string[], clientId: string): ShowServerText {
  let filter: ShowServerText | undefined;
  return (text, maxChars) => (filter ??= buildFilter(secrets, clientId))(text, maxChars);
}

function buildFilter(secrets: readonly string[], clientId: string): ShowServerText {
  const redact = createRedact(secrets);
  const redactId = createRedact([clientId]);
  const encodings = secrets.flatMap((secret) => listSecretEncodings(secret, clientId));
  const fragments = collectFragments(encodings);
  const plainFragments = collectFragments(secrets);
  const mask = (text: string): string => maskFragments(redactId(redact(text)), fragments);
  return (text, maxChars) => {
    const raw = mask(text.slice(0, MAX_READ_CHARS));
    // Again: a secret may appear only when the characters between its parts are removed.
    const shown = mask(clean(raw));
    const readings = [...listDecodings(raw), ...listDecodings(shown)].map(clean);
    const isRevealing =
      hasFragment(compact(shown), fragments) ||
      readings.some((reading) => hasFragment(reading, plainFragments) || hasFragment(compact(reading), plainFragments));
    return (isRevealing ? MASK : shown).slice(0, maxChars);
  };
}

/** Removes what a reader does not see, what would begin a new line, and all that RFC 6749 §5.2 does not allow. */
function clean(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[^\x20-\x21\x23-\x5B\x5D-\x7E]/g, '')
    .trim();
}

function compact(text: string): string {
  return text.replaceAll(' ', '');
}

/** Every part of `FRAGMENT_CHARS` characters, as it stands in a text before and after its cleaning. */
function collectFragments(texts: readonly string[]): ReadonlySet<string> {
  const fragments = new Set<string>();
  for (const text of texts)
    for (const form of new Set([text, clean(text), compact(clean(text))]))
      for (let at = 0; at + FRAGMENT_CHARS <= form.length; at++) fragments.add(form.slice(at, at + FRAGMENT_CHARS));
  return fragments;
}

function hasFragment(text: string, fragments: ReadonlySet<string>): boolean {
  for (let at = 0; at + FRAGMENT_CHARS <= text.length; at++)
    if (fragments.has(text.slice(at, at + FRAGMENT_CHARS))) return true;
  return false;
}

function maskFragments(text: string, fragments: ReadonlySet<string>): string {
  let masked = '';
  let coveredTo = 0;
  for (let at = 0; at < text.length; at++) {
    if (fragments.has(text.slice(at, at + FRAGMENT_CHARS))) {
      if (at >= coveredTo) masked += MASK;
      coveredTo = at + FRAGMENT_CHARS;
    }
    if (at >= coveredTo) masked += text.charAt(at);
  }
  return masked;
}

/** What a reader could turn the text into, in one step or two. */
function listDecodings(text: string): string[] {
  const once = decode(text);
  return [...once, ...once.flatMap(decode)];
}

function decode(text: string): string[] {
  const escapes = [decodePercent(text).replaceAll('+', ' '), decodeJsonEscapes(text), decodeCharacterReferences(text)];
  const changed = escapes.filter((decoded) => decoded !== text);
  return [...changed, ...decodeBase64Runs(text), ...decodeBase64Runs(text.replaceAll(/\s/g, ''))];
}

function decodeJsonEscapes(text: string): string {
  return text.replaceAll(/\\u([\da-f]{4})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

const NAMED_REFERENCES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decodeCharacterReferences(text: string): string {
  return text
    .replaceAll(/&#(?:x([\da-f]{1,4})|(\d{1,5}));/gi, (_, hex?: string, digits?: string) =>
      String.fromCharCode(hex === undefined ? Number(digits) : parseInt(hex, 16)),
    )
    .replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => NAMED_REFERENCES[name] ?? '');
}

/** At each of the four alignments: text before the base64 may look like a part of it. */
function decodeBase64Runs(text: string): string[] {
  const runs = (text.match(/[\w+/-]{12,}/g) ?? []).map((run) => run.replaceAll('-', '+').replaceAll('_', '/'));
  if (runs.length === 0) return [];
  return [0, 1, 2, 3].map((from) =>
    runs.map((run) => Buffer.from(run.slice(from), 'base64').toString('utf8')).join('\n'),
  );
}
