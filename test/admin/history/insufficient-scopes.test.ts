import { expect, test } from 'vitest';
import { createActivity } from '../../../src/admin/history/activity.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('lists each route whose upstream refused a scope, with the count, the last time and the scope named last', async () => {
  const clock = new ManualClock(0);
  const { observe, listInsufficientScopes } = createActivity(clock);
  expect(listInsufficientScopes()).toEqual([]);
  observe({ kind: 'insufficient-scope', route: 'a', needed: 'x' });
  observe({ kind: 'retry', route: 'c', reason: 'reset' });
  await clock.advance(1_000);
  observe({ kind: 'insufficient-scope', route: 'b', needed: 'z' });
  observe({ kind: 'insufficient-scope', route: 'a', needed: undefined });
  expect(listInsufficientScopes()).toEqual([
    { route: 'a', count: 2, wallAt: 1_000, needed: undefined },
    { route: 'b', count: 1, wallAt: 1_000, needed: 'z' },
  ]);
});
