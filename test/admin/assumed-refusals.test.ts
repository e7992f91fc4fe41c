/** How an assumed refusal appears in /status and on the page. */
import { expect, test } from 'vitest';
import { describeStatus } from '../../src/admin/status/status.ts';
import { renderThrottles } from '../../src/admin/page/throttle-part.ts';
import { healthy, unpaced, validToken } from './states.ts';

const ASSUMED = {
  status: 503 as const,
  endpoints: ['POST /policies'],
  count: 60,
  since: 1000,
  setting: 'throttle: { refusals: [{"status":503}] }',
  variable: `SIDECAR_THROTTLE_REFUSALS='[{"status":503}]'`,
};

const status = describeStatus({
  version: '1',
  verdict: healthy,
  alerts: [],
  uptimeMs: 1,
  draining: false,
  tokens: [validToken],
  throttles: [{ ...unpaced, assumed: [ASSUMED] }],
});

test('the status has the count, the endpoints and the line to paste', () => {
  expect(status.throttle.assumed).toEqual([{ ...ASSUMED, since: '1970-01-01T00:00:01.000Z' }]);
});

test('the page shows the line to paste, in cards and in the table', () => {
  for (const count of [1, 3]) {
    const throttles = Array.from({ length: count }, () => status.throttle);
    const { text } = renderThrottles({ status: { ...status, throttles }, nowWallAt: 0 });
    expect(text.match(/refusals: \[\{&#34;status&#34;:503\}\]/g)).toHaveLength(count);
  }
});
