/**
 * `bearer-sidecar init`: from options and, on a terminal, a few questions to a configuration file that loads. The secret goes into a
 * file of its own or stays outside. Nothing is written before everything is known.
 */
import { resolve } from 'node:path';
import { isSea } from 'node:sea';
import { toSingleLine } from '../../config/load/problems.ts';
import { SETTINGS } from '../../config/schema/schema.ts';
import type { OptionName } from '../command-table.ts';
import { paintFor } from '../terminal.ts';
import type { Paint } from '../terminal.ts';
import { SETTING_OPTIONS, findAnswerFaults, optionNameFor } from './answers.ts';
import type { AnsweredKey } from './answers.ts';
import { findProgramCommand } from './program-command.ts';
import { TerminalPrompter, PrompterClosed } from './terminal-prompter.ts';
import { DEFAULT_OUTPUT, isExistingPath, writeAll } from './files.ts';
import { interview } from './interview.ts';
import type { KnownAnswers, InitPlan } from './interview.ts';
import { describeNextSteps } from './next-steps.ts';
import { renderSettings } from './settings-file.ts';

export interface InitOptions {
  readonly values: ReadonlyMap<OptionName, string>;
  readonly given: ReadonlySet<OptionName>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What holds besides the answers. */
const DEFAULT_ANSWERS = { 'auth.tokenPath': '/oauth/token', 'throttle.rate': 'auto' } as const;
const YAML_MODE = 0o644;
const SECRET_MODE = 0o600;

/**
 * @returns 0 when the files are written and `check`, if it was wished for, found no fault; 1 when the person left or `check` found one;
 * 2 for options that will not do
 * @throws Error in words for people when a file cannot be written
 */
export async function init(options: InitOptions, stop: AbortSignal): Promise<number> {
  const { stdin, stdout } = process;
  const known = readOptions(options);
  const isAsking = stdin.isTTY && stdout.isTTY && !options.given.has('yes');
  if (isAsking) return runInterview(known, options, stop);
  const plan: InitPlan = {
    ...known,
    answers: new Map([...Object.entries(DEFAULT_ANSWERS), ...known.answers] as [AnsweredKey, string][]),
    secret: { kind: known.answers.has('auth.clientSecretFile') ? 'file' : 'environment' },
    output: known.output ?? DEFAULT_OUTPUT,
  };
  const faults = findAnswerFaults(plan.answers, plan.secret).map(
    ({ key, message }) => `${optionNameFor(key)}: ${message}`,
  );
  if (!plan.isForced && isExistingPath(plan.output))
    faults.push(`${JSON.stringify(plan.output)} exists; --force writes over it, --output names another`);
  if (faults.length > 0) return failWith(2, faults);
  await writePlan(plan);
  stdout.write(describeNextSteps(plan, programCommand(options.env), options.env, paintFor(stdout)));
  return 0;
}

async function runInterview(known: KnownAnswers, { env }: InitOptions, stop: AbortSignal): Promise<number> {
  const { stdin, stdout } = process;
  const paint = paintFor(stdout);
  using talk = new TerminalPrompter({ input: stdin, output: stdout, stop });
  const plan = await undefinedIfClosed(interview(talk, paint, known));
  if (plan === undefined) {
    talk.writeLine('');
    return failWith(1, ['left before the end; nothing was written']);
  }
  await writePlan(plan);
  talk.writeLine(`\n${describeNextSteps(plan, programCommand(env), env, paint).trimEnd()}\n`);
  if (plan.secret.kind === 'environment' && (env.SIDECAR_CLIENT_SECRET ?? '') === '') return 0;
  if (!(await undefinedIfClosed(askToRunCheck(talk, paint)))) return 0;
  // From here on Ctrl-C is for the check.
  talk[Symbol.dispose]();
  const { check } = await import('../check.ts');
  return await check({ env, file: plan.output }, { json: false, probe: undefined }, stop);
}

function programCommand(env: InitOptions['env']): string {
  const { argv0, argv } = process;
  return findProgramCommand({ argv0, script: argv[1] ?? '', isBinary: isSea(), folder: process.cwd(), env });
}

async function undefinedIfClosed<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof PrompterClosed) return undefined;
    throw error;
  }
}

async function askToRunCheck(talk: TerminalPrompter, paint: Paint): Promise<boolean> {
  return !/^no?$/i.test(await talk.ask(`Run check on it now? ${paint('quiet', '[Y/n]')} `));
}

function readOptions({ values, given }: InitOptions): KnownAnswers {
  const answers = Object.entries(SETTING_OPTIONS).flatMap(([option, key]): [AnsweredKey, string][] => {
    const text = values.get(option as keyof typeof SETTING_OPTIONS);
    return text === undefined ? [] : [[key, text]];
  });
  return { answers: new Map(answers), output: values.get('output'), isForced: given.has('force') };
}

async function writePlan({ answers, secret, output, isForced }: InitPlan): Promise<void> {
  const secretFile = secret.kind === 'new-file' ? secret.path : answers.get('auth.clientSecretFile');
  // In the order of the reference; whole paths, since the sidecar may be started elsewhere.
  const all = new Map(answers);
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
