/** Quotes for a POSIX shell. */
import { toSingleLine } from '../../config/load/problems.ts';

/** `text` as one word, quoted only where it has to be. */
export function quoteForShell(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${toSingleLine(text).replaceAll("'", String.raw`'\''`)}'`;
}
