/** Sidecars that are killed under load, a short form of `npm run bench:unknown-calls`. */
import { expect, it } from 'vitest';
import { runKills } from './killed-sidecars.ts';

it('every call that reached the upstream has a response, or is open in the file of unknown calls', async () => {
  const report = await runKills(8, 3);
  expect(report.missing).toEqual([]);
  expect(report.lastExit).toBe(0);
  // There were calls to lose.
  expect(report.open).toBeGreaterThan(8);
  expect(report.reached).toBeGreaterThan(100);
  expect(report.overReported).toBeLessThan(report.responded / 5);
});
