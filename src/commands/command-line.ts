/** Reads argv and hands over to one command; every way out is an exit code: 0 fine, 1 failed, 2 wrong usage or settings. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { onOneLine } from '../config/problems.ts';

const VERSION = readVersion();

const HELP = `bearer-sidecar ${VERSION}: OAuth 2.0 bearer tokens, throttling and retries in front of a partner's API

usage: bearer-sidecar [command] [options]

commands
  run                          run the sidecar from its configuration (the default)
  sandbox                      run it in front of a simulated partner: nothing to configure
  check                        try the configuration: one token, one TLS connection, a report with what to do
  config                       print the effective configuration, secrets masked, with its origins
  health [live|ready|startup]  ask the admin port (default: live)
  wait [--max 60s]             wait until the sidecar is ready

options
  --config FILE                YAML or JSON; SIDECAR_CONFIG names one as well
  --max DURATION               for wait: 500ms, 60s (the default), 2m
  --json                       for check: one JSON document
  --probe PATH                 for check: also GET this path of the upstream with the token
  --help, --version

Settings come from defaults < file < SIDECAR_ variables; the least that run needs:
  SIDECAR_BASE_URL  SIDECAR_AUTH_URL  SIDECAR_CLIENT_ID  SIDECAR_CLIENT_SECRET (or …_FILE)
  and SIDECAR_AUDIENCE or SIDECAR_SCOPE
exit codes: 0 fine, 1 failed while running or check found a fault, 2 wrong usage or settings
`;

interface Invocation {
  readonly command: string;
  readonly operands: readonly string[];
  readonly file: string | undefined;
  readonly max: string | undefined;
  readonly json: boolean;
  readonly probe: string | undefined;
}

/**
 * @param stop aborted by the first SIGTERM or SIGINT
 * @returns the exit code; never throws
 */
export async function runCommand(argv: readonly string[], stop: AbortSignal): Promise<number> {
  const invocation = readArguments(argv);
  if (typeof invocation === 'string') return misuse(invocation);
  if (invocation === undefined) return 0;
  try {
    return await dispatch(invocation, stop);
  } catch (error) {
    process.stderr.write(`bearer-sidecar: ${onOneLine(error instanceof Error ? error.message : String(error))}\n`);
    return 1;
  }
}

/** The invocation; a text when it makes no sense; undefined when it has been answered. */
function readArguments(argv: readonly string[]): Invocation | string | undefined {
  const options = {
    config: { type: 'string' },
    max: { type: 'string' },
    json: { type: 'boolean' },
    probe: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    version: { type: 'boolean', short: 'v' },
  } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    if (values.help === true || values.version === true) {
      process.stdout.write(values.help === true ? HELP : `${VERSION}\n`);
      return undefined;
    }
    const [command = 'run', ...operands] = positionals;
    const { config: file, max, json = false, probe } = values;
    return { command, operands, file, max, json, probe };
  } catch (error) {
    return error instanceof Error ? (error.message.split(/\. |\n/)[0] ?? '') : 'the arguments cannot be read';
  }
}

async function dispatch(invocation: Invocation, stop: AbortSignal): Promise<number> {
  const { command, operands, file, max, json, probe } = invocation;
  const fault = usageFault(invocation);
  if (fault !== undefined) return misuse(fault);
  const load = { env: process.env, file };
  switch (command) {
    case 'run':
      return (await import('./run.ts')).run(load, VERSION, stop);
    case 'sandbox':
      return (await import('./sandbox.ts')).runSandbox(load, VERSION, stop);
    case 'check':
      return (await import('./check.ts')).check(load, { json, probe }, stop);
    case 'config': {
      const output = (await import('./config.ts')).printConfig(load);
      process.stdout.write(output.stdout);
      process.stderr.write(output.stderr);
      return output.exitCode;
    }
    case 'health':
      return (await import('./health.ts')).health(load, operands[0] ?? 'live');
    case 'wait':
      return (await import('./health.ts')).waitUntilReady(load, max ?? '60s', stop);
    default:
      return misuse(`unknown command ${shown(command)}; expected run, sandbox, check, config, health or wait`);
  }
}

/** Arguments that do not fit together, in words. */
function usageFault({ command, operands, max, json, probe }: Invocation): string | undefined {
  const extra = command === 'health' ? operands[1] : operands[0];
  if (extra !== undefined) return `unexpected argument ${shown(extra)}`;
  if (max !== undefined && command !== 'wait') return '--max belongs to wait';
  if ((json || probe !== undefined) && command !== 'check') return `--${json ? 'json' : 'probe'} belongs to check`;
  if (probe !== undefined && !probe.startsWith('/')) return '--probe expects a path such as /quotes';
  return undefined;
}

/** Of a setting that is meant for the environment, its name alone: the value may be a secret. */
function shown(argument: string): string {
  return `"${argument.replace(/=.*/s, '=…')}"`;
}

function misuse(why: string): number {
  process.stderr.write(`bearer-sidecar: ${onOneLine(why)}; see bearer-sidecar --help\n`);
  return 2;
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const hasVersion = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return hasVersion ? String(manifest.version) : 'unknown';
}
