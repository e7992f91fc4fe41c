/** Cuts texts of clients and servers before they are kept, logged or sent (pure). */

/** @param maxChars default: what fits a log line */
export function truncate(text: string, maxChars = 512): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}

/** Quotes text of another party for a message: shortened, on one line and in printable ASCII. */
export function quoteForMessage(text: string, maxChars = 100): string {
  return JSON.stringify(text.slice(0, maxChars)).replace(/[^\x20-\x7e]/g, '?');
}
