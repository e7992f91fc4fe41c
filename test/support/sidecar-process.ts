/**
 * The sidecar as users run it: a child process with an environment of its own and real signals. What it prints is kept
 * in test/.output/ and searched for secrets after the run.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { call } from './calls.ts';
import { MAIN } from './main-file.ts';
import { OUTPUT } from './secrets.ts';
import type { Credential } from './secrets.ts';
import { waitUntil } from './until.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Of the test run: it changes how fast a process starts, and nothing else. */
const { NODE_COMPILE_CACHE } = process.env;
const COMPILE_CACHE: Environment = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

export type Environment = Readonly<Record<string, string>>;

export interface SpawnOptions {
  /** Names the copy of its output; each test has its own. */
  readonly name: string;
  /** What is started, and its first arguments. Default: this Node.js with the program that is tested. */
  readonly program?: readonly [string, ...string[]];
  /** Default: the project's folder. */
  readonly cwd?: string;
  /** Default: none, which is `run`. */
  readonly args?: readonly string[];
  /** Added to a minimal environment. */
  readonly env?: Environment;
  /** Another user, which only root can choose. Default: that of this process. */
  readonly user?: UserAndGroup;
  /** `unread`: a pipe that is never read. Default `read`. */
  readonly stdout?: 'read' | 'unread';
}

export interface UserAndGroup {
  readonly uid: number;
  readonly gid: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface SidecarProcess extends AsyncDisposable {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The end, however it comes; everything that it printed is there by then, unless its stdout is `unread`. */
  readonly exit: Promise<Exit>;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
  /** Resolves with the first complete line of stdout that matches; rejects when the process ends without one. */
  waitForLine(pattern: RegExp): Promise<string>;
}

export interface RunningSidecar extends SidecarProcess {
  readonly proxyUrl: string;
  readonly adminUrl: string;
}

/** Starts the program; it may well end by itself. */
export function spawnSidecar(options: SpawnOptions): SidecarProcess {
  const [program, ...first] = options.program ?? [process.execPath, join(ROOT, MAIN)];
  const child = spawn(program, [...first, ...(options.args ?? [])], {
    cwd: options.cwd ?? ROOT,
    env: { PATH: process.env.PATH ?? '', ...COMPILE_CACHE, ...options.env },
    ...options.user,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = new Promise<Exit>((resolve) => {
    // Its pipes may still hold its last lines when it has ended; an unread pipe is never read to its end.
    child.once(options.stdout === 'unread' ? 'exit' : 'close', (code, signal) => resolve({ code, signal }));
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  void exit.then(() => process.off('exit', killAtExit));

  const output = captureOutput(child, options);
  const stop = (signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> => {
    child.kill(signal);
    return exit;
  };
  return {
    pid: child.pid ?? 0,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    exit,
    stop,
    waitForLine: (pattern) => waitForFirstLine(() => output.stdout, pattern, exit),
    [Symbol.asyncDispose]: async () => {
      await stop('SIGKILL');
    },
  };
}

/** Starts the sidecar on free ports and waits until both listen. */
export async function startSidecar(options: SpawnOptions): Promise<RunningSidecar> {
  const env = { SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0', ...options.env };
  const sidecar = spawnSidecar({ ...options, env });
  try {
    const [proxyUrl, adminUrl] = await Promise.all([
      waitForListening(sidecar, 'proxy'),
      waitForListening(sidecar, 'admin'),
    ]);
    return { ...sidecar, proxyUrl, adminUrl };
  } catch (error) {
    await sidecar.stop('SIGKILL');
    throw error;
  }
}

/** The settings that every run needs, for servers on loopback. */
export function baseSettings(upstreamUrl: string, authUrl: string, credential: Credential): Record<string, string> {
  return {
    SIDECAR_BASE_URL: upstreamUrl,
    SIDECAR_AUTH_URL: authUrl,
    SIDECAR_CLIENT_ID: credential.id,
    SIDECAR_CLIENT_SECRET: credential.secret,
    SIDECAR_AUDIENCE: 'https://api.partner.example/',
  };
}

/** Waits until the sidecar holds its first token. */
export async function waitUntilReady(sidecar: RunningSidecar): Promise<void> {
  await waitUntil(async () => (await call(`${sidecar.adminUrl}/readyz`)).status === 200, 'the sidecar is ready');
}

function captureOutput(child: ChildProcess, options: SpawnOptions): { stdout: string; stderr: string } {
  mkdirSync(OUTPUT, { recursive: true });
  const copy = createWriteStream(join(OUTPUT, `${options.name}.log`), { flags: 'a' });
  const captured = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    if (name === 'stdout' && options.stdout === 'unread') continue;
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      captured[name] += text;
      copy.write(text);
    });
  }
  child.once('close', () => copy.end());
  return captured;
}

async function waitForListening(sidecar: SidecarProcess, server: 'proxy' | 'admin'): Promise<string> {
  const line = await sidecar.waitForLine(
    new RegExp(`"msg":"listening".*"server":"${server}"|"server":"${server}".*"msg":"listening"`),
  );
  return (JSON.parse(line) as { url: string }).url;
}

async function waitForFirstLine(text: () => string, pattern: RegExp, exit: Promise<Exit>): Promise<string> {
  let ended: Exit | undefined;
  void exit.then((end) => (ended = end));
  let found: string | undefined;
  let searchedTo = 0;
  const searchNewLines = (): boolean => {
    const end = text().lastIndexOf('\n') + 1;
    const lines = text().slice(searchedTo, end).split('\n').slice(0, -1);
    found = lines.find((line) => pattern.test(line));
    searchedTo = end;
    if (found === undefined && ended !== undefined)
      throw new Error(`ended with ${String(ended.code ?? ended.signal)} before it printed ${String(pattern)}`);
    return found !== undefined;
  };
  await waitUntil(searchNewLines, `a line that matches ${String(pattern)}`);
  return found ?? '';
}
