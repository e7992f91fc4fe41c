/**
 * How many instructions a process executes in user space for one request: of built programs, and of the bare pass-through. Valgrind counts them, so
 * that other work on the machine does not touch the figure; from start to start it differs by some percent, since V8 compiles differently. What the
 * kernel does is not counted: with 64 connections it is a third of the CPU time, the same for all.
 * Run: npm run bench:instructions [-- dist/main.js /tmp/before/dist/main.js] [--starts 3]
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { devNull, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { installMissingPrograms } from '../../../tools/test-run/test-programs.ts';
import { writeProgram } from '../../../tools/bundle/write-program.ts';
import { freePort } from '../../support/loopback.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { median } from '../speed/figures.ts';
import { readImageFlags } from '../../../tools/image/image-flags.ts';
import { waitUntilResponding } from '../speed/ready.ts';
import { sendAll } from './closed-loop.ts';
import { startPlainUpstream } from './plain-upstream.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { starts: { type: 'string', default: '3' } },
});

/** By then V8 has compiled what is hot. */
const WARM_UP_CALLS = 30_000;
const CALLS = 4_000;
const BARE = join(import.meta.dirname, '..', 'speed', 'proxies', 'bare.child.ts');
const ROOT = resolve(import.meta.dirname, '..', '..', '..');

process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
const missing = installMissingPrograms([
  { program: 'valgrind', package: 'valgrind', tests: 'npm run bench:instructions' },
]);
if (missing.length > 0) throw new Error(missing.join('\n'));
if (positionals.length === 0) await writeProgram(ROOT, join(ROOT, 'dist'));
const programs = positionals.length === 0 ? [join(ROOT, 'dist', 'main.js')] : positionals.map((path) => resolve(path));

await using tokens = await startTokenServer();
await using upstream = await startPlainUpstream(Infinity);
for (const method of ['GET', 'POST'] as const) {
  const bare: number[] = [];
  const counts = new Map(programs.map((program) => [program, new Array<number>()]));
  for (let start = 0; start < Number(values.starts); start++) {
    bare.push(await countPerRequest(BARE, method));
    for (const [program, all] of counts) all.push(await countPerRequest(program, method));
  }
  console.log(`${method}: bare ${describe(bare)}`);
  for (const [program, all] of counts)
    console.log(`${method}: ${program} ${describe(all)}, added to bare ${(median(all) - median(bare)).toFixed(0)}`);
}

function describe(counts: readonly number[]): string {
  return `${median(counts).toFixed(0)} instructions (${counts.map((count) => count.toFixed(0)).join(', ')})`;
}

async function countPerRequest(program: string, method: 'GET' | 'POST'): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'instructions-'));
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = start(program, folder, port, adminPort);
  try {
    const readyUrl =
      program === BARE ? `http://127.0.0.1:${String(port)}/item` : `http://127.0.0.1:${String(adminPort)}/readyz`;
    await waitUntilResponding(readyUrl, () => child.exitCode !== null);
    const url = `http://127.0.0.1:${String(port)}`;
    await sendAll(url, method, WARM_UP_CALLS);
    control(child, '-i', 'on');
    await sendAll(url, method, CALLS);
    control(child, '-i', 'off');
    control(child, '-d');
    return readTotal(folder) / CALLS;
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(program: string, folder: string, port: number, adminPort: number): ChildProcess {
  const valgrind = ['--tool=callgrind', `--callgrind-out-file=${join(folder, 'counts')}`, '--instr-atstart=no'];
  const args = [...valgrind, '--smc-check=all-non-file', '-q', process.execPath, ...readImageFlags(), program];
  const child = spawn('valgrind', args, {
    env: {
      ...{ PATH: process.env.PATH ?? '', NODE_ENV: 'production', TMPDIR: tmpdir() },
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      SIDECAR_LISTEN: `127.0.0.1:${String(port)}`,
      SIDECAR_ADMIN_LISTEN: `127.0.0.1:${String(adminPort)}`,
      PROXY_PORT: String(port),
      PROXY_UPSTREAM: upstream.url,
      PROXY_AUTHORIZATION: 'Bearer tok-0123456789abcdefABCDEFGH',
      PROXY_CONNECTIONS: '64',
      PROXY_CA_FILE: devNull,
    },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
}

function control({ pid = 0 }: ChildProcess, ...args: readonly string[]): void {
  execFileSync('callgrind_control', [...args, String(pid)], { stdio: 'ignore' });
}

/** @throws Error when valgrind has written no counts */
function readTotal(folder: string): number {
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  const totals = texts.flatMap((text) =>
    [...text.matchAll(/^(?:totals|summary): (\d+)/gm)].map(([, total]) => Number(total)),
  );
  if (totals.length === 0) throw new Error('valgrind has written no counts');
  return Math.max(...totals);
}
