/** How values are shown in a line of the log. Pure. */

/** Strings chosen by others are cut to this many characters. */
const LONGEST_TEXT = 512;

/** A text that is not too long. */
export function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`;
}

/** Milliseconds to the tenth. */
export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
