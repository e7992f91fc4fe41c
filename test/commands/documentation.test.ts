/** The program accepts every command in docs/command-line.md and in the help. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseArguments } from '../../src/commands/arguments.ts';
import { COMMAND_NAMES, commandOf } from '../../src/commands/command-table.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'command-line.md'), 'utf8');
const BLOCKS = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);

/** The arguments that a shell would pass, for simple lines. */
function commandsIn(text: string): string[][] {
  const calls = text.replaceAll('\\\n', ' ').matchAll(/\bbearer-sidecar(?![-.\w])([^\n)<>|&]*)/g);
  return [...calls].map(([, rest = '']) =>
    [...rest.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? ''),
  );
}

test.each(BLOCKS.flatMap(commandsIn))('the page: bearer-sidecar %s', (...argv) => {
  expect(parseArguments(argv)).toMatchObject({ kind: 'invocation' });
});

test.each(COMMAND_NAMES.flatMap((name) => commandOf(name).examples.flatMap(commandsIn)))(
  'the help: bearer-sidecar %s',
  (...argv) => {
    expect(parseArguments(argv)).toMatchObject({ kind: expect.stringMatching(/^(invocation|help)$/) as string });
  },
);

test('the page shows every command for users', () => {
  const shown = new Set(BLOCKS.flatMap(commandsIn).map(([first = '']) => (first.startsWith('-') ? 'run' : first)));
  expect([...shown].sort()).toEqual(['check', 'config', 'init', 'reload', 'run', 'sandbox', 'status', 'unknown-calls']);
});
