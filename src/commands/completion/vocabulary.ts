/** The words that a shell may offer, taken from the table of commands and the schema. In which syntax is left to each shell's file. */
import { SETTINGS } from '../../config/schema/schema.ts';
import { COMMAND_NAMES, commandOf, optionOf } from '../command-table.ts';
import type { CommandName, OptionName } from '../command-table.ts';

/** A word that may be typed, with what it means. */
interface Word {
  readonly text: string;
  readonly meaning: string;
}

/** An option as shells see it. */
export interface Option extends Word {
  /** What follows it; undefined: nothing. */
  readonly value: string | undefined;
  readonly isFile: boolean;
}

/** What may be typed behind one command. */
export interface Command extends Word {
  readonly options: readonly Option[];
  readonly operands: readonly string[];
}

/** Everything there is. */
export interface Vocabulary {
  readonly commands: readonly Command[];
  /** What may stand where no command does. */
  readonly options: readonly Option[];
}

/** In a file, and no settings of their own. */
const LISTS = ['credentials', 'routes'];

/** The words of this version. */
export function readVocabulary(): Vocabulary {
  const commands = COMMAND_NAMES.map((name) => ({
    text: name,
    meaning: commandOf(name).summary,
    options: [...commandOf(name).options, 'help' as const].map(describe),
    operands: operandsOf(name),
  }));
  return { commands, options: (['config', 'help', 'version'] as const).map(describe) };
}

function describe(name: OptionName): Option {
  const { words, value, isFile = false } = optionOf(name);
  return { text: `--${name}`, meaning: words, value, isFile };
}

function operandsOf(name: CommandName): readonly string[] {
  const { offers = [] } = commandOf(name);
  if (offers === 'commands') return COMMAND_NAMES;
  return offers === 'keys' ? [...new Set([...sections(), ...SETTINGS.keys(), ...LISTS])] : offers;
}

function sections(): string[] {
  return [...SETTINGS.keys()].flatMap((key) => {
    const above = key.split('.').slice(0, -1);
    return above.map((_, depth) => above.slice(0, depth + 1).join('.'));
  });
}
