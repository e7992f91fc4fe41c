import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SuspendAwareClock } from '../../../src/token/source/suspend-aware-clock.ts';

const HOUR_MS = 3_600_000;

/** Two clocks that move apart as they are told. */
class TwoClocks {
  mono = 1_000;
  wall = Date.UTC(2026, 10, 1);
  now = (): number => this.mono;
  wallNow = (): number => this.wall;

  /** @param wallMs the wall clock's advance; as the monotonic one when left out */
  pass(monoMs: number, wallMs = monoMs): void {
    this.mono += monoMs;
    this.wall += wallMs;
  }
}

/** What the life clock makes of advances, read after each. */
function elapsed(...advances: readonly (readonly [monoMs: number, wallMs: number])[]): number {
  const clocks = new TwoClocks();
  const life = new SuspendAwareClock(clocks);
  const from = life.now();
  for (const [monoMs, wallMs] of advances) {
    clocks.pass(monoMs, wallMs);
    life.now();
  }
  return life.now() - from;
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

test('readings often and clocks that tick differently do not make it run fast', () => {
  const clocks = new TwoClocks();
  const life = new SuspendAwareClock(clocks);
  const from = life.now();
  for (let tick = 0; tick < 100_000; tick++) {
    clocks.mono += 0.1;
    // Whole milliseconds, as Date.now() gives, and now and then a reading that came late.
    clocks.wall = Date.UTC(2026, 10, 1) + Math.floor(clocks.mono - 1_000) + (tick % 97 === 0 ? 20 : 0);
    life.now();
  }
  expect(life.now() - from).toBeCloseTo(10_000, 3);
});

test('it never goes back, never runs slower than the monotonic clock, and never far behind the wall clock', () => {
  const advance = fc.tuple(fc.nat(10 * HOUR_MS), fc.integer({ min: -2 * HOUR_MS, max: 10 * HOUR_MS }));
  fc.assert(
    fc.property(fc.array(advance, { maxLength: 30 }), (advances) => {
      const clocks = new TwoClocks();
      const life = new SuspendAwareClock(clocks);
      const [monoFrom, wallFrom, from] = [clocks.mono, clocks.wall, life.now()];
      let last = from;
      for (const [monoMs, wallMs] of advances) {
        clocks.pass(monoMs, wallMs);
        const now = life.now();
        expect(now - last).toBeGreaterThanOrEqual(monoMs - 1e-3);
        expect(now - from).toBeGreaterThanOrEqual(clocks.mono - monoFrom - 1e-3);
        expect(now - from).toBeGreaterThanOrEqual(clocks.wall - wallFrom - 50);
        last = now;
      }
    }),
  );
});
