/**
 * What is done with each command that a page shows: run, or looked at as far as that goes without what it needs. A command that is
 * not known here is a fault, so that nobody adds one that is never tried.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArguments } from '../../src/commands/arguments.ts';
import { ROOT } from './pages.ts';
import type { Block } from './pages.ts';

/** One command, as a shell would see it. */
export interface Command {
  /** Without comments and line continuations, variables set in front included. */
  readonly text: string;
  readonly program: string;
  readonly args: readonly string[];
}

export type Treatment =
  /** By a shell, against the sandbox. */
  | { readonly kind: 'run' }
  /** `faults`: what does not exist of the things that it names. */
  | { readonly kind: 'read'; readonly faults: readonly string[] };

/** The commands of a block, in order; what stands in `<( )` and behind `&&` or `|` counts as one of its own. */
export function commandsIn({ text }: Block): Command[] {
  const lines = text.replaceAll(/\\\n\s*/g, ' ').split('\n');
  return (
    lines
      .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
      .filter((line) => line !== '')
      .flatMap((line) => line.replace(/^source <\((.*)\)$/, '$1').split(/ && | \| /))
      .map((line) => {
        const words = wordsOf(line.replace(/ > .*$/, ''));
        const first = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
        const [program = '', ...args] = words.slice(first);
        return { text: line, program, args };
      })
      // Nothing but variables is no command.
      .filter(({ program }) => !/^[A-Z_]+=/.test(program))
  );
}

function wordsOf(line: string): string[] {
  const words = line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"]+)+/g);
  return [...words].map(([word]) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

const SCRIPTS = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> })
  .scripts;

/** Ours that go on until they are ended, or that ask; others try them (test/e2e). */
const NOT_ALONE = new Set(['run', 'sandbox', 'init']);

/** Options of others' programs that were looked up in their own help. */
const OPTIONS: Readonly<Record<string, string>> = {
  kubectl:
    '--from-file --container --kustomize --dry-run --output --filename --port-forward --namespace --follow --tail -c -n -k -f -l -o',
  helm: '--set --namespace',
  docker:
    '-t --secret --format --build-arg --rm --network -p -e -v --read-only --cap-drop --security-opt --memory -f --env-file --name -s --add-host',
  promtool: '',
  systemctl: '--now',
  kill: '-HUP -TERM',
  wait: '',
  git: '',
  cd: '',
};

/** @returns undefined for a command that nobody has thought about */
export function treatmentOf(command: Command): Treatment | undefined {
  const { program, args } = command;
  if (program === 'curl') return { kind: 'run' };
  if (program === 'bearer-sidecar' || program === 'build/bearer-sidecar') return treatOurs(args);
  if (program === 'npx' && args[0] === 'bearer-sidecar') return treatOurs(args.slice(1));
  if (program === 'npm') return read(faultsOfNpm(args));
  if (program === 'node_modules/.bin/node') return readStart(args);
  if (program === 'node') return read(filesMissing(args.slice(0, 1)));
  // Names of settings are looked at wherever they stand (names.test.ts).
  if (program === 'export') return read([]);
  const known = OPTIONS[program]?.split(' ');
  if (known === undefined) return undefined;
  const options = ownOptions(args).filter((option) => !known.includes(option));
  return read([...options.map((option) => `${program} with ${option}`), ...filesMissing(args), ...inside(args)]);
}

function treatOurs(args: readonly string[]): Treatment {
  const reading = parseArguments(args);
  if (reading.kind === 'misuse') return read([reading.why]);
  if (reading.kind !== 'invocation') return { kind: 'run' };
  const { command, given } = reading.invocation;
  const asksNobody = command === 'init' && given.has('yes');
  return NOT_ALONE.has(command) && !asksNobody ? read([]) : { kind: 'run' };
}

/** A program of a clone, started to go on beside what follows. */
function readStart(args: readonly string[]): Treatment {
  const [main, ...words] = args.filter((arg) => arg !== '&');
  const reading = parseArguments(words);
  return read([
    ...(main === 'dist/main.js' ? [] : [`no program ${main ?? ''}`]),
    ...(reading.kind === 'misuse' ? [reading.why] : []),
  ]);
}

function read(faults: readonly string[]): Treatment {
  return { kind: 'read', faults };
}

function faultsOfNpm([verb = '', name = '']: readonly string[]): string[] {
  if (verb === 'ci' || verb === 'install' || verb === 'pack') return [];
  const script = verb === 'run' ? name : verb;
  return script in SCRIPTS ? [] : [`no npm script ${script}`];
}

/** Up to what is handed to the program in a container. */
function ownOptions(args: readonly string[]): string[] {
  const end = args.findIndex((arg) => arg === '--');
  const own = end === -1 ? args : args.slice(0, end);
  return own.filter((arg) => /^--?[a-zA-Z]/.test(arg)).map((arg) => arg.replace(/=.*$/s, ''));
}

/** What the sidecar in a container is asked to do. */
function inside(args: readonly string[]): string[] {
  const main = args.indexOf('dist/main.js');
  const image = args.findIndex((arg) => arg.startsWith('bearer-sidecar:'));
  if (main === -1 && (image === -1 || args[0] !== 'run')) return [];
  const reading = parseArguments(args.slice((main === -1 ? image : main) + 1));
  return reading.kind === 'misuse' ? [reading.why] : [];
}

/** Words that are paths of this project, but for `kubectl`'s own way to write `kind/name`. */
function filesMissing(args: readonly string[]): string[] {
  const paths = args.filter((arg) => /^(?:deploy|config|tools|src|test|docs)\/.*[/.]/.test(arg));
  return paths.filter((path) => !existsSync(join(ROOT, path))).map((path) => `no file ${path}`);
}
