/** Calls whose outcome may stay unknown, a short form of `npm run soak:unknown`. */
import { expect, it } from 'vitest';
import { runUnknownOutcomes } from './unknown-outcomes.ts';

const POSTS = 150;

it.each([3, 4])(
  'no POST that was carried out is reported as not carried out, and none is sent twice: seed %i',
  async (seed) => {
    const report = await runUnknownOutcomes(seed, POSTS);
    expect(report.violations).toEqual([]);
    expect(report).toMatchObject({ requests: POSTS, falselyRefused: 0, duplicatedPosts: 0, falselyComplete: 0 });
    // There were faults, refusals and drains.
    expect(report.seen).toBeGreaterThan(POSTS / 5);
    expect(report.lives).toBeGreaterThan(1);
    expect(Object.keys(report.replies)).toEqual(
      expect.arrayContaining(['200 upstream', '429 upstream', '502 UPSTREAM_RESET', '504 UPSTREAM_TIMEOUT']),
    );
  },
);
