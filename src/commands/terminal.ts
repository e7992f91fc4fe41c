/**
 * Text on a terminal: colours, width and line breaks. Node.js decides from the stream, NO_COLOR, FORCE_COLOR and TERM=dumb whether
 * there are colours; callers name the role of a text, not its colour.
 */
import { styleText } from 'node:util';
import { toSingleLine } from '../config/load/problems.ts';

export type TextRole = keyof typeof STYLES;

export type Paint = (role: TextRole, text: string) => string;

const STYLES = {
  heading: 'bold',
  name: 'cyan',
  quiet: 'dim',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
} as const;

const DEFAULT_COLUMNS = 80;

export function paintFor(stream: NodeJS.WritableStream): Paint {
  return (role, text) => styleText(STYLES[role], text, { stream });
}

export const paintNothing: Paint = (_role, text) => text;

/** Writes each reason as one line to stderr. @returns the exit code */
export function failWith(exitCode: 1 | 2, ...reasons: readonly string[]): number {
  for (const reason of reasons) process.stderr.write(`bearer-sidecar: ${toSingleLine(reason)}\n`);
  return exitCode;
}

export function terminalWidthOf({ columns }: Pick<NodeJS.WriteStream, 'columns'>): number {
  // Some terminals do not know their size and report 0.
  return columns > 0 ? columns : DEFAULT_COLUMNS;
}

/** Lines of at most `width` characters, broken between words. A longer word gets a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
