import { expect, test } from 'vitest';
import { createActivity } from '../../../src/admin/history/activity.ts';
import { describeDegradation } from '../../../src/admin/status/readiness.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { unpaced, validToken } from '../states.ts';

test('a clock that differs by more than 30 s is shown until it agrees again', () => {
  const { observe, listClockSkews } = createActivity(new ManualClock(0));
  const shown = () =>
    describeDegradation({
      version: '1.2.3',
      uptimeMs: 0,
      draining: false,
      tokens: [validToken],
      throttles: [unpaced],
      clockSkews: listClockSkews(),
    });
  observe({ kind: 'clock-compared', from: 'auth.test', skewMs: 29_000 });
  expect(shown()).toEqual([]);
  observe({ kind: 'clock-compared', from: 'auth.test', skewMs: -95_400 });
  expect(shown()).toEqual([
    'clock: that of auth.test is 95 s behind ours; find out which one is wrong, and synchronize it with a time server (NTP)',
  ]);
  observe({ kind: 'clock-compared', from: 'auth.test', skewMs: 500 });
  expect(shown()).toEqual([]);
});
