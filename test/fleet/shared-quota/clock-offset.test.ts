/** How the store's clock is evaluated. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClockOffset } from '../../../src/fleet/shared-quota/clock-offset.ts';

test('converts in both directions, and prefers the faster reply', () => {
  const clock = new ClockOffset();
  expect(clock.isKnown).toBe(false);
  clock.addSample(100, 140, 1_000_130);
  expect(clock.isKnown).toBe(true);
  expect(clock.toStoreTime(0)).toBe(1_000_010);
  clock.addSample(200, 202, 1_000_201);
  expect(clock.toStoreTime(0)).toBe(1_000_000);
  // A slow one says nothing that was not known.
  clock.addSample(300, 360, 1_000_310);
  expect(clock.toLocalTime(1_000_500)).toBe(500);
});

test('replaces an old sample, and one that cannot be true any more', () => {
  const clock = new ClockOffset();
  clock.addSample(0, 2, 1_001);
  clock.addSample(60_000, 60_020, 61_013);
  expect(clock.toStoreTime(0)).toBe(1_003);
  // Set back by an hour.
  clock.addSample(60_100, 60_160, 60_130 - 3_600_000);
  expect(clock.toStoreTime(0)).toBe(-3_600_000);
});

test('is never wrong by more than half a round trip plus drift', () => {
  const sample = fc.record({
    gapMs: fc.integer({ min: 0, max: 5000 }),
    thereMs: fc.integer({ min: 0, max: 50 }),
    backMs: fc.integer({ min: 0, max: 50 }),
  });
  fc.assert(
    fc.property(
      fc.array(sample, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: -1e12, max: 1e12 }),
      (samples, offsetMs) => {
        const clock = new ClockOffset();
        let now = 0;
        let best = Infinity;
        for (const { gapMs, thereMs, backMs } of samples) {
          const sentAt = (now += gapMs);
          now += thereMs + backMs;
          clock.addSample(sentAt, now, sentAt + thereMs + offsetMs);
          best = Math.min(best, (thereMs + backMs) / 2 - now * 0.0005);
        }
        expect(Math.abs(clock.toStoreTime(0) - offsetMs)).toBeLessThanOrEqual(best + now * 0.0005 + 0.001);
      },
    ),
  );
});
