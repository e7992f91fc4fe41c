/** How the program was called, in the words that call it again from the same place. Pure; what is typed behind it is next-steps'. */
import { delimiter, dirname, relative } from 'node:path';
import { quoteForShell } from '../shell-quote.ts';

/** What a process knows of its own call. */
export interface ProgramContext {
  /** The program as it was named: `node`, or the one-file binary. */
  readonly argv0: string;
  /** The file that was run, an absolute path. */
  readonly script: string;
  /** The program is a one-file binary, and there is no other file. */
  readonly isBinary: boolean;
  /** The present folder. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Where npm, the shell or nobody else finds the command decides what has to be typed; words of a POSIX shell. */
export function findProgramCommand({ argv0, script, isBinary, folder, env }: ProgramContext): string {
  if (isBinary) return quoteForShell(argv0);
  // It finds the command in a clone, in a project's packages and in the registry: what it did once it does again.
  if (env.npm_command === 'exec') return 'npx bearer-sidecar';
  const isOnPath = (env.PATH ?? '').split(delimiter).includes(dirname(script));
  if (isOnPath && /[\\/]bearer-sidecar$/.test(script)) return 'bearer-sidecar';
  const below = relative(folder, script);
  return `node ${quoteForShell(below.startsWith('..') ? script : below)}`;
}
