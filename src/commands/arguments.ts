/** Parses argv with the command table. A fault is one line with the name that was probably meant, never a value that may be a secret. */
import { parseArgs } from 'node:util';
import type { FlagSetting } from '../config/load/flags.ts';
import { findNearest } from '../config/load/nearest.ts';
import { COMMAND_NAMES, OPTION_NAMES, commandOf, optionOf, formatOption } from './command-table.ts';
import type { CommandName, OptionName } from './command-table.ts';

export interface Invocation {
  readonly command: CommandName;
  readonly operands: readonly string[];
  readonly values: ReadonlyMap<OptionName, string>;
  readonly given: ReadonlySet<OptionName>;
  /** The ids of all `--settle`. */
  readonly settled: readonly string[];
  readonly flags: readonly FlagSetting[];
}

export type ParsedArguments =
  | { readonly kind: 'invocation'; readonly invocation: Invocation }
  | { readonly kind: 'help'; readonly command: CommandName | undefined }
  | { readonly kind: 'version' }
  | { readonly kind: 'misuse'; readonly why: string; readonly command: CommandName | undefined };

export function parseArguments(argv: readonly string[]): ParsedArguments {
  const { values, given, settled, flags, operands, unknown, fault } = parseOptions(argv);
  const [first, ...rest] = operands;
  const command = first === undefined ? 'run' : COMMAND_NAMES.find((name) => name === first);
  const topic = first === undefined ? undefined : command;
  // The text after an unknown option may be its value.
  if (unknown !== undefined && (command !== undefined || unknown.isFirst))
    return usageError(describeUnknownOption(unknown.rawName, command ?? 'run'), topic);
  if (fault !== undefined) return usageError(fault, topic);
  if (given.has('help')) return { kind: 'help', command: topic };
  if (given.has('version')) return { kind: 'version' };
  if (command === undefined) return usageError(describeUnknownCommand(first ?? ''));
  const invocation = { command, operands: rest, values, given, settled, flags };
  const why = usageFault(invocation);
  if (why !== undefined) return usageError(why, topic);
  if (command === 'help') return helpFor(rest[0]);
  return { kind: 'invocation', invocation };
}

/** `unknown` is the first unknown option, as written; `fault` is the first one of a known option. */
function parseOptions(argv: readonly string[]) {
  // Not strict: its messages suggest no name, and may show a secret.
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      OPTION_NAMES.map((name) => {
        const { value, short } = optionOf(name);
        return [name, { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) }];
      }),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<OptionName, string>();
  const given = new Set<OptionName>();
  const settled: string[] = [];
  const flags: FlagSetting[] = [];
  const operands: string[] = [];
  const unknown: { readonly rawName: string; readonly isFirst: boolean }[] = [];
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
    if (name === 'settle') settled.push(token.value ?? '');
    const fault = valueFault(name, token);
    if (fault !== undefined) faults.push(fault);
    else flags.push(...readFlag(name, token.value));
  }
  return { values, given, settled, flags, operands, unknown: unknown[0], fault: faults[0] };
}

function valueFault(
  name: OptionName,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | undefined {
  const { refused, setting, value: placeholder } = optionOf(name);
  if (refused !== undefined) return `--${name}: ${refused}`;
  if (placeholder === undefined && value === undefined) return undefined;
  if (placeholder === undefined && setting === undefined) return `--${name} takes no value`;
  // A value that begins with a dash must be written after an equals sign.
  const isMissing = value === undefined || value === '' || (inlineValue === false && /^-./.test(value));
  const isPair = name !== 'set' || /^[^=]+=./s.test(value ?? '');
  return isMissing || !isPair ? `expected a value: ${formatOption(name)}` : undefined;
}

function readFlag(name: OptionName, value: string | undefined): FlagSetting[] {
  const flag = `--${name}`;
  const { setting } = optionOf(name);
  if (setting !== undefined) return [{ flag, key: setting, text: value ?? 'true' }];
  if (name !== 'set' || value === undefined) return [];
  const at = value.indexOf('=');
  return [{ flag, key: value.slice(0, at), text: value.slice(at + 1) }];
}

function usageFault({ command, operands, values, given }: Invocation): string | undefined {
  const { operand, options } = commandOf(command);
  const extra = operands[operand === undefined ? 0 : 1];
  if (extra !== undefined) return `unexpected argument ${quoteArgument(extra)}`;
  const stray = [...given].find((name) => !options.includes(name));
  const owners = COMMAND_NAMES.filter((name) => stray !== undefined && commandOf(name).options.includes(stray));
  if (stray !== undefined) return `--${stray} belongs to ${joinWords(owners, 'and')}`;
  const probe = values.get('probe');
  if (probe !== undefined && !probe.startsWith('/')) return '--probe expects a path such as /quotes';
  return undefined;
}

function helpFor(topic: string | undefined): ParsedArguments {
  const command = COMMAND_NAMES.find((name) => name === topic);
  if (topic !== undefined && command === undefined) return usageError(describeUnknownCommand(topic));
  return { kind: 'help', command };
}

function describeUnknownCommand(name: string): string {
  // The start files of a shell may still name it.
  if (name === 'completion') return 'the command completion is gone; remove it from the start files of your shell';
  const meant = findNearest(name, COMMAND_NAMES);
  const hint = meant === undefined ? `expected ${joinWords(COMMAND_NAMES, 'or')}` : `did you mean ${meant}?`;
  return `unknown command ${quoteArgument(name)}; ${hint}`;
}

function describeUnknownOption(rawName: string, command: CommandName): string {
  const candidates = [...commandOf(command).options, 'help', 'version'] as const;
  const meant = findNearest(rawName.replace(/^-+/, ''), candidates);
  return `unknown option ${quoteArgument(rawName)}${meant === undefined ? '' : `; did you mean --${meant}?`}`;
}

function joinWords(words: readonly string[], joint: string): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} ${joint} ${last}`;
}

/** Shows only the name of a `NAME=value` argument: the value may be a secret. */
function quoteArgument(argument: string): string {
  return `"${argument.replace(/=.*/s, '=…')}"`;
}

function usageError(why: string, command?: CommandName): ParsedArguments {
  return { kind: 'misuse', why, command };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Undefined for another text. Default unit: seconds. */
export function parseDurationMs(text: string): number | undefined {
  const [, number, unit = 's'] = /^(\d{1,6})(ms|[smhd])?$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS_MS[unit] ?? NaN);
}
