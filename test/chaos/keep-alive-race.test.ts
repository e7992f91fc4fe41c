/** The keep-alive race, a sample of `npm run soak:keepalive`. */
import { expect, it } from 'vitest';
import { runKeepAliveRace } from './keep-alive-race.ts';

it('no idempotent request notices that the upstream closes idle connections, and no POST is sent twice', async () => {
  const report = await runKeepAliveRace(1000);
  expect(report.violations).toEqual([]);
  expect(report).toMatchObject({ gets: 500, failedGets: 0, posts: 500, duplicatedPosts: 0, falselyComplete: 0 });
  // The race was run, and a POST whose fate is unknown is the exception.
  expect(report.connections).toBeGreaterThan(200);
  expect(report.failedPosts).toBeLessThan(100);
});
