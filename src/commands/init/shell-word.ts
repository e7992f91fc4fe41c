/** Quotes for a POSIX shell. */
import { onOneLine } from '../../config/load/problems.ts';

/** `text` as one word, quoted only where it has to be. */
export function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`;
}
