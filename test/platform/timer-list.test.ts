/** Waits of one length: order and cancelling in virtual time, and on real timers what keeps the process. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { TimerList } from '../../src/platform/timer-list.ts';

/** Notes its name and the instant when it ends. @returns cancels it */
function wait(line: TimerList, told: string[], name: string): () => void {
  return line.add(() => told.push(`${name} at ${performance.now()}`));
}

describe('waits of one length', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('end in the order in which they began, none of them early', async () => {
    const line = new TimerList(20);
    const told: string[] = [];
    for (const name of ['a', 'b', 'c']) wait(line, told, name);
    await vi.advanceTimersByTimeAsync(19);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(told).toEqual(['a at 20', 'b at 20', 'c at 20']);
  });

  it('that are cancelled, first, middle, last and twice, never end; the others do', async () => {
    const line = new TimerList(20);
    const told: string[] = [];
    const cancels = ['a', 'b', 'c', 'd', 'e'].map((name) => wait(line, told, name));
    for (const index of [0, 2, 4, 4, 0]) cancels[index]?.();
    await vi.advanceTimersByTimeAsync(20);
    wait(line, told, 'later');
    await vi.advanceTimersByTimeAsync(20);
    expect(told).toEqual(['b at 20', 'd at 20', 'later at 40']);
    for (const cancel of cancels) cancel();
  });

  it('begun where others end have their own whole time', async () => {
    const line = new TimerList(20);
    const told: string[] = [];
    line.add(() => void wait(line, told, 'begun at the end of the first'));
    wait(line, told, 'beside');
    await vi.advanceTimersByTimeAsync(100);
    expect(told).toEqual(['beside at 20', 'begun at the end of the first at 40']);
  });

  it('begun where others end do not put off those that began before them', async () => {
    const line = new TimerList(200);
    const told: string[] = [];
    line.add(() => void wait(line, told, 'begun at the end of the first'));
    await vi.advanceTimersByTimeAsync(100);
    wait(line, told, 'second');
    await vi.advanceTimersByTimeAsync(500);
    expect(told).toEqual(['second at 300', 'begun at the end of the first at 400']);
  });
});

it('waits of one length end on real timers as well, none of them early', async () => {
  const line = new TimerList(20);
  const startedAt = performance.now();
  const order: string[] = [];
  line.add(() => order.push('a'));
  await new Promise<void>((resolve) => void line.add(resolve));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(20);
  expect(order).toEqual(['a']);
});

it.each([
  ['a wait keeps the process', "after(1000, () => console.log('rang'))", 'rang\n'],
  ['a cancelled one lets it go', 'after(600000, () => undefined)()', ''],
  [
    'one that is begun after a cancelled one keeps it',
    "after(1000, () => 0)(); after(1000, () => console.log('rang'))",
    'rang\n',
  ],
])('%s', { timeout: 90_000 }, (_, code, stdout) => {
  const clock = new URL('../../src/platform/clock.ts', import.meta.url).href;
  const script = `const { systemClock: { after } } = await import(${JSON.stringify(clock)}); ${code};`;
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect({ status: ended.status, stdout: ended.stdout }).toEqual({ status: 0, stdout });
});

it('a delay that is no configured one is kept as well', async () => {
  const startedAt = performance.now();
  await new Promise<void>((resolve) => systemClock.after(12.5, resolve));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(11);
});

it('lengths that clients make up do not take the places of those in use for good', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  try {
    for (let made = 0; made < 500; made++) systemClock.after(100_000 + made, () => undefined)();
    const before = timers.mock.calls.length;
    const cancels = Array.from({ length: 100 }, () => systemClock.after(77_000, () => undefined));
    expect(timers.mock.calls.length - before).toBe(1);
    for (const cancel of cancels) cancel();
  } finally {
    timers.mockRestore();
  }
});
