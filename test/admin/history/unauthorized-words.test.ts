import { expect, test } from 'vitest';
import { createActivity } from '../../../src/admin/history/activity.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('the words of a 401 that was held stay while others say less of the same, and go when they say something else', () => {
  const { observe, listLastFaults } = createActivity(new ManualClock(0));
  const wordsAfter = (detail: string) => {
    observe({ kind: 'unauthorized', route: 'a', detail });
    return listLastFaults().map((fault) => fault.detail);
  };
  const held = 'the partner says "invalid_token: suspended"';
  expect(wordsAfter(held)).toEqual([held]);
  expect(wordsAfter('the partner says "invalid_token"')).toEqual([held]);
  const other = 'the partner says "insufficient_scope"';
  expect(wordsAfter(other)).toEqual([other]);
});
