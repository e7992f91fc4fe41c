/** The log of a real process whose stdout is open and never read: bounded memory, and an exit in time. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const CHILD = fileURLToPath(new URL('blocked-stdout.child.ts', import.meta.url));
const LINES = 200_000;

interface Figures {
  readonly rssMiB: number;
  readonly droppedLines: number;
  readonly closeMs: number;
}

/** Both ends in one descriptor: there is a reader, and it never reads. */
function openUnreadPipe(): number {
  const folder = mkdtempSync(join(tmpdir(), 'unread-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const pipe = openSync(path, 'r+');
  onTestFinished(() => {
    closeSync(pipe);
    rmSync(folder, { recursive: true });
  });
  return pipe;
}

async function runChild(stdout: 'pipe' | number) {
  const child = spawn(process.execPath, [CHILD], { stdio: ['ignore', stdout, 'pipe'] });
  const [figures] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
  child.stdout?.destroy();
  return { exitCode: child.exitCode, ...(JSON.parse(figures) as Figures) };
}

it.each([
  ['a socket pair', () => 'pipe' as const],
  ['a pipe', openUnreadPipe],
])('drops and counts lines when nothing reads from %s', async (_, openStdout) => {
  const { exitCode, droppedLines, rssMiB, closeMs } = await runChild(openStdout());
  expect(exitCode).toBe(0);
  expect(droppedLines).toBeGreaterThan(LINES * 0.9);
  expect(rssMiB).toBeLessThan(160);
  // Half a second, which is what it is given; a close that waits for the reader never ends.
  expect(closeMs).toBeGreaterThan(400);
  expect(closeMs).toBeLessThan(10_000);
});

it('writes every line that was not dropped to a stdout that is read', async () => {
  const child = spawn(process.execPath, [CHILD], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [lines, figures] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const { droppedLines } = JSON.parse(figures) as Figures;
  const requests = lines.split('\n').filter((line) => line.includes('"msg":"request"'));
  expect(requests.length + droppedLines).toBe(LINES);
  // At the very least what the bound of 1 MiB holds.
  expect(requests.length).toBeGreaterThan(3000);
});

it('writes the last line before a crash', () => {
  const log = JSON.stringify(new URL('../../../src/telemetry/log/log.ts', import.meta.url).href);
  const script = `import { createLog } from ${log}; createLog({ level: 'info' }).error('last words'); throw new Error('x')`;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ level: 'error', msg: 'last words' });
});
