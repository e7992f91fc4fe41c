/** Formats values for log lines and spans. Pure. */

/** Texts from clients and servers are cut to this length. */
const MAX_TEXT_CHARS = 512;

export function truncate(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : `${text.slice(0, MAX_TEXT_CHARS)}…`;
}

/** Rounds to one decimal. */
export function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
