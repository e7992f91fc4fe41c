/**
 * `npm start`, with real processes: npm, what it starts, and a signal to each of them. Nothing may be left two seconds later. And the
 * other side: `run` goes on when its parent ends. Linux.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { call } from '../support/calls.ts';
import { freePort } from '../support/loopback.ts';
import { MAIN } from '../support/main-file.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** What a user may expect. */
const GONE_AFTER_MS = 2000;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGKILL'] as const;
const START_MS = 30_000;
const COMPILE_CACHE = mkdtempSync(join(tmpdir(), 'npm-start-'));
afterAll(() => rmSync(COMPILE_CACHE, { recursive: true, force: true }));

/** PATH as a user has it, without this project's own programs. */
const USER_PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);
const NPM = execFileSync('sh', ['-c', 'command -v npm'], { env: { PATH: USER_PATH }, encoding: 'utf8' }).trim();
/** npm run by the project's Node.js, and by the machine's own, which may be too old for the sidecar. */
const NODES = [process.execPath, join(dirname(NPM), 'node')];

/** The process and all that it has started, from the outside to the inside. Empty when it has ended. */
function listTree(pid: number): number[] {
  const children = listProcesses().filter(({ parent }) => parent === pid);
  return [...(isRunning(pid) ? [pid] : []), ...children.flatMap((child) => listTree(child.pid))];
}

function listProcesses(): { readonly pid: number; readonly parent: number }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readStat(Number(name));
      return stat === undefined ? [] : [{ pid: Number(name), parent: stat.parent }];
    });
}

/** One that has ended, and whose parent has not noticed yet, does not run. */
function isRunning(pid: number): boolean {
  return !['Z', 'X', undefined].includes(readStat(pid)?.state);
}

function readStat(pid: number): { readonly state: string; readonly parent: number } | undefined {
  try {
    const [state = '', parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return { state, parent: Number(parent) };
  } catch {
    // It ended in between.
    return undefined;
  }
}

async function isFree(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return await new Promise((resolve) => {
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
  }).then((free) => {
    socket.destroy();
    return free as boolean;
  });
}

interface Started {
  /** npm, and what it has started, down to the sidecar. */
  readonly chain: readonly number[];
  readonly proxyUrl: string;
  readonly ports: readonly number[];
  readonly output: () => string;
  readonly npm: ReturnType<typeof spawn>;
}

/** `npm start` on known ports, in a group of its own as in a terminal, and how the shell of the user starts npm. */
async function startNpm(node: string, settings: Readonly<Record<string, string>> = {}): Promise<Started> {
  const ports = [await freePort(), await freePort()];
  const [proxy, admin] = ports.map((port) => `127.0.0.1:${port}`);
  const npm = spawn(node, [realpathSync(NPM), 'start'], {
    cwd: ROOT,
    env: {
      PATH: USER_PATH,
      HOME: process.env.HOME ?? '/root',
      npm_config_update_notifier: 'false',
      // The sources are compiled once, not at each start.
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      SIDECAR_LISTEN: proxy,
      SIDECAR_ADMIN_LISTEN: admin,
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const pid = npm.pid ?? 0;
  onTestFinished(() => {
    for (const left of listTree(pid)) process.kill(left, 'SIGKILL');
  });
  await waitUntil(() => /^try curl/m.test(output), `npm start printed its addresses: ${output}`, START_MS);
  return { chain: listTree(pid), proxyUrl: `http://${proxy}`, ports, output: () => output, npm };
}

/** The first call is served, and the others wait for permits, ten seconds each. */
async function makeWaitingCalls({ proxyUrl, ports }: Started): Promise<Promise<unknown>[]> {
  const calls = Array.from({ length: 3 }, () => call(`${proxyUrl}/quotes-requests`).catch(() => undefined));
  const isWaiting = async () =>
    (await call(`http://127.0.0.1:${ports[1]}/metrics`)).text.includes('queue_depth{route="default"} 2');
  await waitUntil(isWaiting, 'two calls waited');
  return calls;
}

async function expectNothingLeft({ chain, ports }: Started): Promise<void> {
  const isGone = async () => !chain.some(isRunning) && (await Promise.all(ports.map(isFree))).every(Boolean);
  await waitUntil(isGone, `${chain.filter(isRunning).length} processes ended`, GONE_AFTER_MS);
}

describe.each(NODES)('npm start, npm run by %s', (node) => {
  it.each(SIGNALS)('%s to any process of the chain leaves nothing after two seconds', async (signal) => {
    const first = await startNpm(node);
    expect(first.chain.length).toBeGreaterThan(1);
    for (let index = 0; index < first.chain.length; index++) {
      const started = index === 0 ? first : await startNpm(node);
      process.kill(started.chain[index] ?? 0, signal);
      await expectNothingLeft(started);
    }
  });
});

describe('npm start', () => {
  it.each(SIGNALS)('%s to npm ends it also while calls wait', async (signal) => {
    const started = await startNpm(process.execPath, { SIDECAR_RATE: '0.1' });
    const calls = await makeWaitingCalls(started);
    process.kill(started.chain[0] ?? 0, signal);
    await expectNothingLeft(started);
    await Promise.all(calls);
  });

  it('Ctrl-C, which reaches every process of the terminal, drains, and is no failure', async () => {
    const started = await startNpm(process.execPath);
    const ended = once(started.npm, 'exit');
    process.kill(-(started.chain[0] ?? 0), 'SIGINT');
    await expectNothingLeft(started);
    expect(await ended).toEqual([0, null]);
    expect(started.output()).toContain('"msg":"stopped"');
  });

  it('a later second signal stops at once', async () => {
    const started = await startNpm(process.execPath, { SIDECAR_RATE: '0.1', SIDECAR_DRAIN_MS: '60000' });
    const calls = await makeWaitingCalls(started);
    const sidecar = started.chain.at(-1) ?? 0;
    process.kill(sidecar, 'SIGINT');
    // Repetitions within half a second are those of the terminal and npm.
    await waitUntil(() => {
      if (isRunning(sidecar)) process.kill(sidecar, 'SIGINT');
      return !isRunning(sidecar);
    }, 'it ended');
    await expectNothingLeft(started);
    await Promise.all(calls);
  });
});

it('a sidecar that was started by `run` goes on when its parent ends', async () => {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH ?? '',
    ...baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()),
    SIDECAR_LISTEN: `127.0.0.1:${port}`,
    SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  };
  // The shell prints the process id and stays its parent.
  const script = `"${process.execPath}" "${join(ROOT, MAIN)}" >/dev/null 2>&1 & echo $!; wait`;
  const parent = spawn('sh', ['-c', script], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const sidecar = Number(line.toString());
  onTestFinished(() => {
    if (isRunning(sidecar)) process.kill(sidecar, 'SIGKILL');
  });
  await waitUntil(async () => !(await isFree(port)), 'it listened');
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  await waitUntil(() => readStat(sidecar)?.parent !== parent.pid, 'it has another parent');
  // Longer than npm start needs to notice that its parent has ended.
  const until = performance.now() + 1000;
  await waitUntil(() => performance.now() > until || !isRunning(sidecar), 'a second has passed');
  expect(isRunning(sidecar)).toBe(true);
  expect(await isFree(port)).toBe(false);
});
