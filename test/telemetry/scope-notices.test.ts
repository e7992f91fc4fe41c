import { expect, test } from 'vitest';
import { createInsufficientScopeRecords } from '../../src/telemetry/scope-notices.ts';
import { ManualClock } from '../support/manual-clock.ts';

test('each route that was refused for want of a scope, with how often, when last, and what was needed then', async () => {
  const clock = new ManualClock(0);
  const { observe, read } = createInsufficientScopeRecords(clock);
  expect(read()).toEqual([]);
  observe({ kind: 'insufficient-scope', route: 'a', needed: 'x' });
  observe({ kind: 'retry', route: 'c', reason: 'reset' });
  await clock.advance(1_000);
  observe({ kind: 'insufficient-scope', route: 'b', needed: 'z' });
  observe({ kind: 'insufficient-scope', route: 'a', needed: undefined });
  expect(read()).toEqual([
    { route: 'a', count: 2, wallAt: 1_000, needed: undefined },
    { route: 'b', count: 1, wallAt: 1_000, needed: 'z' },
  ]);
});
