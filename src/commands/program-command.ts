/** Shell commands that a user may paste: this program again from the same directory, and words in quotes. */
import { delimiter, dirname, isAbsolute, relative, sep } from 'node:path';
import { isSea } from 'node:sea';
import { toSingleLine } from '../config/load/problems.ts';

export interface ProgramContext {
  /** As it was called: `node`, the path of a Node.js such as `node_modules/.bin/node`, or the one-file binary. */
  readonly argv0: string;
  readonly script: string;
  readonly isBinary: boolean;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The name on PATH or the path of the script; never `npx`, which outside of the clone fetches a package of this name and runs it. */
export function findProgramCommand({ argv0, script, isBinary, folder, env }: ProgramContext): string {
  if (isBinary) return quoteForShell(toSingleLine(argv0));
  // npm adds node_modules/.bin to PATH only for as long as its command runs.
  const isOnPath =
    !/node_modules[\\/]\.bin$/.test(dirname(script)) && (env.PATH ?? '').split(delimiter).includes(dirname(script));
  if (isOnPath && /[\\/]bearer-sidecar$/.test(script)) return 'bearer-sidecar';
  return [shorten(argv0, folder), shorten(script, folder)].map((path) => quoteForShell(toSingleLine(path))).join(' ');
}

function shorten(path: string, folder: string): string {
  if (!isAbsolute(path)) return path;
  const below = relative(folder, path);
  if (below.startsWith('..')) return path;
  // A shell looks a program up on PATH when its name has no separator.
  return below.includes(sep) ? below : `.${sep}${below}`;
}

export function ownProgramCommand(env: ProgramContext['env']): string {
  const { argv0, argv } = process;
  return findProgramCommand({ argv0, script: argv[1] ?? '', isBinary: isSea(), folder: process.cwd(), env });
}

/** `text` as one word of a POSIX shell, in quotes only where they are needed. */
export function quoteForShell(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
