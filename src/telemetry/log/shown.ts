/** How values are shown in a line of the log. Pure. */

/** Strings chosen by others are cut to this many characters. */
const MAX_TEXT_CHARS = 512;

/** A text that is not too long. */
export function truncate(text: string): string {
  return text.length <= MAX_TEXT_CHARS ? text : `${text.slice(0, MAX_TEXT_CHARS)}…`;
}

/** Milliseconds to the tenth. */
export function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
