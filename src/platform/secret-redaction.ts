/** The mask that is shown for a secret, and parts of URLs that may be secrets. secrets.ts finds secrets in texts. Pure. */

export const MASK = '********';

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

/** Percent-decoded; a plus sign stays one. Never throws. */
export function decodePercent(text: string, charset: 'utf8' | 'latin1' = 'utf8'): string {
  const bytes = text.replaceAll(/%[\da-f]{2}/gi, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16)));
  return Buffer.from(bytes, 'latin1').toString(charset);
}

export function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}

/** Masks the user information of URLs within a text, such as one that stands where no URL is expected. */
export function maskPasswords(text: string): string {
  return text.replaceAll(/:\/\/\S*@/g, `://${MASK}@`);
}
