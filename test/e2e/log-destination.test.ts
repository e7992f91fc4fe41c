/** A real process whose standard output stops taking bytes: a file that may not grow, a pipe that is full, one without a reader. Linux. */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../support/main-file.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

/** Of a line no more is shown of a path. */
const LONG = `/${'x'.repeat(1000)}`;

interface Line {
  readonly msg: string;
  readonly path?: string;
  readonly url?: string;
  readonly server?: string;
  readonly lines?: number;
  readonly refusal?: string;
}

/** A sidecar that logs to a descriptor; its lines come from `read`. */
async function start(stdout: number, read: () => string) {
  const tokens = await startTokenServer();
  const upstream = await startRecordingUpstream((_request, response) => void response.end('{}'));
  const env = {
    PATH: process.env.PATH ?? '',
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    SIDECAR_LISTEN: '127.0.0.1:0',
    SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', stdout, 'pipe'] });
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
    await upstream[Symbol.asyncDispose]();
    await tokens[Symbol.asyncDispose]();
  });
  const lines = (): Line[] => parse(read());
  const urlOf = (server: string): string => lines().find((line) => line.server === server)?.url ?? '';
  await waitUntil(() => urlOf('proxy') !== '', 'the sidecar listens');
  const proxyUrl = urlOf('proxy');
  const adminUrl = urlOf('admin');
  await waitUntil(async () => (await fetch(`${adminUrl}/readyz`)).ok, 'the sidecar is ready');
  return {
    pid: child.pid ?? 0,
    lines,
    stderr: () => stderr,
    ended,
    stop: () => child.kill('SIGTERM'),
    ask: async (from: number, to: number, tail = '') => {
      for (let at = from; at < to; at++) await (await fetch(`${proxyUrl}/p${String(at)}${tail}`)).text();
    },
    degraded: async () => ((await (await fetch(`${adminUrl}/status`)).json()) as { degraded: string[] }).degraded,
    page: async () => (await fetch(adminUrl)).text(),
    dropped: async () => {
      const text = await (await fetch(`${adminUrl}/metrics`)).text();
      return Number(/^bearer_sidecar_log_lines_dropped_total (\d+)$/m.exec(text)?.[1]);
    },
  };
}

/** @returns the number of the first path that was not asked for */
async function askUntilDropped({ ask, dropped }: Awaited<ReturnType<typeof start>>, from: number): Promise<number> {
  let requested = from;
  for (; (await dropped()) === 0; requested += 100) await ask(requested, requested + 100, LONG);
  return requested;
}

/** @throws SyntaxError for a line that is torn; the last may be on its way */
function parse(text: string): Line[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const requestsIn = (lines: readonly Line[]): string[] =>
  lines.filter(({ msg }) => msg === 'request').map(({ path = '' }) => /^\/p\d+/.exec(path)?.[0] ?? '');

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `/p${String(from + index)}`);

describe('a file that may not grow', () => {
  it('gets whole lines, in order, as soon as it may, and what was lost is counted', async () => {
    const file = join(openFolder(), 'log');
    const stdout = openSync(file, 'a');
    onTestFinished(() => closeSync(stdout));
    const sidecar = await start(stdout, () => readFileSync(file, 'utf8'));
    await sidecar.ask(0, 10);
    await waitUntil(() => requestsIn(sidecar.lines()).length === 10, 'the first requests are logged');
    // The limit ends in the middle of a line: a part of it is written, and then nothing.
    const limit = statSync(file).size + 1000;
    execFileSync('prlimit', ['--pid', String(sidecar.pid), `--fsize=${String(limit)}:unlimited`]);
    const requested = await askUntilDropped(sidecar, 10);
    expect(statSync(file).size).toBe(limit);
    expect(await sidecar.degraded()).toEqual([
      expect.stringMatching(/^log: writing to standard output failed \(EFBIG\); \d+ lines dropped so far$/),
    ]);
    expect(await sidecar.page()).toContain('writing to standard output failed (EFBIG)');
    execFileSync('prlimit', ['--pid', String(sidecar.pid), '--fsize=unlimited:unlimited']);
    await waitUntil(async () => (await sidecar.degraded()).length === 0, 'the log is written again');
    await sidecar.ask(requested, requested + 10);
    await waitUntil(
      () => requestsIn(sidecar.lines()).at(-1) === `/p${String(requested + 9)}`,
      'later requests are logged',
    );
    const dropped = await sidecar.dropped();
    const paths = requestsIn(sidecar.lines());
    expect(paths.length + dropped).toBe(requested + 10);
    // Which lines of those made meanwhile are lost depends on when the buffer had room.
    const inOrder = numbered(0, requested + 10).filter((path) => paths.includes(path));
    expect(paths).toEqual(inOrder);
    expect([...paths.slice(0, 10), ...paths.slice(-10)]).toEqual([
      ...numbered(0, 10),
      ...numbered(requested, requested + 10),
    ]);
    expect(sidecar.lines().filter(({ lines }) => lines !== undefined)).toEqual([
      expect.objectContaining({ lines: dropped, refusal: 'EFBIG' }),
    ]);
    expect(sidecar.stderr()).toBe('');
  });
});

describe('a named pipe', () => {
  function openPipe() {
    const path = join(openFolder(), 'pipe');
    execFileSync('mkfifo', [path]);
    let reader: number | undefined = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stdout = openSync(path, 'w');
    onTestFinished(() => closeSync(stdout));
    let text = '';
    const buffer = Buffer.alloc(65_536);
    const read = (): string => {
      for (let count = 1; reader !== undefined && count > 0;) {
        count = tryRead(reader, buffer);
        text += buffer.toString('latin1', 0, count);
      }
      return text;
    };
    const close = (): void => {
      if (reader !== undefined) closeSync(reader);
      reader = undefined;
    };
    onTestFinished(close);
    const reopen = (): void => {
      reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    };
    return { stdout, read, close, reopen };
  }

  function tryRead(descriptor: number, buffer: Buffer): number {
    try {
      return readSync(descriptor, buffer);
    } catch {
      return 0;
    }
  }

  it('that is full for a while gets every line that was not dropped', async () => {
    const pipe = openPipe();
    const sidecar = await start(pipe.stdout, pipe.read);
    const requested = await askUntilDropped(sidecar, 0);
    expect(await sidecar.degraded()).toEqual([expect.stringContaining('standard output is read too slowly')]);
    await waitUntil(
      async () => sidecar.lines().length > 0 && (await sidecar.degraded()).length === 0,
      'it is well again',
    );
    const dropped = await sidecar.dropped();
    await waitUntil(() => requestsIn(sidecar.lines()).length + dropped === requested, 'every other line is there');
    await waitUntil(() => sidecar.lines().some(({ lines }) => lines === dropped), 'the loss is logged');
  });

  it('without a reader costs no process and no time, and serves the next reader', async () => {
    const pipe = openPipe();
    const sidecar = await start(pipe.stdout, pipe.read);
    await sidecar.ask(0, 5);
    await waitUntil(() => requestsIn(sidecar.lines()).length === 5, 'the first requests are logged');
    pipe.close();
    const before = cpuTicks(sidecar.pid);
    await sidecar.ask(5, 55);
    await waitUntil(async () => (await sidecar.dropped()) === 50, 'every line is counted');
    expect(await sidecar.degraded()).toEqual([expect.stringContaining('EPIPE')]);
    expect(cpuTicks(sidecar.pid) - before).toBeLessThan(300);
    pipe.reopen();
    await waitUntil(async () => {
      await sidecar.ask(100, 101);
      return requestsIn(sidecar.lines()).includes('/p100');
    }, 'the next reader gets lines');
    await waitUntil(() => sidecar.lines().some(({ refusal }) => refusal === 'EPIPE'), 'the loss is logged');
    pipe.close();
    sidecar.stop();
    expect(await sidecar.ended).toBe(0);
    expect(sidecar.stderr()).toBe('');
  });
});

/** Of 10 ms each. */
function cpuTicks(pid: number): number {
  const fields =
    readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .split(') ')[1]
      ?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
