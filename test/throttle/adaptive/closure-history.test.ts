/** Which closures are kept, and what is kept of each. The counter that is looked at counts all calls so far. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallLog } from '../../../src/throttle/adaptive/call-log.ts';
import { ClosureHistory } from '../../../src/throttle/adaptive/closure-history.ts';
import { CounterBank } from '../../../src/throttle/adaptive/counter-bank.ts';

const JITTER_MS = 10;
const APART_MS = 1000;

/** Calls one after another, each with its outcome. */
class Calls {
  readonly #log = new CallLog(100_000, 1e9);
  readonly #bank = new CounterBank(['window'], this.#log);
  readonly history = new ClosureHistory(this.#bank);
  /** By which accepted calls are counted that no window but the longest holds. */
  readonly #longest = this.#bank.counters.length - 1;
  #now = 0;

  /** @returns what the last of them has ended */
  accept(count = 1, apartMs = APART_MS): string | undefined {
    let ended: string | undefined;
    for (let call = 0; call < count; call++) {
      this.#now += apartMs;
      ended = this.history.recordAccepted({ at: this.#now, inFlight: 0 }, JITTER_MS);
      this.#log.add(this.#now);
    }
    return ended;
  }

  refuse(apartMs = APART_MS): void {
    this.#now += apartMs;
    this.history.recordRefused({ at: this.#now, inFlight: 0 }, JITTER_MS);
  }

  /** A call that was sent before the last refusal was known. */
  refuseLate(apartMs: number): void {
    this.history.recordLateRefusal({ at: this.#now + apartMs, inFlight: 0 }, JITTER_MS);
  }

  exceed(): void {
    this.history.recordExcess({ at: this.#now + APART_MS, inFlight: 0 }, JITTER_MS);
  }

  get kept(): { refused: number | undefined; accepted: number | undefined }[] {
    return this.history.closures.map(({ refused, accepted }) => {
      return { refused: refused[this.#longest], accepted: accepted[this.#longest] };
    });
  }

  get refused(): (number | undefined)[] {
    return this.kept.map(({ refused }) => refused);
  }
}

describe('closures', () => {
  it('are refusals without an accepted call between them; the first six and the newest twelve are kept', () => {
    const property = fc.property(fc.array(fc.boolean(), { maxLength: 150 }), (outcomes) => {
      const calls = new Calls();
      const closures: number[] = [];
      let accepted = 0;
      for (const [index, isAccepted] of outcomes.entries()) {
        if (isAccepted) {
          calls.accept();
          accepted++;
          continue;
        }
        // Before the first accepted call a refusal says nothing about calls.
        if (index > 0 && outcomes[index - 1] === true) closures.push(accepted);
        calls.refuse();
      }
      const expected = closures.length <= 18 ? closures : [...closures.slice(0, 6), ...closures.slice(-12)];
      expect(calls.refused).toEqual(expected);
    });
    fc.assert(property);
  });

  it('keep the lowest count at which a call was refused, and the highest one accepted beside it', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse();
    calls.refuse();
    expect(calls.kept).toEqual([{ refused: 5, accepted: 4 }]);
    calls.accept(3);
    expect(calls.kept).toEqual([{ refused: 5, accepted: 5 }]);
    calls.refuse();
    expect(calls.kept).toEqual([
      { refused: 5, accepted: 5 },
      { refused: 8, accepted: 7 },
    ]);
  });

  it('go on while calls are accepted that may have overtaken the refused one', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse();
    calls.accept(1, 2 * JITTER_MS);
    calls.refuse(1);
    expect(calls.refused).toEqual([5]);
    calls.accept(1, 2 * JITTER_MS + 1);
    calls.refuse();
    expect(calls.refused).toEqual([5, 7]);
  });

  it('go on while calls are refused that were sent before the first refusal was known', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse();
    calls.refuseLate(30);
    expect(calls.accept(1, 30 + 2 * JITTER_MS)).toBeUndefined();
    calls.refuse();
    expect(calls.refused).toEqual([5]);
    calls.accept();
    calls.refuseLate(1);
    calls.refuse();
    expect(calls.refused).toEqual([5, 7]);
  });

  it('are not kept where no call was made before: the refusal has another reason', () => {
    const calls = new Calls();
    calls.refuse();
    expect(calls.kept).toEqual([]);
  });

  it('of more than ten minutes are forgotten when a shorter one follows: they were outages', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse();
    expect(calls.accept(1, 601_000)).toBe('outage');
    calls.accept(2);
    expect(calls.refused).toEqual([5]);
    calls.refuse();
    expect(calls.accept()).toBe('changed');
    expect(calls.refused).toEqual([8]);
  });

  it('of more than 45 s may be outages, and after one only those that are eight times as long', () => {
    const calls = new Calls();
    const ends = [40_000, 50_000, 390_000, 410_000].map((closedMs) => {
      calls.accept(5);
      calls.refuse();
      return calls.accept(1, closedMs);
    });
    expect(ends).toEqual([undefined, 'outage', undefined, 'outage']);
    expect(calls.refused).toHaveLength(4);
  });

  it('are as long as calls are refused, however long no call was made before', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse(3_600_000);
    expect(calls.accept()).toBeUndefined();
  });

  it('all learn that a call was accepted above the chosen capacity', () => {
    const calls = new Calls();
    for (let closure = 0; closure < 3; closure++) {
      calls.accept(5);
      calls.refuse();
    }
    calls.accept(20);
    calls.exceed();
    expect(calls.kept.map(({ accepted }) => accepted)).toEqual([35, 35, 35]);
  });

  it('are forgotten when the limit was raised', () => {
    const calls = new Calls();
    calls.accept(5);
    calls.refuse();
    calls.history.forget(-Infinity);
    expect(calls.kept).toEqual([]);
    calls.refuse();
    expect(calls.refused).toEqual([5]);
  });
});

it('a restored limit that no counter explains does not take the place of what is learned', () => {
  const bank = new CounterBank(['window'], new CallLog(100, 1e9));
  const history = new ClosureHistory(bank);
  const none = new Float32Array(bank.counters.length);
  history.restore({ refused: none, accepted: none }, 0);
  expect(history.closures).toEqual([]);
});
