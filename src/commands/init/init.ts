/**
 * `bearer-sidecar init`: writes a valid configuration file from options and, on a terminal, questions. The secret goes into its own
 * file or stays outside. Nothing is written before all settings are known.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { SETTINGS } from '../../config/schema/schema.ts';
import type { Invocation } from '../arguments.ts';
import { failWith, paintFor } from '../terminal.ts';
import {
  INIT_SETTING_OPTIONS,
  findSettingProblems,
  hasNoSecret,
  optionNameFor,
  secretFileKey,
} from './init-settings.ts';
import type { InitSettingKey, InitSettings, SecretLocation } from './init-settings.ts';
import { ownProgramCommand } from '../program-command.ts';
import { TerminalPrompter, PrompterClosed } from './terminal-prompter.ts';
import { systemClock } from '../../platform/clock.ts';
import type { UnderstoodCommand } from './curl/token-command.ts';
import { DEFAULT_OUTPUT, moveSecretFields, secretPathFor, writeAll } from './written-files.ts';
import { describeCommand, isCurlCommand, readAuthAddress, readPartnerText } from './partner-text.ts';
import { readPipedText } from './piped-text.ts';
import { Interview, type GivenOptions, type InitPlan } from './interview.ts';
import { describeNextSteps, PARTNER_FIELDS } from './next-steps.ts';
import { renderSettings } from './settings-file.ts';

type GivenArguments = Pick<Invocation, 'values' | 'given'>;

/**
 * @returns 0 when the files are written and `check`, if requested, succeeded; 1 when the user left or `check` failed; 2 for invalid options
 * @throws Error with a message for the user when a file cannot be written
 */
export async function init(invocation: GivenArguments, stop: AbortSignal): Promise<number> {
  const { stdin, stdout, env } = process;
  const known = readOptions(invocation);
  const isInteractive = stdin.isTTY && stdout.isTTY && !invocation.given.has('yes');
  if (isInteractive) return runInterview(known, stop);
  const pasted = await readPastedCommand(known, stop);
  if (typeof pasted === 'string') return failWith(2, `the pasted text ${pasted}`);
  const plan = planWithoutQuestions(known, pasted);
  if (pasted.command !== undefined) stdout.write(`${describeCommand(pasted.command, paintFor(stdout)).join('\n')}\n\n`);
  const faults = listFaults(plan);
  const files = plan.secret.kind === 'new-file' ? [plan.output, plan.secret.path] : [plan.output];
  for (const path of files)
    if (!plan.isForced && existsSync(path))
      faults.push(`${JSON.stringify(path)} exists; --force overwrites it, --output names another`);
  if (faults.length > 0) return failWith(2, ...faults);
  const secretFiles = await writePlan(plan);
  stdout.write(describeNextSteps(plan, secretFiles, ownProgramCommand(env), env, paintFor(stdout)));
  return 0;
}

/** One line each, with the names of options. */
function listFaults({ settings, secret }: InitPlan): string[] {
  return findSettingProblems(settings, secret).map(({ key, message }) => `${optionNameFor(key)}: ${message}`);
}

/** Without `command` nothing was pasted, or a URL. */
interface PastedSettings {
  readonly settings?: InitSettings;
  readonly command?: UnderstoodCommand;
}

/** Reads the standard input when options leave the authorization server or the client open. A text is the fault. */
async function readPastedCommand({ settings }: GivenOptions, stop: AbortSignal): Promise<PastedSettings | string> {
  const hasServer = settings.has('auth.url') || settings.has('auth.issuer');
  if (process.stdin.isTTY || (hasServer && settings.has('auth.clientId'))) return {};
  const piped = await readPipedText(process.stdin, systemClock, stop);
  if ('fault' in piped) return piped.fault;
  const reading = readPartnerText(piped.text);
  if ('fault' in reading) return reading.fault;
  if (reading.kind === 'command') return { settings: reading.command.settings, command: reading.command };
  return reading.kind === 'address' ? { settings: reading.settings } : {};
}

/** Options replace what was pasted. */
export function planWithoutQuestions(known: GivenOptions, pasted: PastedSettings): InitPlan {
  const hasServer = known.settings.has('auth.url') || known.settings.has('auth.issuer');
  const fromText = [...(pasted.settings ?? [])].filter(
    ([key]) => !(hasServer && (key === 'auth.url' || key === 'auth.issuer' || key === 'auth.tokenPath')),
  );
  const settings = new Map<InitSettingKey, string>([['throttle.rate', 'auto'], ...fromText, ...known.settings]);
  const output = known.output ?? DEFAULT_OUTPUT;
  const key = secretFileKey(settings);
  const path = secretPathFor(output, key);
  if (key === 'auth.tokenFile' && !hasNoSecret(settings)) settings.set(key, path);
  else if (key !== 'auth.tokenFile' && !settings.has('auth.issuer') && !settings.has('auth.tokenPath'))
    settings.set('auth.tokenPath', '/oauth/token');
  return { ...known, settings, secret: placeSecret(settings, path, pasted.command?.secret), output };
}

function placeSecret(settings: InitSettings, path: string, secret: string | undefined): SecretLocation {
  if (settings.has('auth.clientSecretFile') || hasNoSecret(settings)) return { kind: 'file' };
  if (secret !== undefined) return { kind: 'new-file', path, secret };
  return { kind: settings.has('auth.tokenFile') ? 'file' : 'environment' };
}

async function runInterview(known: GivenOptions, stop: AbortSignal): Promise<number> {
  const { stdin, stdout, env } = process;
  const paint = paintFor(stdout);
  using prompter = new TerminalPrompter({ input: stdin, output: stdout, stop, hidesLine: isCurlCommand });
  const plan = await undefinedIfClosed(new Interview(prompter, paint, known).run());
  if (plan === undefined) {
    prompter.writeLine('');
    return failWith(1, 'cancelled; nothing was written');
  }
  // What is valid for itself may contradict an option.
  const faults = listFaults(plan);
  if (faults.length > 0) return failWith(2, ...faults);
  const secretFiles = await writePlan(plan);
  prompter.writeLine(`\n${describeNextSteps(plan, secretFiles, ownProgramCommand(env), env, paint).trimEnd()}\n`);
  if (plan.secret.kind === 'environment' && (env.SIDECAR_CLIENT_SECRET ?? '') === '') return 0;
  const reply = await undefinedIfClosed(prompter.ask(`Run check on it now? ${paint('quiet', '[Y/n]')} `));
  if (reply === undefined || /^no?$/i.test(reply)) return 0;
  // From here on Ctrl-C is for the check.
  prompter[Symbol.dispose]();
  const { check } = await import('../check.ts');
  return await check({ env, file: plan.output }, { json: false, probe: undefined }, stop);
}

async function undefinedIfClosed<T>(input: Promise<T>): Promise<T | undefined> {
  try {
    return await input;
  } catch (error) {
    if (error instanceof PrompterClosed) return undefined;
    throw error;
  }
}

function readOptions({ values, given }: GivenArguments): GivenOptions {
  const settings = INIT_SETTING_OPTIONS.flatMap(({ option, key }): [InitSettingKey, string][] => {
    const text = values.get(option);
    if (text === undefined) return [];
    // A whole token URL is two settings, and one of published metadata is an issuer.
    return key === 'auth.url' ? [...readAuthAddress(text, values.get('token-path'))] : [[key, text]];
  });
  return { settings: new Map(settings), output: values.get('output'), isForced: given.has('force') };
}

/** @returns the files that hold a secret */
export async function writePlan({ settings, secret, output, isForced }: InitPlan): Promise<readonly string[]> {
  const key = secretFileKey(settings);
  const files = secret.kind === 'new-file' ? [{ path: secret.path, text: `${secret.secret}\n` }] : [];
  // Absolute paths, since the sidecar may start in another directory.
  const all = new Map([...settings].map(([name, text]) => [name, name.endsWith('File') ? resolve(text) : text]));
  if (secret.kind === 'new-file') all.set(key, resolve(secret.path));
  for (const name of PARTNER_FIELDS) {
    const moved = moveSecretFields(all.get(name) ?? '{}', output);
    if (moved.files.length > 0) all.set(name, moved.fields);
    files.push(...moved.files);
  }
  const order = [...SETTINGS.keys()];
  const ordered = [...all].toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other));
  const yaml = renderSettings(new Map(ordered), secret.kind === 'environment');
  await writeAll([...files, { path: output, text: yaml }], isForced);
  return files.map(({ path }) => path);
}
