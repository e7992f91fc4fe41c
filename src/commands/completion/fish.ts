/** Completion for fish: one line per word, with its description. */
import type { CompletionCommand, CompletionOption, CompletionVocabulary } from './vocabulary.ts';

/** The script, to be sourced or put into ~/.config/fish/completions/bearer-sidecar.fish. */
export function fishScript({ commands, options }: CompletionVocabulary): string {
  const first = 'not __fish_seen_subcommand_from $bearer_sidecar_commands';
  return `# fish completion for bearer-sidecar
set -g bearer_sidecar_commands ${commands.map(({ text }) => text).join(' ')}
complete -c bearer-sidecar -f
${commands.map(({ text, meaning }) => formatCompletionLine(first, `-a ${text}`, meaning)).join('\n')}
${options.map((option) => formatOptionLine(first, option)).join('\n')}
${commands.flatMap(formatCommandLines).join('\n')}
`;
}

function formatCommandLines({ text, options, operands }: CompletionCommand): string[] {
  const seen = `__fish_seen_subcommand_from ${text}`;
  return [
    ...options.map((option) => formatOptionLine(seen, option)),
    ...(operands.length === 0 ? [] : [`complete -c bearer-sidecar -n ${quote(seen)} -a ${quote(operands.join(' '))}`]),
  ];
}

function formatOptionLine(condition: string, { text, meaning, value, isFile, keys }: CompletionOption): string {
  const words = keys.length === 0 ? '' : ` -a ${quote(keys.map((key) => `${key}=`).join(' '))}`;
  const needs = value === undefined ? '' : isFile ? ' -r -F' : ` -x${words}`;
  return formatCompletionLine(condition, `-l ${text.slice('--'.length)}${needs}`, meaning);
}

function formatCompletionLine(condition: string, what: string, meaning: string): string {
  return `complete -c bearer-sidecar -n ${quote(condition)} ${what} -d ${quote(meaning)}`;
}

function quote(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
