/** The shell command that runs this program again from the same directory. */
import { delimiter, dirname, relative } from 'node:path';
import { isSea } from 'node:sea';
import { toSingleLine } from '../config/load/problems.ts';
import { quoteForShell } from './shell-quote.ts';

export interface ProgramContext {
  /** `node`, or the one-file binary. */
  readonly argv0: string;
  readonly script: string;
  readonly isBinary: boolean;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Chooses `npx`, the name on PATH or the path of the script, quoted for a POSIX shell. */
export function findProgramCommand({ argv0, script, isBinary, folder, env }: ProgramContext): string {
  if (isBinary) return quoteForShell(toSingleLine(argv0));
  // npx found the command once and finds it again, in a clone, a project or the registry.
  if (env.npm_command === 'exec') return 'npx bearer-sidecar';
  const isOnPath = (env.PATH ?? '').split(delimiter).includes(dirname(script));
  if (isOnPath && /[\\/]bearer-sidecar$/.test(script)) return 'bearer-sidecar';
  const below = relative(folder, script);
  return `node ${quoteForShell(toSingleLine(below.startsWith('..') ? script : below))}`;
}

export function ownProgramCommand(env: ProgramContext['env']): string {
  const { argv0, argv } = process;
  return findProgramCommand({ argv0, script: argv[1] ?? '', isBinary: isSea(), folder: process.cwd(), env });
}
