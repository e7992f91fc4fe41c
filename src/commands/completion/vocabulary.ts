/** The words for completion, from the command table and the schema. Each shell's file adds the syntax. */
import { listSections } from '../../config/load/sections.ts';
import { LIST_KEYS } from '../../config/schema/schema-routes.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import { COMMAND_NAMES, commandOf, optionOf } from '../command-table.ts';
import type { CommandName, OptionName } from '../command-table.ts';

/** A word with its description. */
interface CompletionWord {
  readonly text: string;
  readonly meaning: string;
}

export interface CompletionOption extends CompletionWord {
  /** Undefined: a flag. */
  readonly value: string | undefined;
  readonly isFile: boolean;
  /** Words for its value, each followed by an equals sign; empty: none. */
  readonly keys: readonly string[];
}

export interface CompletionCommand extends CompletionWord {
  readonly options: readonly CompletionOption[];
  readonly operands: readonly string[];
}

export interface CompletionVocabulary {
  readonly commands: readonly CompletionCommand[];
  /** Options without a command. */
  readonly options: readonly CompletionOption[];
}

export function buildVocabulary(): CompletionVocabulary {
  const commands = COMMAND_NAMES.map((name) => ({
    text: name,
    meaning: commandOf(name).summary,
    options: [...commandOf(name).options, 'help' as const].map(toCompletionOption),
    operands: listOperands(name),
  }));
  return {
    commands,
    options: [...commandOf('run').options, 'help' as const, 'version' as const].map(toCompletionOption),
  };
}

function toCompletionOption(name: OptionName): CompletionOption {
  const { description, value, isFile = false } = optionOf(name);
  const keys = name === 'set' ? listSettableKeys() : [];
  return { text: `--${name}`, meaning: description, value, isFile, keys };
}

/** Without those that an argument may not hold. */
function listSettableKeys(): readonly string[] {
  return [...SETTINGS].flatMap(([key, { sensitive }]) => (sensitive && key !== 'auth.clientId' ? [] : [key]));
}

function listOperands(name: CommandName): readonly string[] {
  const { completions = [] } = commandOf(name);
  if (completions === 'commands') return COMMAND_NAMES;
  return completions === 'keys'
    ? [...new Set([...listSections(SETTINGS.keys()), ...SETTINGS.keys(), ...LIST_KEYS])]
    : completions;
}
