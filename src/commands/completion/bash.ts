/** Completion for bash 3.2 and newer, without the bash-completion package. */
import type { CompletionCommand, CompletionOption, CompletionVocabulary } from './vocabulary.ts';

/** The script, to be sourced. */
export function bashScript({ commands, options }: CompletionVocabulary): string {
  const all = [...options, ...commands.flatMap((command) => command.options)];
  const files = toPattern(all.filter(({ isFile }) => isFile));
  const keyed = all.find(({ keys }) => keys.length > 0);
  const others = toPattern(
    all.filter(({ isFile, value, keys }) => !isFile && value !== undefined && keys.length === 0),
  );
  return `${completeValue(files, others, keyed)}${findCommand(`${files}|${others}|${keyed?.text ?? files}`)}  case $command in
    '')
      words='${joinTexts(commands)}'
      options='${joinTexts(options)}'
      ;;
${commands.map(formatCommandCase).join('\n')}
  esac
  [[ $current == -* || -z $words ]] && words=$options
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _bearer_sidecar bearer-sidecar
`;
}

/** Completes the value of an option. */
function completeValue(files: string, others: string, keyed: CompletionOption | undefined): string {
  return `# bash completion for bearer-sidecar
_bearer_sidecar() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local command='' words='' options='' i
  COMPREPLY=()
  # In --config=FILE the equals sign is a word of its own.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = && $COMP_CWORD -gt 1 ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case $previous in
    ${files})
      compopt -o filenames 2>/dev/null
      local IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$current"))
      return
      ;;
${keyed === undefined ? '' : formatKeyCase(keyed)}    ${others}) return ;;
  esac
`;
}

/** The equals sign follows at once. */
function formatKeyCase({ text, keys }: CompletionOption): string {
  return `    ${text})
      compopt -o nospace 2>/dev/null
      COMPREPLY=($(compgen -S = -W '${keys.join(' ')}' -- "$current"))
      return
      ;;
`;
}

/** Finds the first word that is neither an option nor its value. */
function findCommand(withValue: string): string {
  return `  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      ${withValue})
        [[ \${COMP_WORDS[i + 1]} == = ]] && ((i++))
        ((i++))
        ;;
      # The value of a key, as in --set KEY=VALUE.
      =) ((i++)) ;;
      -*) ;;
      *)
        command=\${COMP_WORDS[i]}
        break
        ;;
    esac
  done
`;
}

function formatCommandCase({ text, options, operands }: CompletionCommand): string {
  return `    ${text})
      words='${operands.join(' ')}'
      options='${joinTexts(options)}'
      ;;`;
}

function joinTexts(entries: readonly { readonly text: string }[]): string {
  return entries.map(({ text }) => text).join(' ');
}

function toPattern(options: readonly CompletionOption[]): string {
  return [...new Set(options.map(({ text }) => text))].join('|');
}
