import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import { divideSignal, readRateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';

function stated(quota: number, windowSeconds: number, remaining: number) {
  const fields: Record<string, string> = {
    'ratelimit-policy': `"a";q=${quota};w=${windowSeconds}`,
    ratelimit: `"a";r=${remaining};t=${windowSeconds}`,
  };
  return readRateLimitSignal(200, new Map(Object.entries(fields)), readMadeAt(undefined, undefined, 0));
}

it('all parts together never exceed the signal, and each part allows at least one call', () => {
  const counts = fc.tuple(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 86_400 }), fc.nat(10_000));
  fc.assert(
    fc.property(counts, fc.integer({ min: 1, max: 50 }), ([quota, seconds, remaining], replicas) => {
      const whole = stated(quota, seconds, remaining);
      const part = divideSignal(whole, replicas);
      expect((part.remaining ?? NaN) * replicas).toBeLessThanOrEqual(remaining);
      const [stating] = part.quotas;
      expect(stating?.quota).toBeGreaterThanOrEqual(1);
      const perSecond = ((stating?.quota ?? NaN) * 1000) / (stating?.windowMs ?? NaN);
      expect(perSecond * replicas).toBeLessThanOrEqual((quota / seconds) * 1.000001);
      expect([part.resetInMs, part.status]).toEqual([whole.resetInMs, whole.status]);
    }),
  );
});

it('leaves the signal unchanged for one replica', () => {
  const whole = stated(100, 60, 7);
  expect(divideSignal(whole, 1)).toBe(whole);
});
