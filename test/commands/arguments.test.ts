/** Parsing of argv, and the messages for invalid arguments. */
import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../src/commands/arguments.ts';
import { COMMAND_NAMES, SETTING_OPTION_NAMES, optionOf } from '../../src/commands/command-table.ts';
import { settingOf } from '../../src/config/schema/schema.ts';

const words = (line: string): string[] => line.split(' ').filter((word) => word !== '');
const misuse = (line: string): string => {
  const reading = parseArguments(words(line));
  if (reading.kind !== 'misuse') throw new Error(`understood as ${reading.kind}`);
  return reading.why;
};

describe('an invocation', () => {
  test.each([
    ['', 'run', [], {}],
    ['run', 'run', [], {}],
    ['--config a.yaml', 'run', [], { config: 'a.yaml' }],
    ['--config=a.yaml check', 'check', [], { config: 'a.yaml' }],
    ['check --config a.yaml --config b.yaml', 'check', [], { config: 'b.yaml' }],
    ['check --probe /quotes', 'check', [], { probe: '/quotes' }],
    ['health ready', 'health', ['ready'], {}],
    ['health -- ready', 'health', ['ready'], {}],
    ['wait --max 5s', 'wait', [], { max: '5s' }],
    ['config throttle', 'config', ['throttle'], {}],
    ['init --scope=-odd-', 'init', [], { scope: '-odd-' }],
  ])('"%s"', (line, command, operands, values) => {
    const reading = parseArguments(words(line));
    if (reading.kind !== 'invocation') throw new Error(`read as ${reading.kind}`);
    const { invocation } = reading;
    expect([invocation.command, invocation.operands]).toEqual([command, operands]);
    expect(Object.fromEntries(invocation.values)).toEqual(values);
  });
  test('options without a value', () => {
    const reading = parseArguments(['check', '--json']);
    if (reading.kind !== 'invocation') throw new Error(`read as ${reading.kind}`);
    expect([...reading.invocation.given]).toEqual(['json']);
  });
});

describe('flags of settings', () => {
  test('in their order, with their text as it is', () => {
    const reading = parseArguments(['--rate', '5', '--set', 'auth.scope=a b=c', '--websocket', '--rate=auto']);
    if (reading.kind !== 'invocation') throw new Error(`read as ${reading.kind}`);
    expect(reading.invocation.flags).toEqual([
      { flag: '--rate', key: 'throttle.rate', text: '5' },
      { flag: '--set', key: 'auth.scope', text: 'a b=c' },
      { flag: '--websocket', key: 'upstream.websocket', text: 'true' },
      { flag: '--rate', key: 'throttle.rate', text: 'auto' },
    ]);
  });
  test('one that is true or false takes either after an equals sign', () => {
    const reading = parseArguments(['--allow-insecure-http=false']);
    expect(reading).toMatchObject({ invocation: { flags: [{ key: 'allowInsecureHttp', text: 'false' }] } });
  });
  test('most are named as their variable', () => {
    const others = SETTING_OPTION_NAMES.filter((name) => {
      const { setting } = optionOf(name);
      return setting === undefined || settingOf(setting).env !== `SIDECAR_${name.toUpperCase().replaceAll('-', '_')}`;
    });
    expect(others).toEqual(['token-path']);
  });
});

describe('help and version', () => {
  test.each([
    ['--help', undefined],
    ['-h', undefined],
    ['help', undefined],
    ['check --help', 'check'],
    ['--help check', 'check'],
    ['help check', 'check'],
    ['help help', 'help'],
    ['chekc --help', undefined],
  ])('"%s"', (line, command) => {
    expect(parseArguments(words(line))).toEqual({ kind: 'help', command });
  });
  test.each(['--version', '-v', 'check --version'])('"%s"', (line) => {
    expect(parseArguments(words(line))).toEqual({ kind: 'version' });
  });
});

describe('an invalid command line gives one line, with the name that was probably meant', () => {
  test.each([
    ['chekc', 'unknown command "chekc"; did you mean check?'],
    ['Sandbox', 'unknown command "Sandbox"; did you mean sandbox?'],
    ['completion bash', 'the command completion is gone; remove it from the start files of your shell'],
    ['help completion', 'the command completion is gone; remove it from the start files of your shell'],
    ['help chekc', 'unknown command "chekc"; did you mean check?'],
    ['deploy', `unknown command "deploy"; expected ${COMMAND_NAMES.slice(0, -1).join(', ')} or help`],
    ['check --jsno', 'unknown option "--jsno"; did you mean --json?'],
    ['check --josn=x', 'unknown option "--josn"; did you mean --json?'],
    ['init --client_secret_file x', 'unknown option "--client_secret_file"; did you mean --client-secret-file?'],
    ['--confg a.yaml', 'unknown option "--confg"; did you mean --config?'],
    ['check --verbose', 'unknown option "--verbose"'],
    ['check -x', 'unknown option "-x"'],
    // What belongs to another command is not meant here.
    ['wait --jsno', 'unknown option "--jsno"'],
    ['run --json', '--json belongs to check, status and unknown-calls'],
    ['wait --probe /x', '--probe belongs to check'],
    ['check --max 5s', '--max belongs to wait'],
    [
      'init --config a.yaml',
      '--config belongs to run, sandbox, check, config, health, wait, status, reload and unknown-calls',
    ],
    ['status --rate 5', '--rate belongs to run, sandbox, init, check and config'],
    ['--listn localhost:1', 'unknown option "--listn"; did you mean --listen?'],
    ['--set', 'expected a value: --set KEY=VALUE'],
    ['--set throttle.rate', 'expected a value: --set KEY=VALUE'],
    ['--set throttle.rate=', 'expected a value: --set KEY=VALUE'],
    ['--set =5', 'expected a value: --set KEY=VALUE'],
    ['--websocket=', 'expected a value: --websocket'],
    ['--websocket true', 'unknown command "true"; expected'],
    ['check --probe quotes', '--probe expects a path such as /quotes'],
    ['check --config', 'expected a value: --config FILE'],
    ['check --config=', 'expected a value: --config FILE'],
    ['check --config --json', 'expected a value: --config FILE'],
    ['check --json=yes', '--json takes no value'],
    ['--help=yes', '--help takes no value'],
    ['--help --no-such', 'unknown option "--no-such"'],
    ['check --help --jsno', 'unknown option "--jsno"; did you mean --json?'],
    ['-shush', 'unknown option "-s"'],
    ['check more', 'unexpected argument "more"'],
    ['health ready more', 'unexpected argument "more"'],
  ])('"%s"', (line, why) => {
    if (why.endsWith('; expected')) expect(misuse(line).startsWith(why)).toBe(true);
    else expect(misuse(line)).toBe(why);
  });
  test.each([
    'SIDECAR_CLIENT_SECRET=sesame',
    'run SIDECAR_CLIENT_SECRET=sesame',
    '--client-secret=sesame',
    '--client-secret sesame',
    '--set sesame',
  ])('and nothing of a secret: "%s"', (line) => {
    expect(misuse(line)).not.toContain('sesame');
  });
  test.each(['--client-secret sesame', 'check --client-secret=sesame', 'init --client-secret=sesame'])(
    'names the variable and the file form of the secret: "%s"',
    (line) => {
      expect(misuse(line)).toMatch(/process list.* SIDECAR_CLIENT_SECRET,.* --client-secret-file FILE/);
    },
  );
});
