/** The help fits the screen and is complete. */
import { describe, expect, test } from 'vitest';
import { COMMAND_NAMES, SETTING_OPTION_NAMES, commandOf, formatOption } from '../../src/commands/command-table.ts';
import type { OptionName } from '../../src/commands/command-table.ts';
import { describeCommand, describeProgram } from '../../src/commands/help.ts';
import { paintNothing } from '../../src/commands/terminal.ts';
import type { Paint } from '../../src/commands/terminal.ts';

const shout: Paint = (role, text) => `<${role}>${text}</>`;
const linesOf = (text: string): string[] => text.trimEnd().split('\n');

test('--help fits 80 by 24, with a line left for the prompt', () => {
  const lines = linesOf(describeProgram('10.20.30', paintNothing));
  expect(lines.length).toBeLessThanOrEqual(23);
  expect(lines.filter((line) => line.length > 79)).toEqual([]);
});

test('names every command and the required settings', () => {
  const text = describeProgram('1.2.3', paintNothing);
  for (const name of COMMAND_NAMES)
    expect(text).toMatch(new RegExp(`^  ${name} .*${commandOf(name).summary.slice(0, 10)}`, 'm'));
  for (const name of ['BASE_URL', 'AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET', 'AUTH_TOKEN_FILE'])
    expect(text).toContain(`SIDECAR_${name}`);
});

describe.each(COMMAND_NAMES)('help %s', (name) => {
  const text = describeCommand(name, paintNothing);
  test('fits the screen', () => {
    expect(linesOf(text).filter((line) => line.length > 79)).toEqual([]);
    expect(linesOf(text).length).toBeLessThanOrEqual(name === 'init' ? 31 : 23);
  });
  test('shows usage, options and an example', () => {
    expect(text).toContain(`\nUsage: bearer-sidecar ${name}`);
    const { options } = commandOf(name);
    const settings: readonly OptionName[] = options.includes('rate') && name !== 'init' ? SETTING_OPTION_NAMES : [];
    for (const option of options)
      if (!settings.includes(option)) expect(text).toContain(`\n  ${formatOption(option)} `);
      else if (name === 'run') expect(text).toMatch(new RegExp(` --${option}(?:\\s|$)`));
    if (settings.length > 0 && name !== 'run') expect(text).toMatch(/ see help run\n/);
    expect(text).toMatch(/\nExamples\n {2}\S/);
  });
});

test('colours do not change the text', () => {
  for (const text of [describeProgram('1.2.3', shout), describeCommand('init', shout)])
    expect(text).toMatch(/<heading>bearer-sidecar .*<name>--help/s);
  expect(describeProgram('1.2.3', shout).replaceAll(/<[a-z/]*>/g, '')).toBe(describeProgram('1.2.3', paintNothing));
});
