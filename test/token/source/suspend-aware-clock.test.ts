import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SuspendAwareClock } from '../../../src/token/source/suspend-aware-clock.ts';

const HOUR_MS = 3_600_000;

/** A monotonic and a wall clock that advance separately. */
class TwoClocks {
  mono = 1_000;
  wall = Date.UTC(2026, 10, 1);
  now = (): number => this.mono;
  wallNow = (): number => this.wall;

  /** @param wallMs advance of the wall clock. Default: as the monotonic one */
  pass(monoMs: number, wallMs = monoMs): void {
    this.mono += monoMs;
    this.wall += wallMs;
  }
}

/** Elapsed time on a SuspendAwareClock that is read after each advance. */
function elapsed(...advances: readonly (readonly [monoMs: number, wallMs: number])[]): number {
  const clocks = new TwoClocks();
  const clock = new SuspendAwareClock(clocks);
  const from = clock.now();
  for (const [monoMs, wallMs] of advances) {
    clocks.pass(monoMs, wallMs);
    clock.now();
  }
  return clock.now() - from;
}

test.each<[string, (readonly [number, number])[], number]>([
  ['both clocks run', [[60_000, 60_000]], 60_000],
  ['a suspend of 2 h that the monotonic clock does not count', [[5, 2 * HOUR_MS]], 2 * HOUR_MS],
  ['a suspend of 2 h that both count', [[2 * HOUR_MS, 2 * HOUR_MS]], 2 * HOUR_MS],
  ['the wall clock set forward by 1 h', [[0, HOUR_MS]], HOUR_MS],
  ['the wall clock set back by 1 h', [[0, -HOUR_MS]], 0],
  [
    'set back by 1 h, then an hour passes',
    [
      [0, -HOUR_MS],
      [HOUR_MS, HOUR_MS],
    ],
    HOUR_MS,
  ],
  [
    'set back by 1 h, then a suspend of 1.5 h',
    [
      [0, -HOUR_MS],
      [0, 1.5 * HOUR_MS],
    ],
    1.5 * HOUR_MS,
  ],
  [
    'set forward by 1 h and back again: the hour stays counted',
    [
      [0, HOUR_MS],
      [0, -HOUR_MS],
    ],
    HOUR_MS,
  ],
])('%s', (_name, advances, expected) => {
  expect(elapsed(...advances)).toBe(expected);
});

test('frequent readings and different resolutions do not make it run fast', () => {
  const clocks = new TwoClocks();
  const clock = new SuspendAwareClock(clocks);
  const from = clock.now();
  for (let tick = 0; tick < 100_000; tick++) {
    clocks.mono += 0.1;
    // Whole milliseconds, as from Date.now(), and sometimes a late reading.
    clocks.wall = Date.UTC(2026, 10, 1) + Math.floor(clocks.mono - 1_000) + (tick % 97 === 0 ? 20 : 0);
    clock.now();
  }
  expect(clock.now() - from).toBeCloseTo(10_000, 3);
});

test('never goes back, never runs slower than the monotonic clock or far behind the wall clock', () => {
  const advance = fc.tuple(fc.nat(10 * HOUR_MS), fc.integer({ min: -2 * HOUR_MS, max: 10 * HOUR_MS }));
  fc.assert(
    fc.property(fc.array(advance, { maxLength: 30 }), (advances) => {
      const clocks = new TwoClocks();
      const clock = new SuspendAwareClock(clocks);
      const [monoFrom, wallFrom, from] = [clocks.mono, clocks.wall, clock.now()];
      let last = from;
      for (const [monoMs, wallMs] of advances) {
        clocks.pass(monoMs, wallMs);
        const now = clock.now();
        expect(now - last).toBeGreaterThanOrEqual(monoMs - 1e-3);
        expect(now - from).toBeGreaterThanOrEqual(clocks.mono - monoFrom - 1e-3);
        expect(now - from).toBeGreaterThanOrEqual(clocks.wall - wallFrom - 50);
        last = now;
      }
    }),
  );
});

test('a reading that is handed on late is no suspend', () => {
  const clocks = new TwoClocks();
  const clock = new SuspendAwareClock(clocks);
  const from = clock.now();
  for (let stall = 0; stall < 10; stall++) {
    const read = clocks.now();
    clocks.pass(80);
    clock.now(read);
    clock.now();
    clocks.pass(1000);
  }
  expect(clock.now() - from).toBe(10_800);
});

test('a suspend is seen also where a reading from before it is handed on', () => {
  const clocks = new TwoClocks();
  const clock = new SuspendAwareClock(clocks);
  const from = clock.now();
  const read = clocks.now();
  clocks.pass(5, 2 * HOUR_MS);
  expect(clock.now(read) - from).toBeGreaterThanOrEqual(2 * HOUR_MS);
});
