/**
 * Processes under measurement: started on a core of their own, ended with this one, and asked of the kernel what they have
 * cost so far (/proc, Linux only).
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { processMemory } from '../../support/process-memory.ts';

/** What is measured has one core to itself; the client and, on two cores, the upstream share the other. */
const cores = availableParallelism();
export const CORES = { client: 0, upstream: cores > 2 ? 1 : 0, proxy: cores - 1 } as const;

/** /proc counts in these (USER_HZ, the same on every Linux that Node.js runs on). */
const TICKS_PER_SECOND = 100;

export interface LaunchOptions {
  readonly core: number;
  /** The whole environment, but for PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** File descriptors that its output goes to; default: stdout to nowhere, stderr to this process's. */
  readonly stdout?: number | 'ignore';
  readonly stderr?: number;
}

export interface LaunchedProcess {
  /** The process itself and what it has started. */
  readonly pids: () => readonly number[];
  readonly hasEnded: () => boolean;
  /** Ends it, and waits for the end. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** @param command what is run, with its arguments */
export function launch(command: readonly [string, ...string[]], options: LaunchOptions): LaunchedProcess {
  const child = spawn('taskset', ['-c', String(options.core), ...command], {
    env: { PATH: searchPath(), ...options.env },
    stdio: ['ignore', options.stdout ?? 'ignore', options.stderr ?? 2],
  });
  running.add(child);
  const ended = endOf(child).then(() => running.delete(child));
  const { pid = 0 } = child;
  return {
    pids: () => [pid, ...childrenOf(pid)],
    hasEnded: () => !running.has(child),
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 2000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Debian keeps servers where users do not look. */
export function searchPath(): string {
  return `${process.env.PATH ?? ''}:/usr/sbin`;
}

/** User and system time of all threads so far, seconds. */
export function cpuSecondsOf(pids: readonly number[]): number {
  const ticks = pids.flatMap((pid) => statOf(pid).slice(11, 13).map(Number));
  return sum(ticks) / TICKS_PER_SECOND;
}

/** Resident memory of all of them now (VmRSS) or each at its highest (VmHWM), bytes. */
export function memoryOf(pids: readonly number[], field: 'VmRSS' | 'VmHWM'): number {
  return sum(pids.map((pid) => processMemory(pid, field)));
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statOf(pid)[1] === String(parent));
}

/** The fields of /proc/PID/stat from the state on; none when the process is gone. */
function statOf(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH')
      return [];
    throw error;
  }
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
