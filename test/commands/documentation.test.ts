/** Every command that docs/command-line.md and the help show is one that the program understands. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseArguments } from '../../src/commands/arguments.ts';
import { COMMAND_NAMES, commandOf } from '../../src/commands/command-table.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'command-line.md'), 'utf8');
const BLOCKS = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);

/** What a shell would hand over, of lines as simple as ours. */
function commandsIn(text: string): string[][] {
  const calls = text.replaceAll('\\\n', ' ').matchAll(/\bbearer-sidecar(?![-.\w])([^\n)>|&]*)/g);
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

test('the page shows every command that a person starts with', () => {
  const shown = new Set(BLOCKS.flatMap(commandsIn).map(([first = '']) => (first.startsWith('-') ? 'run' : first)));
  expect([...shown].sort()).toEqual(['check', 'completion', 'config', 'init', 'run', 'sandbox']);
});
