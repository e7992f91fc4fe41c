/**
 * A real pseudo-terminal (script of util-linux) with a person in front: what is typed, what stands on the screen. The copy of the
 * screen is kept in test/.output/ and searched for secrets after the run.
 */
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from './main-file.ts';
import { OUTPUT } from './secrets.ts';
import type { Environment } from './sidecar-process.ts';
import { WAIT_TIMEOUT_MS } from './until.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** How a shell starts the program. */
export const PROGRAM_COMMAND = `'${process.execPath}' '${join(ROOT, MAIN)}'`;

export interface TerminalOptions {
  /** Names the copy of the screen; each test has its own. */
  readonly name: string;
  /** A line for sh, which is replaced by what it starts. */
  readonly command: string;
  /** Added to a minimal environment, in which TERM is xterm-256color. */
  readonly env?: Environment;
  /** Default: the project's folder. */
  readonly cwd?: string;
  /** Default 100. */
  readonly columns?: number;
}

export interface Terminal extends AsyncDisposable {
  /** Everything that was written to it so far, escapes included. */
  readonly screen: () => string;
  /** The same without colours and carriage returns. */
  readonly text: () => string;
  /** Resolves with the exit code of what runs in it. */
  readonly exit: Promise<number | null>;
  type(keys: string): void;
  /** Ends the input: the next read finds the end. */
  endInput(): void;
  /** Resolves once text that was not yet waited for matches; the match. Rejects when it does not come. */
  waitFor(pattern: RegExp): Promise<string>;
}

export const CTRL_C = '\u0003';
export const CTRL_D = '\u0004';

export function openTerminal({ name, command, env, cwd = ROOT, columns = 100 }: TerminalOptions): Terminal {
  // It asks $SHELL to run the line; the size is that of no window.
  const line = `stty cols ${String(columns)} rows 40; exec ${command}`;
  const child = spawn('script', ['-q', '-e', '-f', '-c', line, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', SHELL: '/bin/sh', TERM: 'xterm-256color', LANG: 'C.UTF-8', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  mkdirSync(OUTPUT, { recursive: true });
  const copy = createWriteStream(join(OUTPUT, `terminal-${name}.log`), { flags: 'a' });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    screen += chunk;
    copy.write(chunk);
  });
  // A program that has ended reads nothing more.
  child.stdin.on('error', (error) => copy.write(`typing failed: ${error.message}\n`));
  // Its process and its pipes: what it printed last is here by then.
  let hasEnded = false;
  const exit = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      copy.end();
      hasEnded = true;
      resolve(code);
    });
  });
  const text = (): string => withoutEscapes(screen);
  let seen = 0;
  return {
    screen: () => screen,
    text,
    exit,
    type: (keys) => void child.stdin.write(keys),
    endInput: () => child.stdin.end(),
    async waitFor(pattern) {
      const end = performance.now() + WAIT_TIMEOUT_MS;
      while (performance.now() < end) {
        const match = pattern.exec(text().slice(seen));
        if (match !== null) {
          seen += match.index + match[0].length;
          return match[0];
        }
        if (hasEnded) break;
        await sleep(10);
      }
      throw new Error(`the terminal did not show ${String(pattern)}:\n${text().slice(seen)}`);
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await exit;
    },
  };
}

/** Text as it would be read aloud: no colours, no cursor movements, line feeds alone. */
function withoutEscapes(text: string): string {
  return text.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]|\u001b[=>]|\r/g, '');
}
