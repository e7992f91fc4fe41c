/** Completion in the shells that people have: bash and zsh with a person pressing Tab, fish asked for what it would offer. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/commands/command-table.ts';
import { PROGRAM_COMMAND, openTerminal } from '../support/terminal.ts';

const sh = promisify(execFile);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sidecar-completion-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await sh('sh', ['-c', `${PROGRAM_COMMAND} completion ${shell}`]);
    await writeFile(join(folder, `completion.${shell}`), stdout);
  }
  for (const name of ['partner.yaml', 'with blank.yaml']) await writeFile(join(folder, name), '');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What is typed, Tab included, and what the program would have been called with. */
const TYPED = [
  ['sandb\t', 'sandbox'],
  ['compl\tz\t', 'completion zsh'],
  ['check --js\t', 'check --json'],
  ['config throttle.maxI\t', 'config throttle.maxInFlight'],
  ['check --set throttle.maxI\t5', /^check --set[ =]throttle\.maxInFlight=5$/],
  ['--set throttle.rate=5 che\t', '--set throttle.rate=5 check'],
  ['--max-in\t5', /^--max-in-flight[ =]5$/],
  ['health sta\t', 'health startup'],
  ['help wa\t', 'help wait'],
  ['check --config part\t', 'check --config partner.yaml'],
  ['--config=part\t', '--config=partner.yaml'],
  ['--config with\t', '--config with blank.yaml'],
  ['--config part\tche\t--pro\t/x', /^--config partner\.yaml check --probe[ =]\/x$/],
  ['init --client-s\tpart\t', /^init --client-secret-file[ =]partner\.yaml$/],
] as const;

/** In place of the program, its arguments: "called with" and them. */
const IN_ITS_PLACE = `bearer-sidecar() { printf 'called with <%s>\\n' "$*"; }`;

describe.each([
  ['bash', 'bash --norc --noprofile -i', `PS1='ready> '; ${IN_ITS_PLACE}; . ./completion.bash`],
  [
    'zsh',
    'zsh -f -i',
    `PS1='ready> '; unsetopt beep; autoload -Uz compinit; compinit -u -D; ${IN_ITS_PLACE}; . ./completion.zsh`,
  ],
] as const)('%s', (shell, command, setUp) => {
  it('completes commands, options, keys and files', { timeout: 60_000 }, async () => {
    await using terminal = openTerminal({ name: `completion-${shell}`, command, cwd: folder });
    terminal.type(`${setUp}; echo set-up-is-'done'\n`);
    await terminal.waitFor(/set-up-is-done/);
    for (const [keys, expected] of TYPED) {
      await terminal.waitFor(/ready> /);
      terminal.type(`bearer-sidecar ${keys}\n`);
      const called = /called with <(.*)>/.exec(await terminal.waitFor(/called with <.*>/))?.[1]?.trim();
      if (typeof expected === 'string') expect(called).toBe(expected);
      else expect(called).toMatch(expected);
    }
    await terminal.waitFor(/ready> /);
    terminal.type('exit\n');
    await terminal.exit;
  });
});

it('zsh takes the script from a directory of its functions, too', async () => {
  const setUp = `fpath=(${folder} $fpath); cp completion.zsh _bearer-sidecar; autoload -Uz compinit; compinit -u -D`;
  const { stdout } = await sh('zsh', ['-f', '-c', `${setUp}; echo $_comps[bearer-sidecar]`], { cwd: folder });
  expect(stdout).toBe('_bearer-sidecar\n');
});

it('fish offers commands, options, keys and files, with what they mean', async () => {
  const offered = async (line: string): Promise<string[]> => {
    const command = `source completion.fish; complete -C ${JSON.stringify(`bearer-sidecar ${line}`)}`;
    const env = { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8' };
    const { stdout } = await sh('fish', ['--no-config', '-c', command], { cwd: folder, env });
    return stdout.split('\n').filter((entry) => entry !== '');
  };
  const wordsOf = (lines: string[]): string[] => lines.map((line) => line.split('\t')[0] ?? '');
  expect(wordsOf(await offered('')).sort()).toEqual([...COMMAND_NAMES].sort());
  expect(await offered('sandb')).toEqual(['sandbox\ttry it in front of a simulated partner']);
  expect(wordsOf(await offered('wait --')).sort()).toEqual(['--admin-listen', '--config', '--help', '--max', '--set']);
  expect(wordsOf(await offered('check --'))).toEqual(expect.arrayContaining(['--json', '--base-url', '--set']));
  expect(wordsOf(await offered('check --client-s'))).toEqual(['--client-secret-file']);
  expect(wordsOf(await offered('check --set throttle.maxI'))).toEqual(['throttle.maxInFlight=']);
  expect(await offered('check --set auth.clientSecr')).toEqual([
    'auth.clientSecretFile=\tany setting, such as throttle.rate=5',
  ]);
  expect(wordsOf(await offered('config throttle.maxI'))).toEqual(['throttle.maxInFlight']);
  expect(wordsOf(await offered('health '))).toEqual(['live', 'ready', 'startup']);
  expect(wordsOf(await offered('check --config part'))).toEqual(['partner.yaml']);
  expect(await offered('wait --max ')).toEqual([]);
});
