import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';

type Move =
  | { readonly kind: 'add'; readonly apartMs: number }
  /** Removes the call at this index, or an instant that was never added. */
  | { readonly kind: 'remove'; readonly pick: number }
  | { readonly kind: 'look'; readonly from: number; readonly lengthMs: number };

/** Multiples of 0.5, so that many instants are equal; one in eight steps goes back. */
const APART = fc.oneof(
  { weight: 7, arbitrary: fc.integer({ min: 0, max: 4 }).map((halves) => halves / 2) },
  { weight: 1, arbitrary: fc.integer({ min: -40, max: -1 }) },
);

const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('add' as const), apartMs: APART }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat(400) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('look' as const),
      from: fc.integer({ min: -50, max: 400 }),
      lengthMs: fc.integer({ min: -10, max: 200 }),
    }),
  },
);

/** The same as an array that drops nothing. */
class PlainLog {
  readonly instants: number[] = [];

  add(at: number): void {
    this.instants.push(Math.max(at, this.instants.at(-1) ?? at));
  }

  remove(at: number): void {
    const index = this.instants.indexOf(at);
    if (index >= 0) this.instants.splice(index, 1);
  }
}

describe('the call log', () => {
  it('counts as a plain array does after any additions and removals', () => {
    fc.assert(
      fc.property(fc.array(MOVE, { minLength: 1, maxLength: 600 }), (moves) => {
        const log = new CallLog(100_000, 1e9);
        const plain = new PlainLog();
        let now = 0;
        for (const move of moves) {
          if (move.kind === 'add') {
            now += move.apartMs;
            log.add(now);
            plain.add(now);
          } else if (move.kind === 'remove') {
            const at = plain.instants[move.pick] ?? move.pick + 0.25;
            log.remove(at);
            plain.remove(at);
          } else {
            const { from, lengthMs } = move;
            const to = from + lengthMs;
            expect(log.firstIndexFrom(from)).toBe(plain.instants.filter((at) => at < from).length);
            expect(log.count(from, to)).toBe(plain.instants.filter((at) => at >= from && at < to).length);
          }
          expect(log.size).toBe(plain.instants.length);
        }
        expect(Array.from({ length: log.size }, (_, index) => log.at(index))).toEqual(plain.instants);
        expect([log.at(-1), log.at(log.size)]).toEqual([NaN, NaN]);
      }),
    );
  });

  it('drops the oldest calls at its capacity, and keeps all later ones', () => {
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 3000 }), fc.integer({ min: 1, max: 5 }), (calls, apartMs) => {
        const log = new CallLog(256, 1e9);
        for (let call = 0; call < calls; call++) log.add(call * apartMs);
        expect(log.size).toBeLessThanOrEqual(256);
        expect(log.size).toBeGreaterThanOrEqual(192);
        const everyCall = Array.from({ length: calls }, (_, call) => call * apartMs);
        const kept = Array.from({ length: log.size }, (_, index) => log.at(index));
        expect(kept).toEqual(everyCall.slice(-log.size));
      }),
    );
  });

  it('drops calls beyond the maximum age when it needs room', () => {
    const log = new CallLog(100_000, 1000);
    for (let at = 0; at < 1_000_000; at += 10) log.add(at);
    expect(log.size).toBeLessThan(600);
    expect(log.count(999_000, Infinity)).toBe(100);
    expect(log.at(0)).toBeGreaterThan(990_000);
  });
});
