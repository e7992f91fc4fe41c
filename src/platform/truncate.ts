/** Cuts texts of clients and servers before they are kept, logged or sent (pure). */

/** @param maxChars default: what fits a log line */
export function truncate(text: string, maxChars = 512): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}
