/** The counts of declared limits in the state file, over clean stops and crashes, with a manual clock. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { writeFileAtomically } from '../../src/platform/atomic-write.ts';
import type { DeclaredLimit } from '../../src/throttle/declared/declared-limit.ts';
import { createThrottle } from '../../src/throttle/queue/queueing-throttle.ts';
import { StateFile } from '../../src/throttle/state-file.ts';
import type { Throttle } from '../../src/throttle/throttle.ts';
import { ManualClock } from '../support/manual-clock.ts';

const OWNER = { upstream: 'https://api.example.com', client: 'hash-of-the-client' };
const DAY_MS = 86_400_000;
const DAILY: DeclaredLimit = {
  ...{ name: 'daily', calls: 1000, per: '1d', window: 'calendar', timeZone: 'Europe/Berlin' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
};
/** Of DAILY. */
const LEASE = 20;

let directory: string;
let path: string;
let warnings: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'counts-in-file-'));
  path = join(directory, 'state.json');
  warnings = [];
  const made = directory;
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
});

interface ProcessOptions {
  readonly clock: ManualClock;
  readonly limits?: readonly DeclaredLimit[];
  readonly owner?: typeof OWNER;
  readonly write?: typeof writeFileAtomically;
}

/** One life of a process. */
class Process {
  readonly file: StateFile;
  readonly throttle: Throttle;
  readonly #settings;
  readonly #clock: ManualClock;

  private constructor({ clock, limits = [DAILY], owner = OWNER, write }: ProcessOptions) {
    const owners = new Map([['default', owner]]);
    const warn = (message: string): unknown => warnings.push(message);
    this.file = new StateFile({ path, owners, clock, write: write ?? writeNow, warn });
    this.#settings = {
      ...{ rate: 100_000, burst: 100_000, maxInFlight: 100_000, maxStreams: 100, maxPauseMs: 300_000, limits },
    };
    this.#clock = clock;
    this.throttle = createThrottle({
      route: 'default',
      throttle: this.#settings,
      queue: { max: 100_000, timeoutMs: 30_000 },
      ...{ clock, random: () => 0.5, observe: () => undefined, requestPermits: this.file.requestPermits },
    });
  }

  static async start(options: ProcessOptions): Promise<Process> {
    const process = new Process(options);
    await process.file.restore();
    await process.file.startCounting(new Map([['default', process.throttle]]));
    process.file.startWriting(() => new Map());
    return process;
  }

  async call(target = '/'): Promise<void> {
    const now = this.#clock.now();
    const ticket = this.throttle.enter(now + 60_000, undefined, false, '', now, { method: 'GET', target });
    const permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
    permit.report({ kind: 'accepted' });
    permit.release();
    ticket.leave();
  }

  async callTimes(count: number): Promise<void> {
    for (let call = 0; call < count; call++) await this.call();
  }

  reconfigure(limits: readonly DeclaredLimit[]): void {
    this.throttle.reconfigure({ throttle: { ...this.#settings, limits }, queue: { max: 1000, timeoutMs: 30_000 } });
    void this.file.lease();
  }

  get used(): number {
    return this.throttle.state().limits?.[0]?.used ?? NaN;
  }
}

/** Where writing takes time. */
async function startSlowly(options: ProcessOptions): Promise<Process> {
  const starting = Process.start(options);
  const started: Process[] = [];
  void starting.then((process) => started.push(process));
  while (started.length === 0) await options.clock.advance(1);
  return starting;
}

async function writeNow(to: string, text: string): Promise<void> {
  writeFileSync(to, text);
  return Promise.resolve();
}

describe('the next process', () => {
  it('knows the counts of each value, and which they are', async () => {
    const tenants: DeclaredLimit = { ...DAILY, calls: 50, match: { path: '/tenants/*' }, each: true };
    const clock = new ManualClock();
    const first = await Process.start({ clock, limits: [tenants] });
    for (let count = 0; count < 50; count++) await first.call('/tenants/secret-name');
    for (let count = 0; count < 3; count++) await first.call('/tenants/b');
    await first.file.stop();
    expect(readFileSync(path, 'utf8')).not.toContain('secret-name');
    const second = await Process.start({ clock, limits: [tenants] });
    expect(second.throttle.state().limits).toMatchObject([{ used: 50, values: 2 }]);
    const call = { method: 'GET', target: '/tenants/secret-name' };
    const enter = (): unknown => second.throttle.enter(clock.now() + 1000, undefined, true, '', clock.now(), call);
    expect(enter).toThrow('is used up');
    await second.call('/tenants/b');
    const third = await Process.start({ clock, limits: [{ ...tenants, match: { path: '/others/*' } }] });
    expect(third.used).toBe(0);
  });

  it('knows the count of one that stopped, and of one that crashed at most one lease more', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ calls: fc.nat(90), crashes: fc.boolean() }), { minLength: 1, maxLength: 8 }),
        async (lives) => {
          rmSync(path, { force: true });
          const clock = new ManualClock();
          let made = 0;
          let crashes = 0;
          for (const { calls, crashes: hasCrashed } of lives) {
            const process = await Process.start({ clock });
            await process.callTimes(calls);
            made += calls;
            if (hasCrashed) crashes++;
            else await process.file.stop();
            await clock.advance(0);
          }
          const { used } = await Process.start({ clock });
          expect(used).toBeGreaterThanOrEqual(made);
          expect(used).toBeLessThanOrEqual(made + crashes * LEASE);
          if (crashes === 0) expect(used).toBe(made);
        },
      ),
      { numRuns: 60 },
    );
    expect(warnings).toEqual([]);
  });

  it('never counts too few when the one before died while it wrote', async () => {
    for (let calls = 0; calls <= 3 * LEASE; calls++) {
      rmSync(path, { force: true });
      // Of this life only: a timer of a former one must not write into its file.
      const clock = new ManualClock();
      let isDead = false;
      const slowWrite = async (to: string, text: string): Promise<void> => {
        await new Promise<void>((resolve) => clock.after(5, resolve));
        if (!isDead) writeFileSync(to, text);
      };
      const process = await startSlowly({ clock, write: slowWrite });
      let done = 0;
      for (let call = 0; call < calls; call++) {
        void process.call().then(() => done++);
        await clock.advance(1);
      }
      const sent = done;
      isDead = true;
      await clock.advance(10);
      const { used } = await Process.start({ clock });
      expect(used).toBeGreaterThanOrEqual(sent);
      expect(used).toBeLessThanOrEqual(sent + LEASE);
    }
  });

  it('of another day begins at 0, and of another month for a monthly limit', async () => {
    const clock = new ManualClock(Date.parse('2026-10-24T12:00:00+02:00'));
    const limits = [DAILY, { ...DAILY, name: 'monthly', per: '1mo' }];
    const first = await Process.start({ clock, limits });
    await first.callTimes(7);
    await first.file.stop();
    const usedAt = async (date: string): Promise<number[] | undefined> => {
      const later = await Process.start({ clock: new ManualClock(Date.parse(date)), limits });
      return later.throttle.state().limits?.map(({ used }) => used);
    };
    const written = readFileSync(path, 'utf8');
    // The clocks go back on the 25th.
    expect(await usedAt('2026-10-25T00:00:03+02:00')).toEqual([0, 7]);
    writeFileSync(path, written);
    expect(await usedAt('2026-10-31T23:59:00+01:00')).toEqual([0, 7]);
    writeFileSync(path, written);
    expect(await usedAt('2026-11-01T00:00:03+01:00')).toEqual([0, 0]);
    expect(warnings).toEqual([]);
  });

  it('whose clock is a year behind counts for a day and no longer', async () => {
    const first = await Process.start({ clock: new ManualClock() });
    await first.callTimes(7);
    await first.file.stop();
    const clock = new ManualClock(new ManualClock().wallNow() - 365 * DAY_MS);
    const later = await Process.start({ clock });
    expect(later.used).toBe(7);
    await clock.advance(2 * DAY_MS);
    expect(later.used).toBe(0);
  });

  it.each([
    ['another upstream', { ...OWNER, upstream: 'https://other.example.com' }, 'were counted at another upstream'],
    ['another client', { ...OWNER, client: 'other' }, 'were counted with another client id'],
  ])('with %s begins at 0 with one warning', async (_, owner, reason) => {
    const clock = new ManualClock();
    const first = await Process.start({ clock });
    await first.callTimes(7);
    await first.file.stop();
    expect((await Process.start({ clock, owner })).used).toBe(0);
    expect(warnings).toEqual([expect.stringContaining(`counts of default: ${reason}`)]);
  });

  it('with a renamed limit begins at 0 without a warning', async () => {
    const clock = new ManualClock();
    const first = await Process.start({ clock });
    await first.callTimes(7);
    await first.file.stop();
    expect((await Process.start({ clock, limits: [{ ...DAILY, name: 'other' }] })).used).toBe(0);
    expect(warnings).toEqual([]);
  });

  const SAVED = { key: 'daily 1d calendar Europe/Berlin', counts: [[Date.UTC(2027, 1, 1), 7]], leased: 0 };
  it.each([
    ['no list', 7],
    ['no entry', [7]],
    ['no saved limit', [['default', { ...OWNER, limits: [null] }]]],
    [
      'an infinite count',
      `[["default",{"upstream":"${OWNER.upstream}","client":"x","limits":[{"key":"k","counts":[[1,1e999]],"leased":0}]}]]`,
    ],
    ['a negative lease', [['default', { ...OWNER, limits: [{ ...SAVED, leased: -1 }] }]]],
    ['too many counts', [['default', { ...OWNER, limits: [{ ...SAVED, counts: Array(257).fill([1, 1]) }] }]]],
  ])('finds %s in the file, begins at 0 with one warning, and replaces it', async (_, counts) => {
    const text = typeof counts === 'string' ? counts : JSON.stringify(counts);
    writeFileSync(path, `{"version":2,"limits":[],"counts":${text}}`);
    const clock = new ManualClock();
    const process = await Process.start({ clock });
    expect(process.used).toBe(0);
    expect(warnings).toEqual([expect.stringContaining('is not what a sidecar writes')]);
    await process.callTimes(3);
    await process.file.stop();
    expect((await Process.start({ clock })).used).toBe(3);
    expect(warnings).toHaveLength(1);
  });
});

describe('storage', () => {
  it('that takes 5 ms holds up no call of 350 per 10 s at full rate', async () => {
    const clock = new ManualClock();
    let writes = 0;
    const write = async (): Promise<void> => {
      writes++;
      await new Promise<void>((resolve) => clock.after(5, resolve));
    };
    const limits: DeclaredLimit[] = [{ ...DAILY, name: 'burst', calls: 350, per: '10s', window: 'sliding' }];
    const process = await startSlowly({ clock, limits, write });
    for (let call = 0; call < 700; call++) {
      const ticket = process.throttle.enter(clock.now() + 60_000, undefined, false);
      const permit = ticket.tryTakePermit();
      expect(permit, `call ${call}`).toBeDefined();
      // The window is counted in steps of a hundredth.
      await clock.advance(10_150 / 350);
      permit?.report({ kind: 'accepted' });
      permit?.release();
      ticket.leave();
    }
    expect(writes).toBeLessThan(110);
  });

  it('that fails causes one warning, and calls go on; counts are stored when it works again', async () => {
    const clock = new ManualClock();
    let isBroken = true;
    const write = async (to: string, text: string): Promise<void> => {
      if (isBroken) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      await writeNow(to, text);
    };
    const process = await Process.start({ clock, write });
    await process.callTimes(500);
    await clock.advance(60_000);
    await process.callTimes(200);
    expect(warnings).toEqual([expect.stringContaining('(ENOSPC): what is learned or counted ends with this process')]);
    expect(existsSync(path)).toBe(false);
    isBroken = false;
    await clock.advance(10_000);
    await process.callTimes(100);
    const later = await Process.start({ clock });
    expect(later.used).toBeGreaterThanOrEqual(800);
    expect(later.used).toBeLessThanOrEqual(800 + LEASE);
  });

  it('that hangs holds up calls for a second, and is waited for again when it responds', async () => {
    const clock = new ManualClock();
    let resume = (): void => undefined;
    let hangs = false;
    const write = async (to: string, text: string): Promise<void> => {
      if (hangs) await new Promise<void>((resolve) => (resume = resolve));
      await writeNow(to, text);
    };
    const process = await Process.start({ clock, write });
    hangs = true;
    let done = 0;
    for (let call = 0; call < 100; call++) void process.call().then(() => done++);
    await clock.advance(999);
    expect(done).toBe(LEASE);
    await clock.advance(1);
    expect(done).toBe(100);
    expect(warnings).toEqual([expect.stringContaining('takes longer than 1 s: calls go on')]);
    hangs = false;
    resume();
    await clock.advance(0);
    await process.callTimes(50);
    const later = await Process.start({ clock });
    expect(later.used).toBeGreaterThanOrEqual(150);
    expect(later.used).toBeLessThanOrEqual(150 + LEASE);
  });

  it.each([1500, 15_000])('that takes %i ms for an hour causes one line, and one when it is quick', async (slowMs) => {
    const clock = new ManualClock();
    let writeMs = slowMs;
    const write = async (to: string, text: string): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(writeMs, resolve));
      await writeNow(to, text);
    };
    const process = await startSlowly({ clock, write, limits: [{ ...DAILY, calls: 100_000 }] });
    const passHour = async (): Promise<void> => {
      for (let seconds = 0; seconds < 3600; seconds += 5) {
        void process.call();
        await clock.advance(5000);
      }
    };
    await passHour();
    expect(warnings).toEqual([
      `throttle.stateFile: a write in ${JSON.stringify(directory)} takes longer than 1 s: calls go on meanwhile, and after a crash declared limits may count too few`,
    ]);
    writeMs = 5;
    await passHour();
    expect(warnings.slice(1)).toEqual([`throttle.stateFile: writes in ${JSON.stringify(directory)} are quick again`]);
  });

  it('that is slow and quick by turns causes ever fewer lines', async () => {
    const clock = new ManualClock();
    let writes = 0;
    const write = async (): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(writes++ % 10 === 0 ? 1500 : 5, resolve));
    };
    const process = await startSlowly({ clock, write, limits: [{ ...DAILY, calls: 100_000 }] });
    const linesPerHour: number[] = [];
    for (let hour = 0; hour < 4; hour++) {
      const before = warnings.length;
      for (let seconds = 0; seconds < 3600; seconds += 5) {
        void process.call();
        await clock.advance(5000);
      }
      linesPerHour.push(warnings.length - before);
    }
    expect(linesPerHour[0]).toBeLessThan(20);
    expect(linesPerHour.at(-1)).toBeLessThan(3);
  });

  it('that is slow and then fails causes a line for each', async () => {
    const clock = new ManualClock();
    const write = async (): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(1500, resolve));
      throw Object.assign(new Error('full'), { code: 'EIO' });
    };
    const process = await startSlowly({ clock, write });
    await clock.advance(60_000);
    void process.call();
    await clock.advance(60_000);
    expect(warnings).toEqual([
      expect.stringContaining('takes longer than 1 s'),
      expect.stringContaining('(EIO): what is learned or counted ends with this process'),
    ]);
  });

  it('is not written while nothing happens, nor in a loop while the limit is used up', async () => {
    const clock = new ManualClock();
    let writes = 0;
    const write = async (to: string, text: string): Promise<void> => {
      writes++;
      await writeNow(to, text);
    };
    const process = await Process.start({ clock, write, limits: [{ ...DAILY, calls: 5 }] });
    for (let call = 0; call < 20; call++) void process.call().catch(() => undefined);
    await clock.advance(1000);
    expect(process.used).toBe(5);
    const before = writes;
    expect(before).toBeLessThan(10);
    await clock.advance(60_000);
    expect(writes - before).toBeLessThan(2);
  });
});

it('a limit that a reload declares is counted in the file', async () => {
  const clock = new ManualClock();
  const first = await Process.start({ clock, limits: [] });
  expect(existsSync(path)).toBe(false);
  await first.callTimes(3);
  first.reconfigure([DAILY]);
  await clock.advance(0);
  await first.callTimes(50);
  first.reconfigure([DAILY, { ...DAILY, name: 'second', calls: 100 }]);
  await clock.advance(0);
  await first.callTimes(10);
  const later = await Process.start({ clock, limits: [DAILY, { ...DAILY, name: 'second', calls: 100 }] });
  const [daily = NaN, second = NaN] = later.throttle.state().limits?.map(({ used }) => used) ?? [];
  expect(daily).toBeGreaterThanOrEqual(60);
  expect(daily).toBeLessThanOrEqual(60 + LEASE);
  expect(second).toBeGreaterThanOrEqual(10);
  expect(second).toBeLessThanOrEqual(12);
});
