/** Shell commands that a user may paste: this program again from the same directory, and words in quotes. */
import { existsSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { isSea } from 'node:sea';
import { toSingleLine } from '../config/load/problems.ts';

export interface ProgramContext {
  /** As it was called: `node`, the path of a Node.js such as `node_modules/.bin/node`, or the one-file binary. */
  readonly argv0: string;
  readonly script: string;
  /** The launcher of the clone that has the script; undefined elsewhere. */
  readonly launcher?: string | undefined;
  readonly isBinary: boolean;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The name on PATH or the path of the script; never `npx`, which outside of the clone fetches a package of this name and runs it. */
export function findProgramCommand({ argv0, script, launcher, isBinary, folder, env }: ProgramContext): string {
  if (isBinary) return quoteForShell(toSingleLine(argv0));
  // npm adds node_modules/.bin to PATH only for as long as its command runs.
  const isOnPath =
    !/node_modules[\\/]\.bin$/.test(dirname(script)) && (env.PATH ?? '').split(delimiter).includes(dirname(script));
  if (isOnPath && /[\\/]bearer-sidecar$/.test(script)) return 'bearer-sidecar';
  const words = launcher === undefined ? [argv0, script] : [launcher];
  return words.map((path) => quoteForShell(toSingleLine(shorten(path, folder)))).join(' ');
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
  const script = argv[1] ?? '';
  const launcher = join(dirname(script), '..', 'bearer-sidecar');
  const isClone = script.endsWith(join('dist', 'main.js')) && existsSync(launcher) && process.platform !== 'win32';
  const context = { argv0, script, launcher: isClone ? launcher : undefined, isBinary: isSea(), folder: process.cwd() };
  return findProgramCommand({ ...context, env });
}

/** `text` as one word of a POSIX shell, in quotes only where they are needed. */
export function quoteForShell(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
