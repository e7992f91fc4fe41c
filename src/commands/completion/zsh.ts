/** Completion for zsh with its _arguments function. */
import type { CompletionCommand, CompletionOption, CompletionVocabulary } from './vocabulary.ts';

/** The script, to be sourced after compinit or put into a directory of $fpath as _bearer-sidecar. */
export function zshScript({ commands, options }: CompletionVocabulary): string {
  return `#compdef bearer-sidecar
# zsh completion for bearer-sidecar
_bearer-sidecar() {
  local context state state_descr line
  local -A opt_args
  local -a commands
  _arguments -C \\
${options.map(formatArgument).join('\n')}
    '1: :->command' \\
    '*:: :->operand'
  case $state in
    command)
      commands=(
${commands.map(({ text, meaning }) => `        ${quote(`${text}:${meaning}`)}`).join('\n')}
      )
      _describe command commands
      ;;
    operand)
      case $line[1] in
${commands.map(formatCommandCase).join('\n')}
      esac
      ;;
  esac
}
if [[ $funcstack[1] == _bearer-sidecar ]]; then
  _bearer-sidecar "$@"
else
  compdef _bearer-sidecar bearer-sidecar
fi
`;
}

function formatCommandCase({ text, options, operands }: CompletionCommand): string {
  const rest = operands.length === 0 ? '' : ` \\\n            ${quote(`1: :(${operands.join(' ')})`)}`;
  const named = options.map((option) => `            ${quote(formatSpecification(option))}`).join(' \\\n');
  return `        ${text})\n          _arguments \\\n${named}${rest}\n          ;;`;
}

function formatArgument(option: CompletionOption): string {
  return `    ${quote(formatSpecification(option))} \\`;
}

function formatSpecification({ text, meaning, value, isFile, keys }: CompletionOption): string {
  const action = keys.length > 0 ? `{compadd -S = -- ${keys.join(' ')}}` : isFile ? '_files' : '';
  const words = `[${meaning.replaceAll(/[[\]\\:]/g, String.raw`\$&`)}]`;
  return value === undefined ? text + words : `${text}=${words}:${value}:${action}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
