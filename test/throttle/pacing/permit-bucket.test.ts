import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PermitBucket } from '../../../src/throttle/pacing/permit-bucket.ts';

/** The instants of the grants for requests at `askedAt`, in order. */
function grantsOf(bucket: PermitBucket, requestedAt: readonly number[]): number[] {
  return requestedAt.filter((at) => bucket.tryTake(at));
}

/** The most by which any interval holds more permits than burst + rate · interval. */
function worstExcess(grants: readonly number[], burst: number, rate: number): number {
  let worst = -Infinity;
  for (const [first, from] of grants.entries()) {
    for (let last = first; last < grants.length; last++) {
      const intervalMs = (grants[last] ?? from) - from;
      worst = Math.max(worst, last - first + 1 - (burst + (rate * intervalMs) / 1000));
    }
  }
  return worst;
}

describe('invariant 2: permits granted in any interval ≤ burst + rate · interval', () => {
  it('holds exactly where binary fractions make the arithmetic exact', () => {
    const steps = fc.array(fc.integer({ min: 0, max: 2000 }), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(fc.integer({ min: -2, max: 6 }), fc.integer({ min: 1, max: 8 }), steps, (power, burst, waits) => {
        const intervalMs = 2 ** power;
        let now = 0;
        const requestedAt = waits.flatMap((wait) => {
          now += wait / 64;
          return [now, now, now];
        });
        const grants = grantsOf(new PermitBucket(1000 / intervalMs, burst), requestedAt);
        expect(worstExcess(grants, burst, 1000 / intervalMs)).toBeLessThanOrEqual(0);
      }),
    );
  });

  it('holds for any rate up to rounding, also when every permit is taken at the instant named', () => {
    const rates = fc.double({ min: 0.01, max: 5000, noNaN: true });
    const lateness = fc.array(fc.double({ min: 0, max: 50, noNaN: true }), { minLength: 2, maxLength: 60 });
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 20 }), lateness, (rate, burst, lateMs) => {
        const bucket = new PermitBucket(rate, burst);
        let now = 0;
        const grants = lateMs.map((late, index) => {
          now = bucket.nextAt(now) + (index % 2 === 0 ? late : 0);
          expect(bucket.tryTake(now)).toBe(true);
          return now;
        });
        expect(worstExcess(grants, burst, rate)).toBeLessThan(1e-6);
      }),
    );
  });

  it('holds through changes of rate and burst: saved-up permits do not become more', () => {
    const limit = fc.record({ rate: fc.integer({ min: 1, max: 200 }), burst: fc.integer({ min: 1, max: 10 }) });
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.option(limit)), {
      minLength: 1,
      maxLength: 80,
    });
    fc.assert(
      fc.property(limit, steps, (first, waits) => {
        const bucket = new PermitBucket(first.rate, first.burst);
        let current = first;
        let now = 0;
        let saved = first.burst;
        for (const [wait, changed] of waits) {
          now += wait;
          saved = Math.min(current.burst, saved + (wait * current.rate) / 1000);
          if (changed !== null) {
            bucket.setRate(now, changed.rate, changed.burst);
            current = changed;
            saved = Math.min(saved, current.burst);
          }
          while (bucket.tryTake(now)) saved--;
          expect(saved).toBeGreaterThan(-1e-6);
          expect(saved).toBeLessThan(1 + 1e-6);
        }
      }),
    );
  });

  it('does not repay lateness: a permit taken late moves the next one back by as much', () => {
    const bucket = new PermitBucket(10, 1);
    expect(bucket.tryTake(0)).toBe(true);
    expect(bucket.tryTake(170)).toBe(true);
    expect(bucket.tryTake(200)).toBe(false);
    expect(bucket.nextAt(200)).toBe(270);
  });
});

describe('permit bucket', () => {
  it('gives its burst at once and then one by one', () => {
    const bucket = new PermitBucket(10, 3);
    expect(bucket.available(0)).toBe(3);
    expect(grantsOf(bucket, [0, 0, 0, 0, 99, 100, 100, 200])).toEqual([0, 0, 0, 100, 200]);
  });

  it('names the instant of the permit behind others', () => {
    const bucket = new PermitBucket(10, 2);
    bucket.tryTake(0);
    expect([0, 1, 2].map((ahead) => bucket.nthAt(0, ahead))).toEqual([0, 100, 200]);
    expect(bucket.nthAt(1000, 2)).toBe(1100);
  });

  it('takes a permit back, never above the burst', () => {
    const bucket = new PermitBucket(10, 1);
    bucket.tryTake(0);
    bucket.giveBack(10);
    bucket.giveBack(10);
    expect(grantsOf(bucket, [10, 10, 109, 110])).toEqual([10, 110]);
  });

  it('keeps the next permits at a distance from the late use of a permit', () => {
    const bucket = new PermitBucket(50, 1);
    for (const takenAt of [0, 20]) bucket.tryTake(takenAt);
    bucket.recordUse(36, 0);
    bucket.recordUse(37, 20);
    // On the wire: 36, 37, and then no closer than if both had been taken there.
    expect(bucket.nextAt(40)).toBe(76);
  });

  it('treats a use within a few milliseconds as immediate', () => {
    const bucket = new PermitBucket(50, 1);
    bucket.tryTake(0);
    bucket.recordUse(4, 0);
    expect(bucket.nextAt(4)).toBe(20);
  });

  it('keeps saved-up permits when the rate changes', () => {
    const bucket = new PermitBucket(10, 1);
    bucket.tryTake(0);
    bucket.setRate(50, 5, 1);
    expect(bucket.nextAt(50)).toBe(150);
  });

  it('saves up more after the burst grows, and loses permits above a smaller burst', () => {
    const bucket = new PermitBucket(10, 1);
    bucket.tryTake(0);
    bucket.setRate(100, 10, 3);
    expect(bucket.available(100)).toBe(1);
    expect([200, 300, 900].map((at) => bucket.available(at))).toEqual([2, 3, 3]);
    bucket.setRate(900, 10, 1);
    expect(grantsOf(bucket, [900, 900, 999, 1000])).toEqual([900, 1000]);
  });

  it('always grants while unlimited, and is empty afterwards', () => {
    const bucket = new PermitBucket(Infinity, 1);
    expect(grantsOf(bucket, [5, 5, 5])).toEqual([5, 5, 5]);
    expect(bucket.available(5)).toBe(Infinity);
    bucket.setRate(5, 10, 4);
    expect([bucket.available(5), bucket.nextAt(5)]).toEqual([0, 105]);
    bucket.setRate(6, Infinity, 1);
    expect(grantsOf(bucket, [6, 6])).toEqual([6, 6]);
  });

  it('continues at its rate after the clock jumps back', () => {
    const bucket = new PermitBucket(10, 1);
    bucket.tryTake(100_000);
    expect(bucket.tryTake(0)).toBe(false);
    expect(bucket.nextAt(0)).toBe(100);
  });

  it('throws for invalid rates and bursts', () => {
    for (const rate of [0, -1, NaN]) expect(() => new PermitBucket(rate, 1)).toThrow(RangeError);
    for (const burst of [0, 0.5, NaN]) expect(() => new PermitBucket(1, burst)).toThrow(RangeError);
  });
});
