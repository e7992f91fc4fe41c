/** Finds a secret in its common encodings and masks it: in log lines, and in texts from a server that knows the secret. Pure. */

export const MASK = '********';

/** Masking a shorter value would make texts unreadable and protect nothing. */
export const SHORTEST_SECRET = 4;

/** Plain, form-encoded, percent-encoded and in base64; with a client id also as Basic credentials (RFC 7617 §2). */
export function listSecretEncodings(value: string, clientId?: string): string[] {
  const encodings = [value, formEncode(value), ...base64Variants(value)];
  if (clientId !== undefined)
    encodings.push(
      ...base64Variants(`${clientId}:${value}`),
      ...base64Variants(`${formEncode(clientId)}:${formEncode(value)}`),
    );
  return encodings.flatMap((encoding) => [encoding, encodeURIComponent(encoding.toWellFormed())]);
}

/** A global pattern for any of the texts; at least one is needed. */
export function buildAnyTextPattern(texts: readonly string[]): RegExp {
  // Longest first: an alternation takes the first branch that matches.
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}

/** A URL without the values of its query, which may be secrets; names are kept. */
export function maskQuery({ origin, pathname, search }: URL): string {
  return `${origin}${maskQueryValues(`${pathname}${search}`)}`;
}

/** A path without the values of its query. */
export function maskQueryValues(path: string): string {
  const [pathname = '', ...query] = path.split('?');
  if (query.length === 0) return path;
  const parts = query.join('?').split('&');
  return `${pathname}?${parts.map((part) => (/^[^=]*=/.exec(part)?.[0] ?? '') + MASK).join('&')}`;
}

export type Redact = (text: string) => string;

/**
 * Masks the secrets in a text from a server. A text that has one in another encoding, such as base64 of more than the secret, is masked
 * as a whole.
 * @param secrets those shorter than four characters are ignored
 */
export function createRedact(secrets: readonly string[], clientId?: string): Redact {
  const known = secrets.filter(({ length }) => length >= SHORTEST_SECRET);
  if (known.length === 0) return (text) => text;
  const pattern = buildAnyTextPattern(known.flatMap((secret) => listSecretEncodings(secret, clientId)));
  const hasSecret = (text: string): boolean => known.some((secret) => text.includes(secret));
  return (text) => {
    const masked = text.replace(pattern, MASK);
    return listDecodings(masked).some(hasSecret) ? MASK : masked;
  };
}

/** A reader does not see them within a secret. */
const CONTROL_CHARACTERS = /\p{Cc}/gu;

function listDecodings(text: string): string[] {
  const visible = text.replaceAll(CONTROL_CHARACTERS, '');
  const decoded = decodePercent(visible);
  const runs = visible.match(/[\w+/-]{5,}/g) ?? [];
  return [
    visible,
    decoded,
    decoded.replaceAll('+', ' '),
    ...runs.map((run) => Buffer.from(run, 'base64').toString('utf8')),
  ];
}

/** Percent-decoded; a plus sign stays one. Never throws. */
export function decodePercent(text: string, charset: 'utf8' | 'latin1' = 'utf8'): string {
  const bytes = text.replaceAll(/%[\da-f]{2}/gi, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16)));
  return Buffer.from(bytes, 'latin1').toString(charset);
}

function base64Variants(text: string): string[] {
  // Without padding, the text is found with padding, without it, and with `%3D` for it.
  const base64 = Buffer.from(text, 'utf8').toString('base64').replace(/=+$/, '');
  return [base64, base64.replaceAll('+', '-').replaceAll('/', '_')];
}

export function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/** Masks the user information of URLs within a text, such as one that stands where no URL is expected. */
export function maskPasswords(text: string): string {
  return text.replaceAll(/:\/\/\S*@/g, `://${MASK}@`);
}
