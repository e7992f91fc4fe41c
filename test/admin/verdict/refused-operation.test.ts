/** What is said of an operation that is refused alone, while it is and afterwards. */
import { describe, expect, it } from 'vitest';
import { describeOperations } from '../../../src/admin/quantity-texts.ts';
import { playRefusals, type RefusalPlay } from '../../throttle/refusal-world.ts';

const MINUTE_MS = 60_000;

/** The operation is refused from the second minute on. */
const playUntil = async (toMs: number, endMs: number, lanes: RefusalPlay['lanes']) => {
  const { throttle } = await playRefusals({
    ...{ seed: 1, fromMs: MINUTE_MS, toMs, endMs, roundTripMs: 50, statedWaitMs: 0, lanes },
    rates: { GET: 8, POST: 4 },
    refusedShares: { GET: 0, POST: 1 },
  });
  return describeOperations(throttle.state());
};

describe('an operation that is refused alone', () => {
  it('is named while it is refused', async () => {
    expect(await playUntil(Infinity, 3 * MINUTE_MS, 'auto')).toBe('POST /quotes is refused; other operations are not');
  });

  it('is not named once it is accepted again, although it keeps its lane', async () => {
    expect(await playUntil(3 * MINUTE_MS, 10 * MINUTE_MS, 'auto')).toBeUndefined();
  });

  it('is named with the setting that helps the others where it may have no lane', async () => {
    expect(await playUntil(Infinity, 3 * MINUTE_MS, false)).toMatch(
      /^the refusals fall on POST \/quotes: with throttle\.lanes/,
    );
  });
});
