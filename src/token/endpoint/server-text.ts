/**
 * Makes text of an authorization server fit for a log, a page and a local reply: printable ASCII on one line, bounded, and
 * without the client id or a part of a secret that was sent, in any common encoding (RFC 6749 §5.2 has the characters). Pure.
 */
import { MASK, decodePercent, formEncode, type Redact } from '../../platform/secret-redaction.ts';
import { createRedact, Secrets } from '../../platform/secrets.ts';
import type { ClientAuthentication, ClientCredential } from '../client/client-authentication.ts';

/** Cleans, masks, and cuts to `maxChars`. The result may be empty. */
export type ShowServerText = (text: string, maxChars: number) => string;

/** More of a text is not looked at: at most 300 characters are shown. */
const MAX_READ_CHARS = 1024;
/** Before the cut to these, secrets are masked. */
const MAX_MASKED_CHARS = 8 * MAX_READ_CHARS;

/** Keeps what the authorization server knows out of its response, in case the server echoes it. */
export type EchoFilter = ReturnType<typeof createEchoFilter>;

/** For the secrets of one request, those of every request of the client included. @param maskSecrets Default: no tokens in use are known */
export function createEchoFilter(
  { clientId, sentSecrets }: Pick<ClientCredential, 'clientId' | 'sentSecrets'>,
  { valuesToRedact }: Pick<ClientAuthentication, 'valuesToRedact'>,
  {
    scope: requestedScope,
    maskSecrets = (text) => text,
  }: { readonly scope: string | undefined; readonly maskSecrets?: Redact },
) {
  const secrets = [...sentSecrets, ...valuesToRedact];
  const redact = createRedact(secrets);
  const showText = createServerTextFilter(secrets, clientId);
  const redactCredential = createRedact(valuesToRedact.flatMap((value) => listWithId(value, clientId)));
  return {
    /** Whether a token contains the client's credential: the upstream, to which the token goes, must not get it. */
    holdsCredential: (token: string): boolean =>
      [token, decodePercent(token, 'latin1')].some((reading) => redactCredential(reading) !== reading),
    /** Masks sent secrets, and tokens in use. */
    redact: (text: string): string => maskSecrets(redact(text)),
    // Before and after the cut: the mask may be longer than what it replaces.
    showText: (text: string, maxChars: number): string =>
      maskSecrets(showText(maskSecrets(text.slice(0, MAX_MASKED_CHARS)), maxChars)).slice(0, maxChars),
    /** Separated by blanks: these names are shown as they are. */
    requestedScope,
  };
}

/** A secret too short to be masked alone is masked with the id, as in Basic credentials (RFC 7617 §2). */
function listWithId(secret: string, clientId: string): string[] {
  return [secret, `${clientId}:${secret}`, `${formEncode(clientId)}:${formEncode(secret)}`];
}

/** Built for the first text only, since most responses have none. The client id is masked where it appears as a whole. */
export function createServerTextFilter(secrets: readonly string[], clientId: string): ShowServerText {
  let filter: ShowServerText | undefined;
  return (text, maxChars) => (filter ??= buildFilter(secrets, clientId))(text, maxChars);
}

function buildFilter(secrets: readonly string[], clientId: string): ShowServerText {
  const redactId = createRedact([clientId]);
  const parts = new Secrets({ now: () => 0 }, 1);
  for (const secret of secrets) {
    for (const form of [secret, clean(secret), compact(clean(secret))]) parts.addToken(form);
    for (const form of listWithId(secret, clientId)) parts.add(form);
  }
  const isRevealing = (text: string): boolean => parts.mask(text) !== text;
  const mask = (text: string): string => redactId(parts.mask(text));
  return (text, maxChars) => {
    const raw = mask(text.slice(0, MAX_READ_CHARS));
    // Again: a secret may appear only when the characters between its parts are removed.
    const shown = mask(clean(raw));
    const readings = [shown, ...listDecodings(raw), ...listDecodings(shown)].map(clean);
    const isMasked = readings.some((reading) => isRevealing(reading) || isRevealing(compact(reading)));
    return (isMasked ? MASK : shown).slice(0, maxChars);
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

/** What a reader could turn the text into, beside what the mask itself reads. */
function listDecodings(text: string): string[] {
  return [
    decodeCharacterReferences(text),
    decodePercent(text, 'latin1'),
    ...decodeBase64Runs(text),
    ...decodeBase64Runs(text.replaceAll(/\s/g, '')),
  ];
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
