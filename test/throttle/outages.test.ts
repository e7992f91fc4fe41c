/**
 * An upstream that refuses calls for a time although it has no limit: what was learned from the refusals is given up when it brings less than
 * was accepted before, and what one operation is refused costs no other one.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawCase } from '../bench/operations/cases.ts';
import { play } from '../bench/operations/play.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { roundsOf } from '../support/rounds.ts';
import { playRefusals, type RefusalPlay } from './refusal-world.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** What is drawn of each play: rates, times and round trips. */
const DRAWN = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  gets: fc.integer({ min: 4, max: 25 }),
  postsPerGet: fc.double({ min: 0.1, max: 1, noNaN: true }),
  fromMs: fc.integer({ min: 60 * SECOND_MS, max: 120 * SECOND_MS }),
  roundTripMs: fc.integer({ min: 5, max: 100 }),
});

/** Evidence comes by chance, and in a few of a hundred plays late: the inputs are the same in each run. */
const RUNS = { numRuns: roundsOf({ check: 4, soak: 30 }), seed: 1 };

interface Terms {
  readonly refusedForMs: number;
  readonly share: number;
  readonly refusesGets: boolean;
  readonly lanes: RefusalPlay['lanes'];
}

function playOf(drawn: typeof DRAWN extends fc.Arbitrary<infer T> ? T : never, terms: Terms): RefusalPlay {
  const { seed, gets, postsPerGet, fromMs, roundTripMs } = drawn;
  const toMs = fromMs + terms.refusedForMs;
  return {
    seed,
    rates: { GET: gets, POST: gets * postsPerGet },
    refusedShares: { GET: terms.refusesGets ? terms.share : 0, POST: terms.share },
    fromMs,
    toMs,
    endMs: toMs + 4 * MINUTE_MS,
    roundTripMs,
    statedWaitMs: 0,
    lanes: terms.lanes,
  };
}

describe('an upstream that refuses every call', () => {
  it.each([1, 5, 12])('for %i minutes serves all of them within two minutes after it', async (minutes) => {
    await fc.assert(
      fc.asyncProperty(DRAWN, async (drawn) => {
        const terms = { refusedForMs: minutes * MINUTE_MS, share: 1, refusesGets: true, lanes: 'auto' as const };
        const played = playOf(drawn, terms);
        const { acceptedShare } = await playRefusals(played);
        const from = played.toMs + 2 * MINUTE_MS;
        expect(acceptedShare('GET', from, played.endMs)).toBeGreaterThan(0.95);
        expect(acceptedShare('POST', from, played.endMs)).toBeGreaterThan(0.95);
      }),
      RUNS,
    );
  });
});

describe('an upstream that refuses one operation', () => {
  it.each([1, 0.3])('in a share of %d of its calls accepts the others again after a minute', async (share) => {
    await fc.assert(
      fc.asyncProperty(DRAWN, async (drawn) => {
        const terms = { refusedForMs: 4 * MINUTE_MS, share, refusesGets: false, lanes: 'auto' as const };
        const played = playOf(drawn, terms);
        const { acceptedShare } = await playRefusals(played);
        expect(acceptedShare('GET', played.fromMs + MINUTE_MS, played.endMs)).toBeGreaterThan(0.8);
        expect(acceptedShare('POST', played.toMs + 2 * MINUTE_MS, played.endMs)).toBeGreaterThan(0.5);
      }),
      RUNS,
    );
  });

  it('is not given a lane with `throttle.lanes: false`, and all calls are served within four minutes after it', async () => {
    const played: RefusalPlay = {
      ...{ seed: 1, fromMs: MINUTE_MS, toMs: 3 * MINUTE_MS, endMs: 8 * MINUTE_MS, roundTripMs: 50, statedWaitMs: 0 },
      rates: { GET: 8, POST: 4 },
      refusedShares: { GET: 0, POST: 1 },
      lanes: false,
    };
    const { acceptedShare, throttle } = await playRefusals(played);
    expect(throttle.state()).toMatchObject({ lanes: [], refusedOperation: 'POST /quotes' });
    expect(acceptedShare('GET', 7 * MINUTE_MS, 8 * MINUTE_MS)).toBeGreaterThan(0.95);
  });
});

it('a limit for all operations costs as many refusals as without lanes, and is used as well', async () => {
  let [refusedWithout, refused, acceptedWithout, accepted] = [0, 0, 0, 0];
  for (let number = 1; number <= roundsOf({ check: 24, soak: 200 }); number++) {
    const played = drawCase('shared', createRandom(number, 'outages'));
    for (const { refused: count, accepted: served } of await play(played, number, false)) {
      refusedWithout += count;
      acceptedWithout += served;
    }
    for (const { refused: count, accepted: served } of await play(played, number, 'auto')) {
      refused += count;
      accepted += served;
    }
  }
  expect(refused).toBeLessThan(1.1 * refusedWithout);
  expect(accepted).toBeGreaterThan(0.99 * acceptedWithout);
});
