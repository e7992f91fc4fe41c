/**
 * `bearer-sidecar completion SHELL`: prints a completion script. The script contains all words, so that pressing Tab starts no
 * process.
 */
import type { CommandOutput } from '../config.ts';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import { buildVocabulary } from './vocabulary.ts';
import { zshScript } from './zsh.ts';

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** @returns the script, or exit code 2 with the expected shells */
export function renderCompletion(shell: string | undefined): CommandOutput {
  const script = Object.entries(SHELLS).find(([name]) => name === shell)?.[1];
  if (script !== undefined) return { exitCode: 0, stdout: script(buildVocabulary()), stderr: '' };
  const found = shell === undefined ? 'completion needs a shell' : `unknown shell ${JSON.stringify(shell)}`;
  return { exitCode: 2, stdout: '', stderr: `bearer-sidecar: ${found}; expected bash, zsh or fish\n` };
}
