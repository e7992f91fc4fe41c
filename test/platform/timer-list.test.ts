/** Timers of one delay: order and cancelling in virtual time; on real timers, which of them keep the process running. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { TimerList } from '../../src/platform/timer-list.ts';

/** Records its name and the instant when it fires. @returns cancels it */
function start(list: TimerList, fired: string[], name: string): () => void {
  const timer = list.add({ onTimer: () => void fired.push(`${name} at ${performance.now()}`) });
  return () => timer.cancel();
}

describe('timers of one delay', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('fire in the order of their start, none of them early', async () => {
    const list = new TimerList(20);
    const fired: string[] = [];
    for (const name of ['a', 'b', 'c']) start(list, fired, name);
    await vi.advanceTimersByTimeAsync(19);
    expect(fired).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(fired).toEqual(['a at 20', 'b at 20', 'c at 20']);
  });

  it('do not fire when cancelled (first, middle, last, twice); the others do', async () => {
    const list = new TimerList(20);
    const fired: string[] = [];
    const cancels = ['a', 'b', 'c', 'd', 'e'].map((name) => start(list, fired, name));
    for (const index of [0, 2, 4, 4, 0]) cancels[index]?.();
    await vi.advanceTimersByTimeAsync(20);
    start(list, fired, 'later');
    await vi.advanceTimersByTimeAsync(20);
    expect(fired).toEqual(['b at 20', 'd at 20', 'later at 40']);
    for (const cancel of cancels) cancel();
  });

  it('that are started while others fire have their whole delay', async () => {
    const list = new TimerList(20);
    const fired: string[] = [];
    list.add({ onTimer: () => void start(list, fired, 'started while the first fires') });
    start(list, fired, 'beside');
    await vi.advanceTimersByTimeAsync(100);
    expect(fired).toEqual(['beside at 20', 'started while the first fires at 40']);
  });

  it('that are started while others fire do not delay earlier ones', async () => {
    const list = new TimerList(200);
    const fired: string[] = [];
    list.add({ onTimer: () => void start(list, fired, 'started while the first fires') });
    await vi.advanceTimersByTimeAsync(100);
    start(list, fired, 'second');
    await vi.advanceTimersByTimeAsync(500);
    expect(fired).toEqual(['second at 300', 'started while the first fires at 400']);
  });
});

it('timers of one delay fire on real timers, none of them early', async () => {
  const list = new TimerList(20);
  const startedAt = performance.now();
  const order: string[] = [];
  list.add({ onTimer: () => void order.push('a') });
  await new Promise<void>((resolve) => void list.add({ onTimer: resolve }));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(20);
  expect(order).toEqual(['a']);
});

it.each([
  ['a timer keeps the process running', "after(1000, () => console.log('fired'))", 'fired\n'],
  ['a cancelled one does not', 'after(600000, () => undefined)()', ''],
  [
    'one that is started after a cancelled one does',
    "after(1000, () => 0)(); after(1000, () => console.log('fired'))",
    'fired\n',
  ],
])('%s', (_, code, stdout) => {
  const clock = new URL('../../src/platform/clock.ts', import.meta.url).href;
  const script = `const { systemClock: { after } } = await import(${JSON.stringify(clock)}); ${code};`;
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect({ status: ended.status, stdout: ended.stdout }).toEqual({ status: 0, stdout });
});

it('a delay with fractions is kept', async () => {
  const startedAt = performance.now();
  await new Promise<void>((resolve) => systemClock.after(12.5, resolve));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(11);
});

it('lists of delays that clients choose are dropped when their timers have ended', async () => {
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
