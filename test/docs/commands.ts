/**
 * How each command on a page is tested: it is run, or its files, options and scripts are checked. A command without a rule here is a fault,
 * so that each new command is tested.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArguments } from '../../src/commands/arguments.ts';
import { ROOT } from './pages.ts';
import type { Block } from './pages.ts';

/** One command, as a shell would see it. */
export interface Command {
  /** Without comments and line continuations; includes the variables in front. */
  readonly text: string;
  readonly program: string;
  readonly args: readonly string[];
}

export type CommandCheck =
  /** Run by a shell, against the sandbox. */
  | { readonly kind: 'run' }
  /** `faults`: names in the command that do not exist. */
  | { readonly kind: 'read'; readonly faults: readonly string[] };

/** The commands of a block, in order; a part in `<( )` or behind `&&` or `|` counts as a command. */
export function commandsIn({ text }: Block): Command[] {
  const lines = text.replaceAll(/\\\n\s*/g, ' ').split('\n');
  return (
    lines
      .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
      .filter((line) => line !== '')
      .flatMap((line) => line.replace(/^source <\((.*)\)$/, '$1').split(/ && | \| /))
      .map((line) => {
        const words = wordsOf(line.replace(/ [<>] .*$/, ''));
        const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
        const [program = '', ...args] = words.slice(first);
        return { text: line, program, args };
      })
      // A line with variables only is not a command.
      .filter(({ program }) => !/^[A-Z_]+=/.test(program))
  );
}

function wordsOf(line: string): string[] {
  const words = line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"]+)+/g);
  return [...words].map(([word]) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

const SCRIPTS = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> })
  .scripts;

/** Commands that run until they are stopped, that ask questions, or that need a sidecar with a file, or calls of one: test/e2e covers them. */
const LONG_RUNNING = new Set(['run', 'sandbox', 'init', 'reload', 'unknown-calls']);

/** Options of other programs, from their own help. */
const OPTIONS: Readonly<Record<string, string>> = {
  kubectl:
    '--from-file --container --kustomize --dry-run --output --filename --port-forward --namespace --follow --tail -c -n -k -f -l -o',
  helm: '--set --set-file --namespace',
  docker:
    '-t --secret --format --build-arg --rm --network -p -e -v --read-only --cap-drop --security-opt --memory -f --env-file --name -s --add-host',
  promtool: '',
  sed: '',
  sha256sum: '--check --ignore-missing',
  cosign: '--new-bundle-format --bundle --certificate-identity --certificate-oidc-issuer',
  gh: '--repo',
  systemctl: '--now',
  kill: '-HUP -TERM',
  wait: '',
  git: '',
  grep: '-E',
  cd: '',
  cp: '-r',
};

/** @returns undefined for a command without a rule */
export function checkCommand(command: Command): CommandCheck | undefined {
  const { program, args } = command;
  if (program === 'curl') return { kind: 'run' };
  if (/^(?:build\/|node_modules\/\.bin\/)?bearer-sidecar$/.test(program)) return checkOwnCommand(args);
  if (program === 'npm') return read(faultsOfNpm(args));
  // The program of a clone, which may be started in the background.
  if (program === './bearer-sidecar') return checkOwnCommand(args.filter((arg) => arg !== '&'));
  if (program === 'node') return read(filesMissing(args.slice(0, 1)));
  // names.test.ts checks names of settings everywhere.
  if (program === 'export') return read([]);
  const known = OPTIONS[program]?.split(' ');
  if (known === undefined) return undefined;
  const options = ownOptions(args).filter((option) => !known.includes(option));
  return read([
    ...options.map((option) => `${program} with ${option}`),
    ...filesMissing(args),
    ...faultsInContainer(args),
  ]);
}

function checkOwnCommand(args: readonly string[]): CommandCheck {
  const reading = parseArguments(args);
  if (reading.kind === 'misuse') return read([reading.why]);
  if (reading.kind !== 'invocation') return { kind: 'run' };
  const { command, given } = reading.invocation;
  const isNonInteractive = command === 'init' && given.has('yes');
  return LONG_RUNNING.has(command) && !isNonInteractive ? read([]) : { kind: 'run' };
}

function read(faults: readonly string[]): CommandCheck {
  return { kind: 'read', faults };
}

function faultsOfNpm([verb = '', name = '']: readonly string[]): string[] {
  if (verb === 'ci' || verb === 'install' || verb === 'pack') return [];
  const script = verb === 'run' ? name : verb;
  return script in SCRIPTS ? [] : [`no npm script ${script}`];
}

/** The options in front of the arguments for a program in a container. */
function ownOptions(args: readonly string[]): string[] {
  const end = args.findIndex((arg) => arg === '--');
  const own = end === -1 ? args : args.slice(0, end);
  return own.filter((arg) => /^--?[a-zA-Z]/.test(arg)).map((arg) => arg.replace(/=.*$/s, ''));
}

/** Faults of the sidecar's own arguments in a container command. */
function faultsInContainer(args: readonly string[]): string[] {
  const main = args.indexOf('dist/main.js');
  // The launcher of the image, in `docker exec` and `kubectl exec`; a container may have the same name.
  const isLauncher = args[0] === 'exec' && !args.includes('/usr/local/bin/node');
  const launcher = isLauncher ? args.lastIndexOf('bearer-sidecar') : -1;
  const image = args.findIndex((arg) => arg.startsWith('bearer-sidecar:'));
  const begin = Math.max(main, launcher);
  if (begin === -1 && (image === -1 || args[0] !== 'run')) return [];
  const reading = parseArguments(args.slice((begin === -1 ? image : begin) + 1));
  return reading.kind === 'misuse' ? [reading.why] : [];
}

/** Paths of this project that do not exist; `kubectl`'s `kind/name` does not count. */
function filesMissing(args: readonly string[]): string[] {
  // A clone beside the folder of an application has the name of the project.
  const paths = args
    .map((arg) => arg.replace(/^\.\.\/bearer-sidecar\//, ''))
    .filter((arg) => /^(?:deploy|config|tools|src|test|docs)\/.*[/.]/.test(arg));
  return paths.filter((path) => !existsSync(join(ROOT, path))).map((path) => `no file ${path}`);
}
