/** The text of /status.txt, which `bearer-sidecar status` prints. */
import { expect, it } from 'vitest';
import type { Verdict } from '../../../src/admin/verdict/verdict.ts';
import { describeStatus, type Status } from '../../../src/admin/status/status.ts';
import { renderLimits, renderSummary } from '../../../src/admin/status/summary.ts';
import type { ActiveAlert } from '../../../src/admin/alerts/active-alerts.ts';
import { healthy, limited, noToken, unpaced, validToken } from '../../admin/states.ts';

function statusOf(alerts: readonly ActiveAlert[], verdict: Verdict = healthy, token = validToken): Status {
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

it('the verdict stands first, in the words of the page; the lines list every alert', () => {
  const lines = renderSummary(statusOf([warning], failing));
  expect(lines).toMatch(/^bearer-sidecar 1\.2\.3 {2}The partner responds 503\nup 1 s\n\n/);
  expect(lines).toMatch(/^ {2}where +partner, since 1970-01-01T00:00:00/m);
  expect(lines).toMatch(/^ {2}detail +9 requests failed\.$/m);
  expect(lines).toMatch(/^ {2}also +The rate limit is reached$/m);
  expect(lines).toMatch(/^ {2}do +Ask the partner\.$/m);
  expect(lines).toMatch(/^ {2}alerts +BearerSidecarUpstreamErrors \(quotes\), warning$/m);
});

it('the last failed call has a line, with what its partner asks for', () => {
  const call = {
    at: '2026-11-01T10:00:00.000Z',
    route: 'default',
    method: 'GET',
    path: '/quotes',
    status: 200,
    source: 'upstream',
    attempts: 1,
    waitSeconds: 0,
    durationSeconds: 0.12,
    reason: null,
    outcome: null,
    requestId: 'abc-9',
    caller: null,
    upstreamRequestId: 'up-7',
  } as const;
  const failed = { ...call, method: 'POST', status: 503 };
  const local = {
    ...failed,
    path: '/a',
    source: 'sidecar',
    reason: 'QUEUE_FULL',
    requestId: 'abc-8',
    upstreamRequestId: null,
  } as const;
  const textOf = (recentCalls: Status['recentCalls']): string =>
    renderSummary({ ...statusOf([], failing), recentCalls });
  expect(textOf([call, failed, local])).toMatch(
    /^ {2}failed +POST \/quotes at 2026-11-01T10:00:00\.000Z: 503 of the upstream after 120 ms, upstreamRequestId up-7, requestId abc-9$/m,
  );
  expect(textOf([local])).toMatch(
    /^ {2}failed +POST \/a at 2026-11-01T10:00:00\.000Z: 503 of the sidecar \(QUEUE_FULL\) after 120 ms, requestId abc-8$/m,
  );
  for (const none of [[call], [], null]) expect(textOf(none)).not.toContain('failed  ');
});

it('each of several routes has a line', () => {
  const orders = {
    route: 'orders',
    requests: 2400,
    share: 0.96,
    perSecond: 40,
    ok: 2376,
    clientErrors: 24,
    p50Ms: 40,
    p95Ms: 90,
  };
  const idle = { ...orders, route: 'stock', requests: 0, share: 0, ok: 0, p50Ms: undefined, p95Ms: undefined };
  const states = { tokens: [validToken], throttles: [unpaced], fleet: undefined, routes: [orders, idle] };
  const inputs = { version: '1.2.3', verdict: healthy, uptimeMs: 1000, draining: false, alerts: [] };
  const lines = renderSummary(describeStatus({ ...inputs, ...states })).split('\n');
  expect(lines.filter((line) => line.includes('  route '))).toEqual([
    '  route     orders: 40 per second, 96 % of the requests, 99 % succeed, 24 got 4xx, upstream p50 40 ms, p95 90 ms',
    '  route     stock: no requests in the last minute',
  ]);
});

it('a field of the partner that holds requests back has a line, and so has one that is disbelieved', () => {
  const throttle = { ...unpaced, heldBy: 'x-ratelimit-remaining', disbelievedFields: ['ratelimit'] };
  const states = { tokens: [validToken], throttles: [throttle], fleet: undefined };
  const inputs = { version: '1.2.3', verdict: healthy, uptimeMs: 1000, draining: false, alerts: [] };
  const text = renderSummary(describeStatus({ ...inputs, ...states }));
  expect(text).toContain("held by the partner's field x-ratelimit-remaining");
  expect(text).toContain('field ratelimit disbelieved: calls are accepted beyond it');
});

it('each declared limit has a line', () => {
  const day = { name: 'day', calls: 10_000, per: '1d', used: 7412, reserve: 0 };
  const limits = [
    { ...day, usedUpAt: 3_600_000, resetsAt: 86_400_000 },
    { ...day, name: 'burst', used: 0, usedUpAt: Infinity, resetsAt: Infinity },
    { ...day, name: 'tenants', used: 7, usedUpAt: Infinity, resetsAt: Infinity, match: 'GET /tenants/*', values: 12 },
  ];
  const states = { tokens: [validToken], throttles: [{ ...unpaced, limits }], fleet: undefined };
  const inputs = { version: '1.2.3', verdict: healthy, uptimeMs: 1000, draining: false, alerts: [] };
  const lines = renderSummary(describeStatus({ ...inputs, ...states })).split('\n');
  expect(lines.filter((line) => line.includes('declared'))).toEqual([
    '  declared  day: 7,412 of 10,000 calls per 1d, used up at 1970-01-01T01:00:00.000Z at this pace, resets at 1970-01-02T00:00:00.000Z',
    '  declared  burst: 0 of 10,000 calls per 1d',
    '  declared  tenants: 7 of 10,000 calls per 1d to GET /tenants/*, the fullest of 12',
  ]);
});

it('the text for the partner has what was learned, declared, assumed and refused, and no name of the client', () => {
  const day = { name: 'day', calls: 10_000, per: '1d', used: 7412, reserve: 0, usedUpAt: Infinity, resetsAt: Infinity };
  const assumed = {
    status: 503,
    endpoints: ['POST /quotes'],
    count: 12,
    since: Date.UTC(2026, 10, 1),
    setting: 'throttle: {}',
    variable: 'SIDECAR_X',
  } as const;
  const throttles = [
    { ...limited, limits: [day], assumed: [assumed] },
    { ...unpaced, route: 'stock' },
  ];
  const refusals = [{ route: 'default', status: 429, count: 1038, firstWallAt: 0, lastWallAt: 60_000 }];
  const states = { tokens: [validToken], throttles, fleet: undefined, refusals };
  const inputs = { version: '1.2.3', verdict: healthy, uptimeMs: 1000, draining: false, alerts: [] };
  expect(renderLimits(describeStatus({ ...inputs, ...states }), '2026-11-01T10:00:00.000Z')).toBe(
    `bearer-sidecar 1.2.3  rate limits as seen at 2026-11-01T10:00:00.000Z
up 1 s

route default
  rate      9.5 per second
  learned   100 requests per 10 s (window, learned, high confidence), since 2026-11-01T00:00:00.000Z
  declared  day: 7,412 of 10,000 calls per 1d
  assumed   503 without a stated limit is taken for one since 2026-11-01T00:00:00.000Z: 12 refusals, POST /quotes; not confirmed
  refused   1,038 with 429, the first at 1970-01-01T00:00:00.000Z, the last at 1970-01-01T00:01:00.000Z
  last      retry-after: 2; x-ratelimit-remaining: not understood (8 characters)

route stock
  rate      unlimited
  learned   none detected
  refused   none since the start
`,
  );
});

it('without a token the line of the token says why', () => {
  expect(renderSummary(statusOf([], healthy, noToken))).toMatch(/^ {2}token +none: not requested yet$/m);
});

it.each(['\n', '\r\n', '\u2028', '\u0085', '\v'])('a text from outside with the line end %j begins no line', (end) => {
  const detail = `the server said${end}  alerts    everything is fine`;
  const failed = { ...noToken, lastFailure: { outcome: 'unavailable' as const, detail, wallAt: 0 } };
  expect(renderSummary(statusOf([], healthy, failed))).not.toMatch(/^ {2}alerts/mu);
});
