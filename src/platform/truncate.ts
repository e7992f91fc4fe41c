/** Cuts texts of clients and servers before they are kept, logged or sent (pure). */

/** What fits a log line. */
export const MAX_UNCUT_CHARS = 512;

/** @param mark by which a secret that is cut there is still recognized: an ellipsis, or three dots */
export function truncate(text: string, maxChars = MAX_UNCUT_CHARS, mark: '…' | '...' = '…'): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}${mark}`;
}

/** Quotes text of another party for a message: shortened, on one line and in printable ASCII. */
export function quoteForMessage(text: string, maxChars = 100): string {
  return JSON.stringify(truncate(text, maxChars, '...')).replace(/[^\x20-\x7e]/g, '?');
}
