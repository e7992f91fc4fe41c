/** What `bearer-sidecar status` says first, and about alerts. */
import { expect, it } from 'vitest';
import type { Verdict } from '../../../src/admin/verdict/verdict.ts';
import { describeStatus } from '../../../src/admin/status/status.ts';
import type { ActiveAlert } from '../../../src/admin/alerts/active-alerts.ts';
import type { RunningStatus } from '../../../src/commands/status/running-status.ts';
import { describeState, describeStatusLines } from '../../../src/commands/status/summary.ts';
import { healthy, noToken, unpaced, validToken } from '../../admin/states.ts';

const plain = (_role: string, text: string): string => text;

function statusOf(alerts: readonly ActiveAlert[], verdict: Verdict = healthy, token = validToken) {
  const states = { tokens: [token], throttles: [unpaced], fleet: undefined };
  return describeStatus({ version: '1.2.3', verdict, uptimeMs: 1000, draining: false, ...states, alerts });
}

const warning: ActiveAlert = { name: 'BearerSidecarUpstreamErrors', subject: 'quotes', value: 0.3 };
const failing: Verdict = {
  ...{
    level: 'bad',
    where: 'partner',
    code: '503',
    headline: 'The partner responds 503',
    detail: '9 requests failed.',
  },
  ...{ route: 'quotes', share: 0.3, sinceWallAt: 0, advice: 'Ask the partner.', other: 'The rate limit is reached' },
};

it('the verdict is the state, in the words of the page; the lines list every alert', () => {
  const status = statusOf([warning], failing);
  expect(describeState(status)).toEqual({ role: 'bad', text: 'The partner responds 503', isServing: true });
  const lines = describeStatusLines(status, plain).join('\n');
  expect(lines).toMatch(/^ {2}where +partner, since 1970-01-01T00:00:00/m);
  expect(lines).toMatch(/^ {2}detail +9 requests failed\.$/m);
  expect(lines).toMatch(/^ {2}also +The rate limit is reached$/m);
  expect(lines).toMatch(/^ {2}do +Ask the partner\.$/m);
  expect(lines).toMatch(/^ {2}alerts +BearerSidecarUpstreamErrors \(quotes\), warning$/m);
});

it('the last failed call has a line, with what its partner asks for', () => {
  const call = {
    ...{
      at: '2026-11-01T10:00:00.000Z',
      route: 'default',
      method: 'GET',
      path: '/quotes',
      status: 200,
      source: 'upstream',
    },
    ...{ attempts: 1, waitSeconds: 0, durationSeconds: 0.12, reason: null, outcome: null, requestId: 'abc-9' },
    ...{ caller: null, upstreamRequestId: 'up-7' },
  } as const;
  const failed = { ...call, method: 'POST', path: '/quotes?\u001b[2J', status: 503 };
  const local = {
    ...failed,
    path: '/a',
    source: 'sidecar',
    reason: 'QUEUE_FULL',
    requestId: 'abc-8',
    upstreamRequestId: null,
  };
  const linesOf = (recentCalls: unknown): string => {
    const status = JSON.parse(JSON.stringify({ ...statusOf([], failing), recentCalls })) as RunningStatus;
    return describeStatusLines(status, plain).join('\n');
  };
  expect(linesOf([call, failed, local])).toMatch(
    /^ {2}failed +POST \/quotes\?\\u\{1b\}\[2J at 2026-11-01T10:00:00\.000Z: 503 of the upstream after 120 ms, upstreamRequestId up-7, requestId abc-9$/m,
  );
  expect(linesOf([local])).toMatch(
    /^ {2}failed +POST \/a at 2026-11-01T10:00:00\.000Z: 503 of the sidecar \(QUEUE_FULL\) after 120 ms, requestId abc-8$/m,
  );
  for (const none of [[call], [], null, undefined, 'text', [{ status: 503 }]])
    expect(linesOf(none)).not.toContain('failed  ');
});

it('each declared limit has a line, and a sidecar of an earlier version has none', () => {
  const day = { name: 'day', calls: 10_000, per: '1d', used: 7412, reserve: 0 };
  const limits = [
    { ...day, usedUpAt: 3_600_000, resetsAt: 86_400_000 },
    { ...day, name: 'burst', used: 0, usedUpAt: Infinity, resetsAt: Infinity },
  ];
  const states = { tokens: [validToken], throttles: [{ ...unpaced, limits }], fleet: undefined };
  const status = describeStatus({
    ...{ version: '1.2.3', verdict: healthy, uptimeMs: 1000, draining: false, ...states, alerts: [] },
  });
  const lines = describeStatusLines(status, plain);
  expect(lines.filter((line) => line.includes('declared'))).toEqual([
    '  declared  day: 7,412 of 10,000 calls per 1d, used up at 1970-01-01T01:00:00.000Z at this pace, resets at 1970-01-02T00:00:00.000Z',
    '  declared  burst: 0 of 10,000 calls per 1d',
  ]);
  const earlier = { ...status, throttles: status.throttles.map((throttle) => ({ ...throttle, limits: undefined })) };
  const parsed = JSON.parse(JSON.stringify(earlier)) as RunningStatus;
  expect(describeStatusLines(parsed, plain).join('\n')).not.toContain('declared');
});

it('a sidecar without a token does not serve', () => {
  expect(describeState(statusOf([], healthy, noToken)).isServing).toBe(false);
});

it('a sidecar of an earlier version states neither alerts nor a verdict', () => {
  const given = { ...statusOf([warning]), alerts: undefined, verdict: undefined };
  const earlier = JSON.parse(JSON.stringify(given)) as RunningStatus;
  expect(describeState(earlier).text).toBe('ready');
});
