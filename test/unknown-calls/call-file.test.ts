/** The file of unknown calls: what is open in it after torn and failed writes, restarts and compactions, and who may write to it. */
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { mkdirSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { CallFile, type CallFileOptions } from '../../src/unknown-calls/call-file.ts';
import { listOpenCalls } from '../support/open-calls.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readOpenCalls, scratchFile } from './scratch-file.ts';

const CALL = { requestId: 'r', route: 'default', method: 'POST', path: '/x' };
const MIB = 1024 * 1024;

async function open(path: string, more: Partial<CallFileOptions> = {}) {
  const events: SidecarEvent[] = [];
  const clock = new ManualClock();
  const file = await CallFile.open({ path, clock, observe: (event) => events.push(event), ...more });
  let isClosed = false;
  const close = (): void => {
    if (!isClosed) file.close();
    isClosed = true;
  };
  onTestFinished(close);
  return { file, clock, events, close };
}

function end(file: CallFile, id: string): void {
  file.conclude(id, undefined, undefined);
}

const idsIn = (path: string): string[] => readOpenCalls(path).map(({ id }) => id);

describe('open calls', () => {
  it('are those without an end, in spite of restarts and of writes that fail or are cut short', async () => {
    const write = fc.record({ act: fc.constantFrom('add', 'add', 'end', 'leave', 'pass', 'restart'), at: fc.nat(9) });
    const fault = fc.option(fc.nat(60), { nil: undefined, freq: 3 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(write, fault), { maxLength: 40 }), async (steps) => {
        const path = scratchFile();
        let fails: number | undefined;
        const options: Partial<CallFileOptions> = {
          write: (fd, bytes) => {
            const left = fails;
            fails = undefined;
            if (left === 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
            return writeSync(fd, left === undefined ? bytes : bytes.subarray(0, left));
          },
        };
        let running = await open(path, options);
        const isOpen = new Map<string, boolean>();
        const reasons = new Map<string, string>();
        for (const [{ act, at }, failing] of steps) {
          fails = failing;
          const id = [...isOpen.keys()].at(-1 - at);
          if (act === 'add') {
            const added = running.file.add(CALL);
            expect(added === undefined).toBe(failing !== undefined && fails === undefined);
            if (added !== undefined) isOpen.set(added, true);
          } else if (act === 'pass') await running.clock.advance(1000);
          else if (act === 'restart') {
            running.close();
            running = await open(path, options);
          } else if (id !== undefined && isOpen.get(id) === true) {
            if (act === 'end') running.file.conclude(id, undefined, undefined);
            else running.file.conclude(id, 'UPSTREAM_RESET', undefined);
            if (act === 'end') isOpen.set(id, false);
            else reasons.set(id, 'UPSTREAM_RESET');
          }
          // A call that was recorded is open at every moment until it ends: the process may be killed now.
          const found = idsIn(path);
          for (const [one, open] of isOpen) if (open) expect(found).toContain(one);
        }
        fails = undefined;
        running.close();
        const lost = steps.some(([{ act }, failing]) => act === 'restart' && failing !== undefined);
        if (lost) return;
        const expected = [...isOpen].filter(([, open]) => open).map(([id]) => ({ id, code: reasons.get(id) }));
        expect(readOpenCalls(path).map(({ id, code }) => ({ id, code }))).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  it('do not include a torn line, and a line behind it is read', async () => {
    const path = scratchFile();
    const first = await open(path);
    const [kept = '', torn = ''] = [first.file.add(CALL), first.file.add(CALL)];
    first.close();
    truncateSync(path, readFileSync(path).length - 3);
    expect(idsIn(path)).toEqual([kept]);
    const second = await open(path);
    const next = second.file.add(CALL) ?? '';
    expect(idsIn(path)).toEqual([kept, next]);
    expect(torn).not.toBe(next);
  });

  it('have ids that no other run has given', async () => {
    const path = scratchFile();
    const ids = new Set<string>();
    for (let run = 0; run < 20; run++) {
      const { file, close } = await open(path);
      ids.add(file.add(CALL) ?? '');
      close();
    }
    expect(ids.size).toBe(20);
    expect(new Set(idsIn(path))).toEqual(ids);
    expect([...ids].every((id) => /^[a-z]{5}-1$/.test(id))).toBe(true);
  });
});

describe('the size', () => {
  it('is bounded by twice what is open: ended and settled calls are dropped, open ones and their reasons never', async () => {
    const path = scratchFile();
    const { file, clock } = await open(path);
    const early = file.add(CALL) ?? '';
    const failed = file.add(CALL) ?? '';
    file.conclude(failed, 'UPSTREAM_TIMEOUT', undefined);
    const settled = file.add(CALL) ?? '';
    writeFileSync(`${path}.settled`, `{"end":"${settled}"}\n`);
    let largest = 0;
    for (let round = 0; round < 300; round++) {
      for (let at = 0; at < 100; at++) end(file, file.add({ ...CALL, path: 'x'.repeat(100) }) ?? '');
      await clock.advance(100);
      largest = Math.max(largest, statSync(path).size);
    }
    expect(largest).toBeLessThan(1.1 * MIB);
    expect(readOpenCalls(path)).toMatchObject([
      { id: early, path: '/x' },
      { id: failed, code: 'UPSTREAM_TIMEOUT' },
    ]);
    expect(listOpenCalls(readFileSync(path, 'utf8'), '').map(({ id }) => id)).toEqual([early, failed]);
  });

  it('may pass the bound where the folder cannot be written; one warning says so', async () => {
    const path = scratchFile();
    const { file, clock, events } = await open(path);
    mkdirSync(`${path}.new`);
    for (let at = 0; at < 8000; at++) end(file, file.add({ ...CALL, path: 'x'.repeat(100) }) ?? '');
    await clock.advance(100);
    end(file, file.add(CALL) ?? '');
    await clock.advance(100);
    expect(events).toMatchObject([
      { kind: 'warning', message: expect.stringContaining('cannot be replaced') as string },
    ]);
    rmSync(`${path}.new`, { recursive: true });
    await clock.advance(20_000);
    end(file, file.add(CALL) ?? '');
    await clock.advance(100);
    expect(statSync(path).size).toBe(0);
  });

  it('of a file that was deleted: it comes back with its open calls', async () => {
    const path = scratchFile();
    const { file, clock } = await open(path);
    const kept = file.add(CALL) ?? '';
    rmSync(path);
    const next = file.add(CALL) ?? '';
    end(file, file.add(CALL) ?? '');
    await clock.advance(100);
    expect(idsIn(path)).toEqual([kept, next]);
  });
});

describe('a write that fails', () => {
  it('is reported when writing begins to fail and when it works again, and loses no end', async () => {
    const path = scratchFile();
    let isFull = false;
    const write = (fd: number, bytes: Buffer): number => {
      if (isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      return writeSync(fd, bytes);
    };
    const { file, clock, events } = await open(path, { write });
    const id = file.add(CALL) ?? '';
    isFull = true;
    expect([file.add(CALL), file.add(CALL)]).toEqual([undefined, undefined]);
    end(file, id);
    await clock.advance(100);
    expect(idsIn(path)).toEqual([id]);
    isFull = false;
    const next = file.add(CALL);
    expect(idsIn(path)).toEqual([next]);
    expect(events).toEqual([
      { kind: 'unknown-calls-file', phase: 'fails', code: 'ENOSPC' },
      { kind: 'unknown-calls-file', phase: 'fails-still', code: 'ENOSPC' },
      { kind: 'unknown-calls-file', phase: 'fails-still', code: 'ENOSPC' },
      { kind: 'unknown-calls-file', phase: 'works', code: undefined },
    ]);
  });

  it('keeps a bounded number of ends in memory', async () => {
    let largest = 0;
    let isFull = false;
    const write = (fd: number, bytes: Buffer): number => {
      largest = Math.max(largest, bytes.length);
      if (isFull) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      return writeSync(fd, bytes);
    };
    const { file } = await open(scratchFile(), { write });
    const ids = Array.from({ length: 10_000 }, () => file.add(CALL) ?? '');
    isFull = true;
    for (const id of ids) end(file, id);
    file.add(CALL);
    expect(largest).toBeGreaterThan(30 * 1024);
    expect(largest).toBeLessThan(40 * 1024);
  });
});

describe('the file', () => {
  it('can be read and written by its owner alone, also after a compaction', async () => {
    const path = scratchFile();
    writeFileSync(path, '');
    chmodSync(path, 0o666);
    const { file, close } = await open(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    file.add(CALL);
    close();
    chmodSync(path, 0o644);
    await open(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('has one writer, by whatever name, until that closes it', async () => {
    const path = scratchFile();
    const other = join(dirname(path), 'link');
    const first = await open(path);
    symlinkSync(path, other);
    for (const name of [path, other]) {
      await expect(CallFile.open({ path: name, clock: new ManualClock(), observe: () => undefined })).rejects.toThrow(
        `unknownCalls.file (SIDECAR_UNKNOWN_CALLS_FILE): ${JSON.stringify(name)} cannot be used: another process writes to it`,
      );
    }
    first.file.add(CALL);
    first.close();
    const second = await open(other);
    expect(second.file.add(CALL)).toMatch(/-1$/);
    expect(idsIn(path)).toHaveLength(2);
    expect(statSync(other).ino).toBe(statSync(path).ino);
  });

  it.each([
    ['holds a configuration', (path: string) => writeFileSync(path, 'upstream:\n  baseUrl: x\n'), 'something else'],
    ['is a folder', (path: string) => mkdirSync(path), 'EISDIR'],
    ['is in no folder', (path: string) => rmSync(dirname(path), { recursive: true }), 'ENOENT'],
    ['is a device', (path: string) => symlinkSync('/dev/full', path), 'not a regular file'],
  ])('that %s is left as it is, and the start fails', async (_, make, why) => {
    const path = scratchFile();
    make(path);
    await expect(open(path)).rejects.toThrow(why);
    if (existsSync(path) && statSync(path).isFile()) expect(readFileSync(path, 'utf8')).toContain('baseUrl');
  });

  it('of a process that was killed within a compaction is used on', async () => {
    const path = scratchFile();
    const first = await open(path);
    const id = first.file.add(CALL) ?? '';
    first.close();
    writeFileSync(`${path}.new`, 'half of a line');
    await open(path);
    expect(idsIn(path)).toEqual([id]);
    expect(existsSync(`${path}.new`)).toBe(false);
  });

  it('gets no record once it is closed, also where its descriptor has another file', async () => {
    const path = scratchFile();
    const { file, close, clock } = await open(path);
    const id = file.add(CALL) ?? '';
    close();
    renameSync(path, `${path}.kept`);
    const other = await open(path);
    end(file, id);
    expect(file.add(CALL)).toBeUndefined();
    await clock.advance(1000);
    expect(idsIn(path)).toEqual([]);
    other.close();
    expect(readFileSync(path, 'utf8')).toBe('');
  });
});
