/** `text` as one word of a POSIX shell, in quotes only where they are needed. */
export function quoteForShell(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
