/** The summary at the top of the page. */
import { describe, expect, it } from 'vitest';
import type { LastMinute } from '../../src/admin/history/history.ts';
import type { CodeCount } from '../../src/admin/history/minutes.ts';
import { evaluateView } from '../../src/admin/page/fragments.ts';
import type { StatusInputs } from '../../src/admin/status/status-shape.ts';
import { createProposal } from '../../src/throttle/refusal-evidence/refusal-proposal.ts';
import type { TokenState } from '../../src/token/token.ts';
import { failing, limited, noToken, unpaced, validToken } from './states.ts';
import { viewOf } from './view.ts';

const idleMinute = viewOf().lastMinute;
const refusedClient: TokenState['lastFailure'] = {
  outcome: 'rejected',
  detail: 'auth.example responded to the token request with 401 and the error "invalid_client"',
  wallAt: 0,
};

function evaluate(states: Partial<StatusInputs>, lastMinute: Partial<LastMinute> = {}, latestCodes: CodeCount[] = []) {
  return evaluateView(viewOf(states, { lastMinute: { ...idleMinute, ...lastMinute }, recentCodes: latestCodes }));
}

const upstream = (code: number, count: number): CodeCount => ({ code, source: 'upstream', count });
const queueing = { ...limited, pausedMs: 0 };

describe('the health summary', () => {
  it.each<[string, ReturnType<typeof evaluate>, string, string, RegExp]>([
    ['there are no requests', evaluate({}), 'good', 'Ready', /no requests/],
    [
      'requests succeed',
      evaluate({}, { requests: 1234, ok: 1230, clientErrors: 4, medianMs: 45 }),
      ...([
        'good',
        'Healthy',
        /^1,234 requests in the last minute, p50 45 ms; 0 failed, 4 client errors \(4xx\)\.$/,
      ] as const),
    ],
    [
      'the first token is requested',
      evaluate({ tokens: [noToken] }),
      'wait',
      'Starting: requesting the first token',
      /wait/,
    ],
    [
      'client authentication fails',
      evaluate({ tokens: [{ ...noToken, lastFailure: refusedClient, consecutiveFailures: 1 }] }),
      ...(['bad', 'No token: client authentication failed (invalid_client)', /401.*Check the client id/] as const),
    ],
    [
      'the token endpoint is down',
      evaluate({ tokens: [{ ...noToken, ...failing }] }),
      ...(['bad', 'No token: the token endpoint is not available', /^Connect to auth\.internal refused\./] as const),
    ],
    [
      'the held token has expired',
      evaluate({ tokens: [{ ...validToken, ...failing, validForMs: 0 }] }),
      ...(['bad', 'No token: the token endpoint is not available', /auth\.internal/] as const),
    ],
    [
      'one credential of two has no token',
      evaluate({ tokens: [validToken, { ...noToken, ...failing, credential: 'quotes' }] }),
      ...(['bad', 'No token for quotes: the token endpoint is not available', /other credentials work\.$/] as const),
    ],
    [
      'a learned limit delays requests',
      evaluate({ throttles: [{ ...queueing, learned: { ...queueing.learned!, rate: 6.1 } }] }),
      ...(['wait', 'Rate limited: the upstream allows about 6 requests per second', /12 requests wait\.$/] as const),
    ],
    [
      'a configured rate delays requests',
      evaluate({ throttles: [{ ...queueing, mode: 'static', rate: 0.5, learned: undefined }] }),
      ...(['wait', 'Rate limited: the configuration allows 0.5 requests per second', /12 requests wait\.$/] as const),
    ],
    [
      'the throttle is paused',
      evaluate({ throttles: [limited] }),
      'wait',
      'Rate limited: paused, stated by the upstream',
      /12 requests wait and/,
    ],
    [
      'one route of two is paused',
      evaluate({ throttles: [unpaced, { ...limited, route: 'quotes', queued: 1 }] }),
      ...(['wait', 'Rate limited: paused, stated by the upstream', /1 request waits on quotes/] as const),
    ],
    [
      'no attempt gets a response',
      evaluate({}, { requests: 5, own: 5, sent: 20, faults: 20 }),
      ...(['bad', 'The upstream is unreachable', /20 of 20 attempts/] as const),
    ],
    [
      'most responses are 5xx',
      evaluate({}, { requests: 10, ok: 2, serverErrors: 8 }, [upstream(200, 2), upstream(500, 1), upstream(503, 7)]),
      ...(['bad', 'The upstream returns errors (503)', /8 of 10 responses/] as const),
    ],
    [
      'most responses are 401',
      evaluate({}, { requests: 9, clientErrors: 9 }, [upstream(401, 9)]),
      ...(['bad', 'The upstream rejects the token (401)', /audience/] as const),
    ],
    [
      'most responses are 4xx',
      evaluate({}, { requests: 9, ok: 2, clientErrors: 7 }, [upstream(200, 2), upstream(422, 7)]),
      ...(['wait', 'Most requests get a client error (422)', /7 of 9/] as const),
    ],
    [
      'the sidecar rejects most requests',
      evaluate({}, { requests: 9, ok: 2, own: 7 }),
      ...(['bad', 'The sidecar rejects most requests', /7 of 9 requests/] as const),
    ],
    [
      'there is a warning',
      evaluate({ tokens: [{ ...validToken, missingScopes: ['a'] }] }, { requests: 1, ok: 1, medianMs: 1 }),
      ...(['wait', 'Healthy, with warnings', /^1 request in/] as const),
    ],
    [
      'the sidecar drains',
      evaluate({ draining: true, tokens: [noToken] }),
      'wait',
      'Shutting down',
      /1 request in progress/,
    ],
  ])('%s', (_, summary, level, headline, detail) => {
    expect([summary.level, summary.headline]).toEqual([level, headline]);
    expect(summary.detail).toMatch(detail);
  });

  it('proposes the setting while responses come that are likely refusals, and not after them', () => {
    const figures = { refused: 60, accepted: 120, windows: 12, acceptedPerWindow: 100, windowMs: 10_000 };
    const shares = { shareAtHighRate: 1, shareAtLowRate: undefined, firstAt: 0, lastAt: 1 };
    const proposal = createProposal({ status: 503, ...figures, ...shares }, [], (at) => at);
    const states = { throttles: [{ ...unpaced, refusalProposals: [proposal] }] };
    const minute = { requests: 30, ok: 10, serverErrors: 20, medianMs: 4 };
    expect(evaluate(states, minute, [upstream(200, 10), upstream(503, 20)])).toMatchObject({
      level: 'wait',
      headline: 'Likely rate limited: the upstream refuses calls with 503',
      detail: expect.stringContaining('set throttle: { refusals: [{"status":503}] }') as string,
    });
    expect(evaluate(states, { requests: 30, ok: 30, medianMs: 4 }, [upstream(200, 30)]).headline).toBe('Healthy');
  });

  it('stays good with a few faults among many responses', () => {
    expect(evaluate({}, { requests: 100, ok: 95, serverErrors: 5, faults: 3, medianMs: 1 }).kind).toBe('good');
    expect(evaluate({}, { requests: 2, serverErrors: 2, medianMs: 1 }).kind).toBe('good');
  });

  it('keeps its kind while only the numbers change', () => {
    const [one, two] = [evaluate({ throttles: [queueing] }), evaluate({ throttles: [{ ...queueing, queued: 99 }] })];
    expect(one.detail).not.toBe(two.detail);
    expect(one.kind).toBe(two.kind);
  });
});
