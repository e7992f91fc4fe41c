/** The texts of --help: an overview for a screen of 80 by 24, and one for each command, from the command table. */
import { COMMAND_NAMES, SETTING_OPTION_NAMES, commandOf, optionOf, formatOption } from './command-table.ts';
import type { CommandName, OptionName } from './command-table.ts';
import { wrapText, type Paint } from './terminal.ts';

const LINE_WIDTH = 79;

const MINIMUM_SETTINGS = [
  'Settings: defaults < file < SIDECAR_ variables < flags. run requires',
  '  SIDECAR_BASE_URL  SIDECAR_AUTH_URL  SIDECAR_CLIENT_ID  SIDECAR_CLIENT_SECRET',
  '  (or …_FILE), with an API key SIDECAR_AUTH_TOKEN_FILE; init asks for them',
];

export function describeProgram(version: string, paint: Paint): string {
  const names = COMMAND_NAMES.map((name) => {
    const { operand, summary } = commandOf(name);
    return [operand === undefined ? name : `${name} ${operand}`, summary] as const;
  });
  return joinLines([
    paint('heading', `bearer-sidecar ${version}`),
    "OAuth 2.0 bearer tokens, throttling and retries in front of a partner's API",
    '',
    `${paint('heading', 'Usage:')} bearer-sidecar [COMMAND] [OPTIONS]`,
    '',
    ...formatColumns(names, paint),
    '',
    `  ${paint('name', '--config')} FILE, ${paint('name', '--set')} KEY=VALUE, ${paint('name', '--version')}; COMMAND ${paint('name', '--help')}: its options`,
    '',
    ...MINIMUM_SETTINGS,
    paint('quiet', 'Exit codes: 0 success, 1 failure, 2 wrong usage or settings'),
  ]);
}

export function describeCommand(name: CommandName, paint: Paint): string {
  const { summary, operand, options, description, examples } = commandOf(name);
  const usage = ['bearer-sidecar', name, operand, options.length > 0 ? '[OPTIONS]' : undefined];
  return joinLines([
    `${paint('heading', `bearer-sidecar ${name}`)}: ${summary}`,
    '',
    `${paint('heading', 'Usage:')} ${usage.filter((word) => word !== undefined).join(' ')}`,
    '',
    ...description.map((line) => `  ${line}`),
    '',
    paint('heading', 'Options'),
    ...describeOptions(name, options, paint),
    '',
    paint('heading', 'Examples'),
    ...examples.map((example) => `  ${example}`),
  ]);
}

/** With a text each, the flags of all settings would not fit the screen: `run` shows their names, other commands refer to it. */
function describeOptions(name: CommandName, options: readonly OptionName[], paint: Paint): string[] {
  const isForSettings = SETTING_OPTION_NAMES.every((option) => options.includes(option));
  const shown = isForSettings
    ? options.filter((option) => !SETTING_OPTION_NAMES.some((name) => name === option))
    : options;
  const rows = [...shown, 'help' as const].map(
    (option) => [formatOption(option), option === 'help' ? 'this text' : optionOf(option).description] as const,
  );
  if (!isForSettings) return formatColumns(rows, paint);
  if (name !== 'run') return formatColumns([...rows, ['--base-url …', 'any flag of a setting: see help run']], paint);
  const names = SETTING_OPTION_NAMES.map((option) => `--${option}`).join(' ');
  return [
    ...formatColumns(rows, paint),
    '  Flags of settings, most named as their variable; they win:',
    ...wrapText(names, LINE_WIDTH - 2).map((line) => `  ${paint('name', line)}`),
  ];
}

/** Two columns; padding is outside the colour, whose escapes have no width on the screen. */
function formatColumns(rows: readonly (readonly [string, string])[], paint: Paint): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${paint('name', left)}${' '.repeat(width - left.length)}  ${right}`);
}

function joinLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
