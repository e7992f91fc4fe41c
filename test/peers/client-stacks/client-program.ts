/**
 * Runs a client program of test/peers/clients. Its arguments: variant, base URL, folder of the bodies to send, cells. For each cell it calls
 * `BASE/CELL` (SOAP clients also `BASE/wsdl`): `get` and `down` with GET, `post` and `up` with POST of the file of that name, `keep-alive` five times, `cookies` the four
 * paths `a/login`, `b/login`, `a/account`, `b/account` with one cookie jar. It prints one JSON line per cell: bytes and SHA-256 of the response bodies
 * in turn, or the error; within `sse` also one per event, at once.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { BuiltClients, ClientStack } from './stacks.ts';

/** The part of a line that counts; SOAP clients state what they sent, because they write it themselves. */
export interface ClientReport {
  readonly cell: string;
  readonly event?: string;
  readonly error?: string;
  readonly bytes?: number;
  readonly sha256?: string;
  readonly sentSha256?: string;
  /** What a WSDL that was read contains, of a client that does not give out its bytes. */
  readonly operations?: readonly string[];
}

export interface ClientRun {
  readonly stack: ClientStack;
  readonly built: BuiltClients;
  readonly baseUrl: string;
  /** Holds the bodies to send, by cell. */
  readonly folder: string;
  readonly cells: readonly string[];
  readonly proxyUrl?: string;
  /** Default 60 000. */
  readonly timeoutMs?: number | undefined;
  readonly onEvent?: (event: string) => void;
}

/** @returns the last line of each cell; a cell without one has the program's own words as its error */
export async function runClient(run: ClientRun): Promise<Map<string, ClientReport>> {
  const { stack, built, baseUrl, folder, cells, proxyUrl, timeoutMs = 60_000 } = run;
  const proxy = proxyUrl === undefined ? undefined : new URL(proxyUrl);
  const [program = '', ...args] = stack.program.command(built, proxy);
  const child = spawn(program, [...args, stack.variant, baseUrl, folder, ...cells], {
    // Nothing of the machine's own proxies and settings.
    env: { PATH: process.env.PATH, HOME: built.folder, ...(proxyUrl === undefined ? {} : { http_proxy: proxyUrl }) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // curl and wget are children of a shell.
    detached: true,
  });
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, timeoutMs);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const reports = new Map<string, ClientReport>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = JSON.parse(line) as ClientReport;
    if (report.event === undefined) reports.set(report.cell, report);
    else run.onEvent?.(report.event);
  });
  const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  for (const cell of cells.filter((each) => !reports.has(each))) {
    const why =
      signal === 'SIGKILL' ? `the client had not ended after ${String(timeoutMs / 1000)} s` : lastLineOf(errors);
    reports.set(cell, { cell, error: why });
  }
  return reports;
}

function lastLineOf(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
