/** What `bearer-sidecar status` says first, and about alerts. */
import { expect, it } from 'vitest';
import { describeStatus } from '../../../src/admin/status/status.ts';
import type { ActiveAlert } from '../../../src/admin/alerts/active-alerts.ts';
import type { RunningStatus } from '../../../src/commands/status/running-status.ts';
import { describeState, describeStatusLines } from '../../../src/commands/status/summary.ts';
import { noToken, unpaced, validToken } from '../../admin/states.ts';

const plain = (_role: string, text: string): string => text;

function statusOf(alerts: readonly ActiveAlert[], token = validToken) {
  const states = { tokens: [token], throttles: [unpaced], fleet: undefined };
  return describeStatus({ version: '1.2.3', uptimeMs: 1000, draining: false, ...states, alerts });
}

const warning: ActiveAlert = { name: 'BearerSidecarUpstreamErrors', subject: 'quotes', value: 0.3 };
const critical: ActiveAlert = { name: 'BearerSidecarRequestsFailing', subject: 'quotes', value: 0.3 };

it('the condition of a critical alert is the state; the lines list every alert', () => {
  const status = statusOf([critical, warning]);
  expect(describeState(status)).toEqual({
    role: 'bad',
    text: 'critical: BearerSidecarRequestsFailing (quotes)',
    isServing: true,
  });
  const lines = describeStatusLines(status, plain).join('\n');
  expect(lines).toMatch(/^ {2}alerts +BearerSidecarRequestsFailing \(quotes\), critical$/m);
  expect(lines).toMatch(/^ {2} +BearerSidecarUpstreamErrors \(quotes\), warning$/m);
});

it('a warning changes no state, and a missing token goes before an alert', () => {
  expect(describeState(statusOf([warning])).text).toBe('ready');
  expect(describeState(statusOf([critical], noToken)).text).toBe('starting: no token yet');
});

it('a sidecar of an earlier version states no alerts', () => {
  const earlier = JSON.parse(JSON.stringify({ ...statusOf([critical]), alerts: undefined })) as RunningStatus;
  expect(describeState(earlier).text).toBe('ready');
});
