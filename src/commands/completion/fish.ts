/** Completion for fish: one line for each word, with what it means. */
import type { Command, Option, Vocabulary } from './vocabulary.ts';

/** The script, to be sourced or put into ~/.config/fish/completions/bearer-sidecar.fish. */
export function fishScript({ commands, options }: Vocabulary): string {
  const first = 'not __fish_seen_subcommand_from $bearer_sidecar_commands';
  return `# fish completion for bearer-sidecar
set -g bearer_sidecar_commands ${commands.map(({ text }) => text).join(' ')}
complete -c bearer-sidecar -f
${commands.map(({ text, meaning }) => line(first, `-a ${text}`, meaning)).join('\n')}
${options.map((option) => optionLine(first, option)).join('\n')}
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ text, options, operands }: Command): string[] {
  const behind = `__fish_seen_subcommand_from ${text}`;
  return [
    ...options.map((option) => optionLine(behind, option)),
    ...(operands.length === 0
      ? []
      : [`complete -c bearer-sidecar -n ${quote(behind)} -a ${quote(operands.join(' '))}`]),
  ];
}

function optionLine(condition: string, { text, meaning, value, isFile }: Option): string {
  const needs = value === undefined ? '' : isFile ? ' -r -F' : ' -x';
  return line(condition, `-l ${text.slice('--'.length)}${needs}`, meaning);
}

function line(condition: string, what: string, meaning: string): string {
  return `complete -c bearer-sidecar -n ${quote(condition)} ${what} -d ${quote(meaning)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
