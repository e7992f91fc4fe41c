/** The client: wrk, one thread, as fast as it is answered. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CORES, launch, searchPath, type LaunchedProcess } from './processes.ts';

const run = promisify(execFile);
const SCRIPT = join(import.meta.dirname, 'wrk.lua');

export interface WrkResult {
  readonly requests: number;
  readonly durationUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Not answered, or not with 2xx or 3xx. */
  readonly failed: number;
}

export interface WrkOptions {
  readonly path: string;
  readonly connections: number;
  /** Length of the body that is posted; 0 is a GET. */
  readonly bodyBytes: number;
  /** A file whose lines ("METHOD path") are asked in turns, instead. */
  readonly targetsFile?: string;
}

/** @param url of the proxy, without a path */
export async function runWrk(url: string, terms: WrkOptions, seconds: number): Promise<WrkResult> {
  const args = ['-c', String(CORES.client), ...wrkCommand(url, terms, seconds)];
  const { stdout } = await run('taskset', args, { env: { PATH: searchPath() }, timeout: (seconds + 60) * 1000 });
  const line = stdout.split('\n').find((candidate) => candidate.startsWith('{'));
  if (line === undefined) throw new Error(`wrk has told nothing: ${stdout}`);
  return JSON.parse(line) as WrkResult;
}

/** Asks until it is stopped, an hour at the longest, and tells nothing. */
export function startWrk(url: string, terms: WrkOptions): LaunchedProcess {
  return launch(wrkCommand(url, terms, 3600), { core: CORES.client });
}

function wrkCommand(url: string, terms: WrkOptions, seconds: number): [string, ...string[]] {
  const { connections, path, bodyBytes, targetsFile } = terms;
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '300s', '-s', SCRIPT];
  const forScript = [String(bodyBytes), ...(targetsFile === undefined ? [] : [targetsFile])];
  return ['wrk', ...options, `${url}${path}`, '--', ...forScript];
}
