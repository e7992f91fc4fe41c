/** The client: wrk, one thread, the next request after each response. */
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
  /** Without a response, or without 2xx or 3xx. */
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
  if (line === undefined) throw new Error(`wrk has printed no result: ${stdout}`);
  return JSON.parse(line) as WrkResult;
}

/** Sends requests until it is stopped, for an hour at most, and prints nothing. */
export function startWrk(url: string, terms: WrkOptions): LaunchedProcess {
  return launch(wrkCommand(url, terms, 3600), { core: CORES.client });
}

function wrkCommand(url: string, terms: WrkOptions, seconds: number): [string, ...string[]] {
  const { connections, path, bodyBytes, targetsFile } = terms;
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '300s', '-s', SCRIPT];
  const forScript = [String(bodyBytes), ...(targetsFile === undefined ? [] : [targetsFile])];
  return ['wrk', ...options, `${url}${path}`, '--', ...forScript];
}
