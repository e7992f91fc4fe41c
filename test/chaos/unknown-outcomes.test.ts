/** Calls whose outcome may stay unknown, a short form of `npm run soak:unknown`. */
import { expect, it } from 'vitest';
import { runUnknownOutcomes } from './unknown-outcomes.ts';

const POSTS = 110;

it.each([3, 4])(
  'no POST that was carried out is reported as not carried out, or without the word unknown, and none is sent twice: seed %i',
  async (seed) => {
    const report = await runUnknownOutcomes(seed, POSTS);
    expect(report.violations).toEqual([]);
    expect(report).toMatchObject({
      requests: POSTS,
      falselyRefused: 0,
      unmarked: 0,
      duplicatedPosts: 0,
      falselyComplete: 0,
    });
    expect(report.unmarkedLines).toEqual([]);
    expect(report.logged).toBeGreaterThan(POSTS / 2);
    // There were faults, and a drain.
    expect(report.seen).toBeGreaterThan(POSTS / 10);
    expect(report.lives).toBeGreaterThan(1);
    const outcomes = ['200 upstream', '502 UPSTREAM_RESET', '504 UPSTREAM_TIMEOUT'];
    expect(Object.keys(report.replies)).toEqual(expect.arrayContaining(outcomes));
  },
);
