/** Waits of one length on real timers: order, cancelling, and what keeps the process. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DelayLine } from '../../src/delay-line.ts';

function wait(line: DelayLine, told: string[], name: string): { cancel: () => void; ended: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const cancel = line.after(() => {
    told.push(name);
    resolve(undefined);
  });
  return { cancel, ended: promise };
}

describe('waits of one length', () => {
  it('end in the order in which they began, none of them early', async () => {
    const line = new DelayLine(20);
    const told: string[] = [];
    const startedAt = performance.now();
    const waits = ['a', 'b', 'c'].map((name) => wait(line, told, name));
    await waits.at(-1)?.ended;
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(20);
    expect(told).toEqual(['a', 'b', 'c']);
  });

  it('that are cancelled, first, middle, last and twice, never end; the others do', async () => {
    const line = new DelayLine(20);
    const told: string[] = [];
    const waits = ['a', 'b', 'c', 'd', 'e'].map((name) => wait(line, told, name));
    for (const index of [0, 2, 4, 4, 0]) waits[index]?.cancel();
    await waits[3]?.ended;
    const later = wait(line, told, 'later');
    await later.ended;
    expect(told).toEqual(['b', 'd', 'later']);
    for (const { cancel } of waits) cancel();
  });

  it('begun where others end have their own whole time', async () => {
    const line = new DelayLine(20);
    const told: string[] = [];
    const { promise, resolve } = Promise.withResolvers<number>();
    line.after(() => {
      const startedAt = performance.now();
      line.after(() => resolve(performance.now() - startedAt));
    });
    wait(line, told, 'beside');
    expect(await promise).toBeGreaterThanOrEqual(20);
    expect(told).toEqual(['beside']);
  });

  it('begun where others end do not put off those that began before them', async () => {
    const line = new DelayLine(200);
    const told: string[] = [];
    line.after(() => void wait(line, told, 'begun at the end of the first'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    wait(line, told, 'second');
    // Timers end in the order of their instants, however late they are.
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(told).toEqual(['second']);
  });
});

it.each([
  ['a wait keeps the process', "after(1000, () => console.log('rang'))", 'rang\n'],
  ['a cancelled one lets it go', 'after(600000, () => undefined)()', ''],
  [
    'one that is begun after a cancelled one keeps it',
    "after(1000, () => 0)(); after(1000, () => console.log('rang'))",
    'rang\n',
  ],
])('%s', (_, code, stdout) => {
  const clock = new URL('../../src/clock.ts', import.meta.url).href;
  const script = `const { systemClock: { after } } = await import(${JSON.stringify(clock)}); ${code};`;
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 15_000,
  });
  expect({ status: ended.status, stdout: ended.stdout }).toEqual({ status: 0, stdout });
});

it('a delay that is no configured one is kept as well', async () => {
  const startedAt = performance.now();
  await new Promise<void>((resolve) => systemClock.after(12.5, resolve));
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(11);
});
