/** Runs the command that argv names. Exit codes: 0 success, 1 failure, 2 wrong usage or settings. */
import { readProgramVersion } from '../platform/asset.ts';
import { formatWarnings, toSingleLine } from '../config/load/problems.ts';
import { parseArguments, type Invocation } from './arguments.ts';
import type { CommandOutput } from './render-config.ts';
import { describeCommand, describeProgram } from './help.ts';
import { failWith, paintFor } from './terminal.ts';

const VERSION = readProgramVersion();
/** Commands that print warnings to stderr, since they have no log. */
const WARNING_ON_STDERR: ReadonlySet<Invocation['command']> = new Set(['sandbox', 'check', 'config', 'init']);

/** @param warnings about the environment: into the log if there is one, otherwise to stderr @returns the exit code; never throws */
export async function runCommand(
  argv: readonly string[],
  stop: AbortSignal,
  warnings: readonly string[],
): Promise<number> {
  const reading = parseArguments(argv);
  switch (reading.kind) {
    case 'misuse':
      return reportUsageError(reading.why, reading.command);
    case 'version':
      process.stdout.write(`${VERSION}\n`);
      return 0;
    case 'help': {
      const paint = paintFor(process.stdout);
      const { command } = reading;
      process.stdout.write(command === undefined ? describeProgram(VERSION, paint) : describeCommand(command, paint));
      return 0;
    }
    case 'invocation':
  }
  try {
    return await dispatch(reading.invocation, stop, warnings);
  } catch (error) {
    const faults: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
    return failWith(1, ...faults.map((fault) => (fault instanceof Error ? fault.message : String(fault))));
  }
}

async function dispatch(invocation: Invocation, stop: AbortSignal, warnings: readonly string[]): Promise<number> {
  const { command, operands, values, given, flags } = invocation;
  if (WARNING_ON_STDERR.has(command)) process.stderr.write(formatWarnings(warnings));
  const load = { env: process.env, file: values.get('config'), flags };
  switch (command) {
    case 'run':
      return (await import('./run.ts')).run({ ...load, warnings }, VERSION, stop);
    case 'sandbox':
      return (await import('./run-sandbox.ts')).runSandbox(load, values.get('scenario'), VERSION, stop);
    case 'check': {
      const options = { json: given.has('json'), probe: values.get('probe') };
      return (await import('./check.ts')).check(load, options, stop);
    }
    case 'config':
      return writeOutput((await import('./render-config.ts')).renderConfig(load, operands[0]));
    case 'health':
      return (await import('./health.ts')).health(load, operands[0] ?? 'live');
    case 'wait':
      return (await import('./health.ts')).waitUntilReady(load, values.get('max') ?? '60s', stop);
    case 'status': {
      const form = given.has('json') ? 'json' : given.has('limits') ? 'limits' : 'text';
      return (await import('./health.ts')).status(load, form, stop);
    }
    case 'reload':
      return (await import('./reload/send-reload.ts')).reload(load, stop);
    case 'init':
      return (await import('./init/init.ts')).init(invocation, stop);
    case 'unknown-calls':
      return (await import('./settle-calls.ts')).unknownCalls(load, invocation);
    case 'help':
      return 0;
  }
}

function writeOutput({ exitCode, stdout, stderr }: CommandOutput): number {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  return exitCode;
}

function reportUsageError(why: string, command: string | undefined): number {
  const where = `bearer-sidecar ${command === undefined ? '' : `${command} `}--help`;
  process.stderr.write(`bearer-sidecar: ${toSingleLine(why)}${why.endsWith('?') ? ' See' : '; see'} ${where}\n`);
  return 2;
}
