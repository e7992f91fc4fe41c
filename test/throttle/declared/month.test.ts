/** Days of one process with declared limits across the changes of clocks, with restarts and crashes; test/bench/limits plays months. */
import { expect, it } from 'vitest';
import { LIMITS, playMonth } from '../../bench/limits/month.ts';

it.each([
  ['Berlin', '2026-10-24T15:00:00Z'],
  ['New York, with another month', '2026-10-31T15:00:00Z'],
])('the upstream refuses nothing and no count is lost when the clocks change in %s', async (_, start) => {
  const result = await playMonth({ start: Date.parse(start), days: 1.2, seed: 3, ends: 4 });
  expect(result).toMatchObject({ refused: 0, lost: 0, warnings: [] });
  expect(result.sent).toBeGreaterThan(5000);
  expect(result.crashes).toHaveLength(4);
  for (const { overCounts, aboveUpstream } of result.crashes) {
    expect(Math.min(...aboveUpstream)).toBeGreaterThanOrEqual(0);
    for (const [index, { calls }] of LIMITS.entries())
      expect(overCounts[index]).toBeLessThanOrEqual(Math.min(1000, calls * 0.02));
  }
});
