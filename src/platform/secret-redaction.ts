/**
 * The ways in which a secret may be written in a text, and texts without it. For the log, and for texts from a server
 * that knows the secret. Pure.
 */

/** What stands in a text where a secret would have stood. */
export const MASK = '********';

/** A shorter value hides nothing, and masking it would shred every text. */
export const SHORTEST_SECRET = 4;

/** As it is, form-encoded, percent-encoded, in base64; with the client id also the two as Basic credentials (RFC 7617 §2). */
export function listSecretEncodings(value: string, clientId?: string): string[] {
  const forms = [value, formEncode(value), ...base64Variants(value)];
  if (clientId !== undefined)
    forms.push(
      ...base64Variants(`${clientId}:${value}`),
      ...base64Variants(`${formEncode(clientId)}:${formEncode(value)}`),
    );
  return forms.flatMap((form) => [form, encodeURIComponent(form.toWellFormed())]);
}

/** A pattern of at least one text. */
export function buildAnyTextPattern(texts: readonly string[]): RegExp {
  // Longest first: at one position an alternation takes the first branch that fits.
  const longestFirst = [...new Set(texts)].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
}

export type Redact = (text: string) => string;

/**
 * Masks the secrets in a text that came from a server. A text that holds one in another encoding, such as a percent-encoding of other characters or
 * base64 of more than the secret, is masked as a whole.
 * @param secrets those under four characters are ignored
 */
export function createRedact(secrets: readonly string[], clientId?: string): Redact {
  const known = secrets.filter(({ length }) => length >= SHORTEST_SECRET);
  if (known.length === 0) return (text) => text;
  const pattern = buildAnyTextPattern(known.flatMap((secret) => listSecretEncodings(secret, clientId)));
  const holdsOne = (text: string): boolean => known.some((secret) => text.includes(secret));
  return (text) => {
    const masked = text.replace(pattern, MASK);
    return listDecodings(masked).some(holdsOne) ? MASK : masked;
  };
}

/** They are not seen, wherever they stand. */
const CONTROL_CHARACTERS = /\p{Cc}/gu;

function listDecodings(text: string): string[] {
  const seen = text.replaceAll(CONTROL_CHARACTERS, '');
  const bytes = seen.replace(/%[\da-f]{2}/gi, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16)));
  const decoded = Buffer.from(bytes, 'latin1').toString('utf8');
  const runs = seen.match(/[\w+/-]{5,}/g) ?? [];
  return [
    seen,
    decoded,
    decoded.replaceAll('+', ' '),
    ...runs.map((run) => Buffer.from(run, 'base64').toString('utf8')),
  ];
}

function base64Variants(text: string): string[] {
  // Without its padding the form is found with and without it, and also where `=` became `%3D`.
  const base64 = Buffer.from(text, 'utf8').toString('base64').replace(/=+$/, '');
  return [base64, base64.replaceAll('+', '-').replaceAll('/', '_')];
}

export function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}
