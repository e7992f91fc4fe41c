/**
 * `bearer-sidecar init`: writes a valid configuration file from options and, on a terminal, questions. The secret goes into its own
 * file or stays outside. Nothing is written before all settings are known.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { isSea } from 'node:sea';
import { toSingleLine } from '../../config/load/problems.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import type { OptionName } from '../command-table.ts';
import { paintFor } from '../terminal.ts';
import type { Paint } from '../terminal.ts';
import { SETTING_OPTIONS, findSettingProblems, optionNameFor } from './init-settings.ts';
import type { InitSettingKey } from './init-settings.ts';
import { findProgramCommand } from './program-command.ts';
import { TerminalPrompter, PrompterClosed } from './terminal-prompter.ts';
import { DEFAULT_OUTPUT, writeAll } from './files.ts';
import { Interview } from './interview.ts';
import type { GivenOptions, InitPlan } from './interview.ts';
import { describeNextSteps } from './next-steps.ts';
import { renderSettings } from './settings-file.ts';

export interface InitOptions {
  readonly values: ReadonlyMap<OptionName, string>;
  readonly given: ReadonlySet<OptionName>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const DEFAULT_SETTINGS = { 'auth.tokenPath': '/oauth/token', 'throttle.rate': 'auto' } as const;
const YAML_MODE = 0o644;
const SECRET_MODE = 0o600;

/**
 * @returns 0 when the files are written and `check`, if requested, succeeded; 1 when the user left or `check` failed; 2 for invalid options
 * @throws Error with a message for the user when a file cannot be written
 */
export async function init(options: InitOptions, stop: AbortSignal): Promise<number> {
  const { stdin, stdout } = process;
  const known = readOptions(options);
  const isInteractive = stdin.isTTY && stdout.isTTY && !options.given.has('yes');
  if (isInteractive) return runInterview(known, options, stop);
  const plan: InitPlan = {
    ...known,
    settings: new Map([...Object.entries(DEFAULT_SETTINGS), ...known.settings] as [InitSettingKey, string][]),
    secret: { kind: known.settings.has('auth.clientSecretFile') ? 'file' : 'environment' },
    output: known.output ?? DEFAULT_OUTPUT,
  };
  const faults = findSettingProblems(plan.settings, plan.secret).map(
    ({ key, message }) => `${optionNameFor(key)}: ${message}`,
  );
  if (!plan.isForced && existsSync(plan.output))
    faults.push(`${JSON.stringify(plan.output)} exists; --force overwrites it, --output names another`);
  if (faults.length > 0) return failWith(2, faults);
  await writePlan(plan);
  stdout.write(describeNextSteps(plan, programCommand(options.env), options.env, paintFor(stdout)));
  return 0;
}

async function runInterview(known: GivenOptions, { env }: InitOptions, stop: AbortSignal): Promise<number> {
  const { stdin, stdout } = process;
  const paint = paintFor(stdout);
  using prompter = new TerminalPrompter({ input: stdin, output: stdout, stop });
  const plan = await undefinedIfClosed(new Interview(prompter, paint, known).run());
  if (plan === undefined) {
    prompter.writeLine('');
    return failWith(1, ['cancelled; nothing was written']);
  }
  await writePlan(plan);
  prompter.writeLine(`\n${describeNextSteps(plan, programCommand(env), env, paint).trimEnd()}\n`);
  if (plan.secret.kind === 'environment' && (env.SIDECAR_CLIENT_SECRET ?? '') === '') return 0;
  if (!(await undefinedIfClosed(askToRunCheck(prompter, paint)))) return 0;
  // From here on Ctrl-C is for the check.
  prompter[Symbol.dispose]();
  const { check } = await import('../check.ts');
  return await check({ env, file: plan.output }, { json: false, probe: undefined }, stop);
}

function programCommand(env: InitOptions['env']): string {
  const { argv0, argv } = process;
  return findProgramCommand({ argv0, script: argv[1] ?? '', isBinary: isSea(), folder: process.cwd(), env });
}

async function undefinedIfClosed<T>(input: Promise<T>): Promise<T | undefined> {
  try {
    return await input;
  } catch (error) {
    if (error instanceof PrompterClosed) return undefined;
    throw error;
  }
}

async function askToRunCheck(prompter: TerminalPrompter, paint: Paint): Promise<boolean> {
  return !/^no?$/i.test(await prompter.ask(`Run check on it now? ${paint('quiet', '[Y/n]')} `));
}

function readOptions({ values, given }: InitOptions): GivenOptions {
  const settings = Object.entries(SETTING_OPTIONS).flatMap(([option, key]): [InitSettingKey, string][] => {
    const text = values.get(option as keyof typeof SETTING_OPTIONS);
    return text === undefined ? [] : [[key, text]];
  });
  return { settings: new Map(settings), output: values.get('output'), isForced: given.has('force') };
}

async function writePlan({ settings, secret, output, isForced }: InitPlan): Promise<void> {
  const secretFile = secret.kind === 'new-file' ? secret.path : settings.get('auth.clientSecretFile');
  // Absolute path, since the sidecar may start in another directory.
  const all = new Map(settings);
  if (secretFile !== undefined) all.set('auth.clientSecretFile', resolve(secretFile));
  const order = [...SETTINGS.keys()];
  const ordered = [...all].toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other));
  const yaml = { path: output, text: renderSettings(new Map(ordered), secret.kind === 'environment'), mode: YAML_MODE };
  const files =
    secret.kind === 'new-file' ? [{ path: secret.path, text: `${secret.secret}\n`, mode: SECRET_MODE }] : [];
  await writeAll([...files, yaml], isForced);
}

function failWith(exitCode: 1 | 2, why: readonly string[]): number {
  process.stderr.write(why.map((line) => `bearer-sidecar: ${toSingleLine(line)}\n`).join(''));
  return exitCode;
}
