import { describe, expect, it } from 'vitest';
import { RefusalCount } from '../../../src/throttle/adaptive/refusal-count.ts';
import { createRandom } from '../../bench/governor/seeded.ts';

describe('refused calls in a row', () => {
  it.each([0.01, 0.1, 0.3, 0.5])('are no cluster at random: %s', (share) => {
    const random = createRandom(7, 'refusals');
    let clustered = 0;
    for (let run = 0; run < 1000; run++) {
      const count = new RefusalCount();
      for (let call = 0; call < 200; call++) count.record(random() >= share);
      if (count.isClustered) clustered++;
    }
    expect(clustered).toBeLessThan(25);
  });

  it('are one while a limit is closed', () => {
    const count = new RefusalCount();
    for (let call = 0; call < 60; call++) count.record(call % 30 < 20);
    expect(count.isClustered).toBe(true);
  });

  it('are none before two were refused', () => {
    const count = new RefusalCount();
    count.record(false);
    expect(count.isClustered).toBe(false);
    count.record(true);
    expect(count.isClustered).toBe(false);
  });
});
