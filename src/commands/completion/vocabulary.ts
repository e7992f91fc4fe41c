/** The words that a shell may offer, taken from the table of commands and the schema. In which syntax is left to each shell's file. */
import { listSections } from '../../config/load/sections.ts';
import { LIST_KEYS } from '../../config/schema/schema-routes.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import { COMMAND_NAMES, commandOf, optionOf } from '../command-table.ts';
import type { CommandName, OptionName } from '../command-table.ts';

/** A word that may be typed, with what it means. */
interface CompletionWord {
  readonly text: string;
  readonly meaning: string;
}

/** An option as shells see it. */
export interface CompletionOption extends CompletionWord {
  /** What follows it; undefined: nothing. */
  readonly value: string | undefined;
  readonly isFile: boolean;
}

/** What may be typed behind one command. */
export interface CompletionCommand extends CompletionWord {
  readonly options: readonly CompletionOption[];
  readonly operands: readonly string[];
}

/** Everything there is. */
export interface CompletionVocabulary {
  readonly commands: readonly CompletionCommand[];
  /** What may stand where no command does. */
  readonly options: readonly CompletionOption[];
}

/** The words of this version. */
export function buildVocabulary(): CompletionVocabulary {
  const commands = COMMAND_NAMES.map((name) => ({
    text: name,
    meaning: commandOf(name).summary,
    options: [...commandOf(name).options, 'help' as const].map(toCompletionOption),
    operands: listOperands(name),
  }));
  return { commands, options: (['config', 'help', 'version'] as const).map(toCompletionOption) };
}

function toCompletionOption(name: OptionName): CompletionOption {
  const { description, value, isFile = false } = optionOf(name);
  return { text: `--${name}`, meaning: description, value, isFile };
}

function listOperands(name: CommandName): readonly string[] {
  const { completions = [] } = commandOf(name);
  if (completions === 'commands') return COMMAND_NAMES;
  return completions === 'keys'
    ? [...new Set([...listSections(SETTINGS.keys()), ...SETTINGS.keys(), ...LIST_KEYS])]
    : completions;
}
