/** The file of unknown calls while other programs rename, remove, shorten and write to it, while its disk fails, and while its lock is taken. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  fstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock, type Clock } from '../../src/platform/clock.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { CallFile, type CallFileOptions } from '../../src/unknown-calls/call-file.ts';
import { formatCall, formatEnd } from '../../src/unknown-calls/call-records.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../composition/in-process.ts';
import { readOpenCalls, scratchFile } from './scratch-file.ts';

const CALL = { requestId: 'r', route: 'default', method: 'POST', path: '/x' };
const MIB = 1024 * 1024;

/** Each look at it takes 3 ms, so that work in slices of 4 ms is spread over turns. */
class SlowClock extends ManualClock {
  #passed = 0;

  override now(): number {
    this.#passed += 3;
    return super.now() + this.#passed;
  }
}

async function open<C extends Clock = ManualClock>(path: string, more: Partial<CallFileOptions> & { clock?: C } = {}) {
  const events: SidecarEvent[] = [];
  const clock = (more.clock ?? new ManualClock()) as C;
  const file = await CallFile.open({ path, observe: (event) => events.push(event), ...more, clock });
  let isClosed = false;
  const close = (): void => {
    if (!isClosed) file.close();
    isClosed = true;
  };
  onTestFinished(close);
  const warnings = (): string[] => events.flatMap((event) => (event.kind === 'warning' ? event.message : []));
  return { file, clock, events, warnings, close };
}

const idsIn = (path: string): string[] => readOpenCalls(path).map(({ id }) => id);

function fail(code: string): never {
  throw Object.assign(new Error('injected'), { code });
}

/** Open calls of an earlier process, each followed by one that has ended. */
function writeCalls(path: string, count: number, target = `/${'x'.repeat(100)}`): string[] {
  const ids = Array.from({ length: count }, (_, index) => `bbbbb-${String(index)}`);
  const call = { at: '2026-11-01T00:00:00.000Z', ...CALL, path: target };
  const lines = ids.map((id) => [
    formatCall({ id, ...call }),
    formatCall({ id: `c${id}`, ...call }),
    formatEnd(`c${id}`),
  ]);
  writeFileSync(path, lines.flat().join(''), { mode: 0o600 });
  return ids;
}

describe('a file that was renamed or removed', () => {
  const disturb: Record<string, (path: string) => void> = {
    'was renamed': (path) => renameSync(path, `${path}.1`),
    'was renamed, and created anew for all to read': (path) => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, '', { mode: 0o644 });
    },
    'was deleted': (path) => rmSync(path),
    'was replaced by a copy': (path) => {
      cpSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
    },
    'went with its folder, which came back': (path) => {
      renameSync(dirname(path), `${dirname(path)}.old`);
      onTestFinished(() => rmSync(`${dirname(path)}.old`, { recursive: true }));
      mkdirSync(dirname(path));
    },
  };
  it.each(Object.keys(disturb))('is created again with its open calls: it %s', async (how) => {
    const path = scratchFile();
    const { file, clock, warnings } = await open(path);
    const [kept = '', ended = ''] = [file.add(CALL), file.add(CALL)];
    for (let round = 0; round < (how.includes('folder') ? 1 : 3); round++) {
      disturb[how]?.(path);
      const late = file.add(CALL) ?? '';
      // Nothing but time passes: this call may be the last one.
      await clock.advance(100);
      expect(idsIn(path)).toContain(kept);
      expect(idsIn(path)).toContain(late);
      file.conclude(late, undefined, undefined);
    }
    file.conclude(ended, undefined, undefined);
    await clock.advance(100);
    expect(idsIn(path)).toEqual([kept]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(warnings()).toEqual([expect.stringContaining('was renamed or removed by another program')]);
  });

  it('and whose folder is gone records nothing, which is reported; it comes back with the folder', async () => {
    const path = scratchFile();
    const { file, clock, events } = await open(path);
    const kept = file.add(CALL) ?? '';
    renameSync(dirname(path), `${dirname(path)}.old`);
    onTestFinished(() => rmSync(`${dirname(path)}.old`, { recursive: true }));
    await clock.advance(100);
    expect(file.fault).toBe('ENOENT');
    expect(file.add(CALL)).toBeUndefined();
    mkdirSync(dirname(path));
    await clock.advance(2000);
    const next = file.add(CALL) ?? '';
    expect(idsIn(path)).toEqual([kept, next]);
    expect(file.fault).toBeUndefined();
    expect(events.at(-1)).toMatchObject({ kind: 'unknown-calls-file', phase: 'works' });
  });

  it.each([
    ['a link', (path: string) => symlinkSync('/etc/hostname', path), 'ELOOP'],
    ['a folder', (path: string) => mkdirSync(path), 'EISDIR'],
    ['another text', (path: string) => writeFileSync(path, 'precious\n'), 'EEXIST'],
  ])('is not written where %s has its name', async (_, place, code) => {
    const path = scratchFile();
    const { file, clock } = await open(path);
    file.add(CALL);
    renameSync(path, `${path}.1`);
    place(path);
    await clock.advance(5000);
    expect(file.add(CALL)).toBeUndefined();
    expect(file.fault).toBe(code);
    if (code === 'EEXIST') expect(readFileSync(path, 'utf8')).toBe('precious\n');
  });

  it('is created again at the end, also where nothing was written since', async () => {
    const path = scratchFile();
    const { file, close } = await open(path);
    const kept = file.add(CALL) ?? '';
    renameSync(path, `${path}.1`);
    close();
    expect(idsIn(path)).toEqual([kept]);
  });
});

/** The file was moved while it could not be used, and an end was still to be written. */
const FOUND_ONCE = (['add', 'fail', 'end', 'rename', 'pass'] as const).map((act): [typeof act, number] => [act, 0]);

it('no open call is missing, whatever other programs and the disk do', async () => {
  const act = fc.constantFrom('add', 'add', 'end', 'leave', 'pass', 'rename', 'create', 'remove', 'restart', 'fail');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(act, fc.nat(9)), { maxLength: 40 }), async (steps) => {
      const path = scratchFile();
      let fault: string | undefined;
      const options = {
        clock: new SlowClock(),
        fstat: (fd: number) => (fault === 'ESTALE' ? fail(fault) : fstatSync(fd, { bigint: true })),
      };
      let running = await open(path, options);
      const calls = new Set<string>();
      for (const [what, at] of steps) {
        const id = [...calls].at(-1 - at);
        if (what === 'add') {
          const added = running.file.add(CALL);
          if (added !== undefined) calls.add(added);
        } else if (what === 'pass') {
          fault = undefined;
          running.file.conclude(running.file.add(CALL) ?? '', undefined, undefined);
          await running.clock.advance(3000);
          expect(idsIn(path)).toEqual([...calls]);
        } else if (what === 'fail') {
          fault = 'ESTALE';
          await running.clock.advance(100);
        } else if (what === 'rename' || what === 'create') {
          if (existsSync(path)) renameSync(path, `${path}.1`);
          if (what === 'create') writeFileSync(path, '');
        } else if (what === 'remove') rmSync(path, { force: true });
        else if (what === 'restart') {
          fault = undefined;
          running.close();
          running = await open(path, options);
        } else if (id !== undefined) {
          running.file.conclude(id, what === 'end' ? undefined : 'UPSTREAM_RESET', undefined);
          if (what === 'end') calls.delete(id);
        }
      }
      fault = undefined;
      running.close();
      expect(idsIn(path)).toEqual([...calls]);
    }),
    { numRuns: 200, examples: [[FOUND_ONCE]] },
  );
});

describe('an error of fstat', () => {
  it.each(['ESTALE', 'EIO', 'EACCES'])('%s is a write error while it lasts, and ends nothing', async (code) => {
    const path = scratchFile();
    let isStale = false;
    const fstat: CallFileOptions['fstat'] = (fd) => (isStale ? fail(code) : fstatSync(fd, { bigint: true }));
    const { file, clock, events } = await open(path, { fstat });
    const kept = file.add(CALL) ?? '';
    isStale = true;
    await clock.advance(100);
    expect(file.fault).toBe(code);
    expect(file.add(CALL)).toBeUndefined();
    file.conclude(kept, 'UPSTREAM_RESET', undefined);
    await clock.advance(10_000);
    isStale = false;
    await clock.advance(2000);
    const next = file.add(CALL) ?? '';
    expect(readOpenCalls(path)).toMatchObject([{ id: kept, code: 'UPSTREAM_RESET' }, { id: next }]);
    const phases = events.flatMap((event) => (event.kind === 'unknown-calls-file' ? event.phase : []));
    expect([phases[0], phases.at(-1)]).toEqual(['fails', 'works']);
    expect(phases.length).toBeLessThan(20);
  });
});

describe('a second writer', () => {
  it('is warned of once, and the file is never replaced from then on', async () => {
    const path = scratchFile();
    const { file, clock, warnings } = await open(path);
    const kept = file.add(CALL) ?? '';
    await clock.advance(100);
    const other = { id: 'zzzzz-1', at: '2026-11-01T00:00:00.000Z', ...CALL };
    appendFileSync(path, formatCall(other));
    const { ino } = statSync(path);
    for (let round = 0; round < 30; round++) {
      for (let at = 0; at < 400; at++)
        file.conclude(file.add({ ...CALL, path: 'x'.repeat(100) }) ?? '', undefined, undefined);
      await clock.advance(20_000);
    }
    expect(statSync(path).size).toBeGreaterThan(1.5 * MIB);
    expect(statSync(path).ino).toBe(ino);
    expect(idsIn(path)).toEqual([kept, 'zzzzz-1']);
    expect(warnings()).toEqual([expect.stringContaining('is written by another program too')]);
  });

  it('that appears within a compaction loses no record', async () => {
    const path = scratchFile();
    const ids = writeCalls(path, 2000);
    const { file, clock, warnings } = await open(path, { clock: new SlowClock() });
    const { ino } = statSync(path);
    for (let at = 0; at < 6000; at++)
      file.conclude(file.add({ ...CALL, path: 'x'.repeat(100) }) ?? '', undefined, undefined);
    for (let turn = 0; turn < 1000 && !existsSync(`${path}.new`); turn++) await clock.advance(5);
    expect(existsSync(`${path}.new`)).toBe(true);
    appendFileSync(path, formatCall({ id: 'zzzzz-1', at: '2026-11-01T00:00:00.000Z', ...CALL }));
    await clock.advance(5000);
    file.conclude(file.add(CALL) ?? '', undefined, undefined);
    await clock.advance(60_000);
    expect(statSync(path).ino).toBe(ino);
    expect(idsIn(path)).toEqual([...ids, 'zzzzz-1']);
    expect(warnings().join('\n')).toContain('is written by another program too');
    expect(existsSync(`${path}.new`)).toBe(false);
  });

  it('that shortens the file is warned of, and what follows is recorded', async () => {
    const path = scratchFile();
    const { file, clock, warnings } = await open(path);
    file.add(CALL);
    await clock.advance(100);
    truncateSync(path, 7);
    file.conclude(file.add(CALL) ?? '', undefined, undefined);
    await clock.advance(100);
    const next = file.add(CALL) ?? '';
    await clock.advance(100);
    expect(idsIn(path)).toEqual([next]);
    expect(warnings()).toEqual([expect.stringContaining('was shortened by another program')]);
  });
});

describe('a compaction', () => {
  it('keeps what is recorded meanwhile, and leaves a file with every open call at each of its steps', async () => {
    const path = scratchFile();
    const { file, clock } = await open(path, { clock: new SlowClock() });
    const isOpen = new Set<string>();
    const record = (count: number): void => {
      for (let at = 0; at < count; at++) {
        const id = file.add({ ...CALL, path: 'x'.repeat(100) }) ?? '';
        if (at % 5 === 0) isOpen.add(id);
        else file.conclude(id, undefined, undefined);
      }
    };
    record(8000);
    const inodes = new Set<number>();
    for (let turn = 0; turn < 60; turn++) {
      await clock.advance(5);
      record(20);
      const [first] = isOpen;
      if (first !== undefined && turn % 2 === 0) {
        file.conclude(first, undefined, undefined);
        isOpen.delete(first);
      }
      inodes.add(statSync(path).ino);
      const found = new Set(idsIn(path));
      for (const id of isOpen) expect(found.has(id)).toBe(true);
    }
    await clock.advance(1000);
    inodes.add(statSync(path).ino);
    expect(new Set(idsIn(path))).toEqual(isOpen);
    expect(inodes.size).toBeGreaterThan(1);
  });

  it('may be cut off at any byte of the new file', async () => {
    const path = scratchFile();
    const ids = writeCalls(path, 1, '/');
    const whole = readFileSync(path);
    for (let cut = 0; cut <= whole.length; cut++) {
      writeFileSync(`${path}.new`, whole.subarray(0, cut));
      const { close } = await open(path);
      close();
      expect(idsIn(path)).toEqual(ids);
      // A file that is gone on with under its name is cut off itself.
      writeFileSync(path, whole.subarray(0, cut));
      const { file, close: closeCut } = await open(path);
      const next = file.add(CALL) ?? '';
      closeCut();
      // A call whose end is cut off is open again.
      expect(ids.concat(next)).toEqual(expect.arrayContaining(idsIn(path).filter((id) => !id.startsWith('c'))));
      expect(idsIn(path)).toContain(next);
      writeFileSync(path, whole);
    }
  });

  it('of 50 000 open calls blocks for less than 20 ms', async () => {
    const path = scratchFile();
    const ids = writeCalls(path, 50_000);
    let longestMs = 0;
    const clock: Clock = {
      ...systemClock,
      after: (delayMs, run) =>
        systemClock.after(delayMs, () => {
          const before = process.cpuUsage();
          run();
          const { user, system } = process.cpuUsage(before);
          longestMs = Math.max(longestMs, (user + system) / 1000);
        }),
    };
    const { file } = await open(path, { clock });
    const { ino, size } = statSync(path);
    for (let at = 0; statSync(path).size < 2 * size + MIB; at++)
      file.conclude(file.add({ ...CALL, path: 'x'.repeat(1000) }) ?? '', undefined, undefined);
    await until(() => statSync(path).ino !== ino, 'the compaction');
    expect(idsIn(path)).toEqual(ids);
    expect(longestMs).toBeLessThan(20);
  });
});

describe('the name of the lock', () => {
  function lockNameOf(path: string): string {
    const { dev, ino } = statSync(dirname(path), { bigint: true });
    const key = createHash('sha256').update(`${String(dev)}:${String(ino)}:${basename(path)}`);
    return `\0bearer-sidecar-${key.digest('hex')}`;
  }

  it.each<[string, (socket: Socket) => void]>([
    ['closes', (socket) => socket.destroy()],
    ['says nothing', () => undefined],
    ['talks', (socket) => void socket.on('error', () => undefined).write('x'.repeat(100_000))],
  ])('that another program has taken does not keep the sidecar from its file: one that %s', async (_, respond) => {
    const path = scratchFile();
    writeFileSync(path, '');
    const squatter = createServer(respond).listen(lockNameOf(path));
    onTestFinished(() => void squatter.close());
    await once(squatter, 'listening');
    const { file, warnings } = await open(path);
    const id = file.add(CALL) ?? '';
    expect(idsIn(path)).toEqual([id]);
    expect(warnings()).toEqual([expect.stringContaining('has no lock, whose name another program has taken')]);
  });
});
