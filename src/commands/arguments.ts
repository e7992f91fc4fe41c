/**
 * Reads argv against the table of commands: an invocation that makes sense, or one line that says what does not and what was
 * probably meant. Of a value that may be a secret nothing is shown.
 */
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { findNearest } from '../config/load/nearest.ts';
import { COMMAND_NAMES, OPTION_NAMES, commandOf, optionOf, formatOption } from './command-table.ts';
import type { CommandName, OptionName } from './command-table.ts';

/** What was asked for. */
export interface Invocation {
  readonly command: CommandName;
  readonly operands: readonly string[];
  /** The values of options that take one, the last one given. */
  readonly values: ReadonlyMap<OptionName, string>;
  /** Every option that stands there. */
  readonly given: ReadonlySet<OptionName>;
}

export type ParsedArguments =
  | { readonly kind: 'invocation'; readonly invocation: Invocation }
  /** Of a command, or of the program as a whole. */
  | { readonly kind: 'help'; readonly command: CommandName | undefined }
  | { readonly kind: 'version' }
  | { readonly kind: 'misuse'; readonly why: string; readonly command: CommandName | undefined };

/** @param argv without the program's own name */
export function parseArguments(argv: readonly string[]): ParsedArguments {
  const { values, given, operands, unknown, fault } = parseOptions(argv);
  const [first, ...rest] = operands;
  const command = first === undefined ? 'run' : COMMAND_NAMES.find((name) => name === first);
  const topic = first === undefined ? undefined : command;
  // What follows an option that there is not may well be its value.
  if (unknown !== undefined && (command !== undefined || unknown.isFirst))
    return usageError(describeUnknownOption(unknown.rawName, command ?? 'run'), topic);
  if (fault !== undefined) return usageError(fault, topic);
  if (given.has('help')) return { kind: 'help', command: topic };
  if (given.has('version')) return { kind: 'version' };
  if (command === undefined) return usageError(describeUnknownCommand(first ?? ''));
  const invocation = { command, operands: rest, values, given };
  const why = usageFault(invocation);
  if (why !== undefined) return usageError(why, topic);
  if (command === 'help') return helpFor(rest[0]);
  return { kind: 'invocation', invocation };
}

interface ParsedOptions {
  readonly values: Map<OptionName, string>;
  readonly given: Set<OptionName>;
  readonly operands: string[];
  /** The first option that there is not, as written, and whether it stands before all operands. */
  readonly unknown: { readonly rawName: string; readonly isFirst: boolean } | undefined;
  /** The first thing wrong with one that there is. */
  readonly fault: string | undefined;
}

function parseOptions(argv: readonly string[]): ParsedOptions {
  // Not strict: its messages do not say what was meant, and show what may be a secret.
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(OPTION_NAMES.map((name) => [name, describeForParseArgs(name)])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<OptionName, string>();
  const given = new Set<OptionName>();
  const operands: string[] = [];
  const unknown: NonNullable<ParsedOptions['unknown']>[] = [];
  const faults: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const name = OPTION_NAMES.find((known) => known === token.name);
    if (name === undefined) {
      unknown.push({ rawName: token.rawName, isFirst: operands.length === 0 });
      continue;
    }
    given.add(name);
    if (token.value !== undefined) values.set(name, token.value);
    const fault = valueFault(name, token);
    if (fault !== undefined) faults.push(fault);
  }
  return { values, given, operands, unknown: unknown[0], fault: faults[0] };
}

function describeForParseArgs(name: OptionName): NonNullable<ParseArgsConfig['options']>[string] {
  const { value, short } = optionOf(name);
  const type = value === undefined ? 'boolean' : 'string';
  return short === undefined ? { type } : { type, short };
}

function valueFault(
  name: OptionName,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | undefined {
  if (optionOf(name).value === undefined) return value === undefined ? undefined : `--${name} takes no value`;
  // What looks like the next option is one; a value that begins so is written behind an equals sign.
  const isMissing = value === undefined || value === '' || (inlineValue === false && /^-./.test(value));
  return isMissing ? `expected a value: ${formatOption(name)}` : undefined;
}

/** Arguments that do not fit together, in words. */
function usageFault({ command, operands, values, given }: Invocation): string | undefined {
  const { operand, options } = commandOf(command);
  const extra = operands[operand === undefined ? 0 : 1];
  if (extra !== undefined) return `unexpected argument ${quoteArgument(extra)}`;
  const stray = [...given].find((name) => !options.includes(name));
  if (stray !== undefined) return `--${stray} belongs to ${describeCommandsWith(stray)}`;
  const probe = values.get('probe');
  if (probe !== undefined && !probe.startsWith('/')) return '--probe expects a path such as /quotes';
  return undefined;
}

function describeCommandsWith(option: OptionName): string {
  return joinWords(
    COMMAND_NAMES.filter((name) => commandOf(name).options.includes(option)),
    'and',
  );
}

function helpFor(topic: string | undefined): ParsedArguments {
  const command = COMMAND_NAMES.find((name) => name === topic);
  if (topic !== undefined && command === undefined) return usageError(describeUnknownCommand(topic));
  return { kind: 'help', command };
}

function describeUnknownCommand(name: string): string {
  const meant = findNearest(name, COMMAND_NAMES);
  const hint = meant === undefined ? `expected ${joinWords(COMMAND_NAMES, 'or')}` : `did you mean ${meant}?`;
  return `unknown command ${quoteArgument(name)}; ${hint}`;
}

function describeUnknownOption(rawName: string, command: CommandName): string {
  const candidates = [...commandOf(command).options, 'help', 'version'] as const;
  const meant = findNearest(rawName.replace(/^-+/, ''), candidates);
  return `unknown option ${quoteArgument(rawName)}${meant === undefined ? '' : `; did you mean --${meant}?`}`;
}

/** `a, b or c`. */
function joinWords(words: readonly string[], joint: string): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} ${joint} ${last}`;
}

/** Of a setting that is meant for the environment, its name alone: the value may be a secret. */
function quoteArgument(argument: string): string {
  return `"${argument.replace(/=.*/s, '=…')}"`;
}

function usageError(why: string, command?: CommandName): ParsedArguments {
  return { kind: 'misuse', why, command };
}
