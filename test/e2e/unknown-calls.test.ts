/** `bearer-sidecar unknown-calls`: what it lists and settles, as a process beside a sidecar that goes on writing. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { writeFileSync, writeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { CallFile } from '../../src/unknown-calls/call-file.ts';
import { formatCall, formatEnd, formatReason } from '../../src/unknown-calls/call-records.ts';
import { MAIN } from '../support/main-file.ts';
import { spawnSidecar } from '../support/sidecar-process.ts';
import { readOpenCalls, scratchFile } from '../unknown-calls/scratch-file.ts';

async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  await using command = spawnSidecar({ name: 'unknown-calls', args: ['unknown-calls', ...args] });
  const { code } = await command.exit;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

const CALL = { requestId: 'r', route: 'default', method: 'POST' };
const hourAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();

function writeSparse(path: string, bytes: number): void {
  writeFileSync(path, '');
  truncateSync(path, bytes);
}

function writeCalls(): string {
  const file = scratchFile();
  const calls = [
    { id: 'bbbbb-1', ...CALL, at: hourAgo(1), path: '/late', idempotencyKey: 'key-1' },
    { id: 'bbbbb-2', ...CALL, at: hourAgo(30), path: '/early\u001b[2J' },
    { id: 'bbbbb-3', ...CALL, at: hourAgo(2) },
    { id: 'bbbbb-4', ...CALL, at: hourAgo(2), path: '/ended' },
  ];
  const reasons = formatReason('bbbbb-1', 'RESPONSE_CUT', 201) + formatReason('bbbbb-3', 'UPSTREAM_TIMEOUT', undefined);
  writeFileSync(file, `${calls.map(formatCall).join('')}${reasons}${formatEnd('bbbbb-4')}{"id":"torn`);
  return file;
}

describe('the list', () => {
  it('has the open calls, oldest first, each with what identifies it and why it is open', async () => {
    const file = writeCalls();
    const { code, stdout } = await run('--set', `unknownCalls.file=${file}`);
    expect(code).toBe(0);
    expect(stdout.replaceAll(/\d{4}-\S+Z/g, 'AT').split('\n')).toEqual([
      'bbbbb-2  AT  POST /early\\u{1b}[2J',
      '  route default, request r',
      '  no outcome recorded: the process ended, or the call is in flight',
      'bbbbb-3  AT  POST',
      '  route default, request r',
      '  UPSTREAM_TIMEOUT',
      'bbbbb-1  AT  POST /late',
      '  route default, request r, Idempotency-Key key-1',
      '  RESPONSE_CUT, the upstream responded with 201',
      '',
    ]);
  });

  it.each([
    ['24h', ['bbbbb-3', 'bbbbb-1']],
    ['90m', ['bbbbb-1']],
    ['10d', ['bbbbb-2', 'bbbbb-3', 'bbbbb-1']],
    [hourAgo(1.5), ['bbbbb-1']],
  ])('as JSON, since %s', async (since, ids) => {
    const file = writeCalls();
    const { code, stdout } = await run('--file', file, '--since', since, '--json');
    expect(code).toBe(0);
    const listed = JSON.parse(stdout) as { file: string; calls: { id: string }[] };
    expect([listed.file, ...listed.calls.map(({ id }) => id)]).toEqual([file, ...ids]);
  });
});

describe('--settle', () => {
  it('ends calls in a file of its own, which a running sidecar reads', async () => {
    const file = scratchFile();
    const running = await CallFile.open({ path: file, clock: systemClock, observe: () => undefined });
    const [one = '', two = ''] = [running.add(CALL), running.add(CALL)];
    const written = readFileSync(file, 'utf8');
    expect(await run('--file', file, '--settle', one)).toEqual({ code: 0, stdout: `settled ${one}\n`, stderr: '' });
    expect(statSync(`${file}.settled`).mode & 0o777).toBe(0o600);
    const again = await run('--file', file, '--settle', two, '--settle', one);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toBe(`bearer-sidecar: no open call of "${file}" has the id ${one}\n`);
    expect(readOpenCalls(file).map(({ id }) => id)).toEqual([two]);
    expect(readFileSync(file, 'utf8')).toBe(written);
    await run('--file', file, '--settle', two);
    running.close();
    expect((await run('--file', file)).stdout).toBe('no call has an unknown outcome\n');
    (await CallFile.open({ path: file, clock: systemClock, observe: () => undefined })).close();
    expect(readFileSync(file, 'utf8')).toBe('');
  });
});

describe('what is no file of unknown calls', () => {
  it.each([
    ['a pipe', (path: string) => execFileSync('mkfifo', [path]), 'is not a regular file'],
    ['a device', (path: string) => symlinkSync('/dev/zero', path), 'is not a regular file'],
    ['a folder', (path: string) => mkdirSync(path), 'is not a regular file'],
    ['4 GB of zeros', (path: string) => writeSparse(path, 4 * 1024 ** 3), 'holds something else than unknown calls'],
  ])('is refused, and does not hang the command: %s', async (_, make, why) => {
    const file = scratchFile();
    make(file);
    const stderr = `bearer-sidecar: ${JSON.stringify(file)} ${why}\n`;
    expect(await run('--file', file)).toEqual({ code: 1, stdout: '', stderr });
  });

  it.each(['pipe', 'device'])('is not waited for beside the file: settled calls in a %s', async (kind) => {
    const file = writeCalls();
    if (kind === 'pipe') execFileSync('mkfifo', [`${file}.settled`]);
    else symlinkSync('/dev/zero', `${file}.settled`);
    expect((await run('--file', file)).stdout).toContain('bbbbb-1');
    expect((await run('--file', file, '--settle', 'bbbbb-1')).stderr).toMatch(/cannot be written \((?:EINVAL|ENXIO)\)/);
  });
});

it('a long file is read in bounded memory, and a line without an end is left out', async () => {
  const file = writeCalls();
  const fd = openSync(file, 'a');
  writeSync(fd, '\n');
  const ended = `${formatCall({ id: 'ccccc-1', at: hourAgo(3), ...CALL })}${formatEnd('ccccc-1')}`.repeat(5000);
  for (let at = 0; at < 400; at++) writeSync(fd, ended);
  closeSync(fd);
  truncateSync(file, 2 * 1024 ** 3);
  const args = ['--max-old-space-size=40', MAIN, 'unknown-calls', '--file', file];
  await using command = spawnSidecar({ name: 'unknown-calls', program: [process.execPath, ...args] });
  expect(await command.exit).toEqual({ code: 0, signal: null });
  expect(command.stdout().match(/^bbbbb-\d/gm)).toEqual(['bbbbb-2', 'bbbbb-3', 'bbbbb-1']);
});

describe('without a list', () => {
  it.each([
    [['--file', '/nowhere/calls'], 1, '"/nowhere/calls" does not exist'],
    [['--file', import.meta.filename], 1, `"${import.meta.filename}" holds something else than unknown calls`],
    [[], 2, 'no file: expected --file PATH, or unknownCalls.file (SIDECAR_UNKNOWN_CALLS_FILE)'],
    [['--since', 'soon'], 2, '--since "soon": expected a duration such as 2h, or an instant: 2026-01-31T12:00Z'],
  ])('one line says why: %s', async (args, code, line) => {
    expect(await run(...args)).toEqual({ code, stdout: '', stderr: `bearer-sidecar: ${line}\n` });
  });
});
