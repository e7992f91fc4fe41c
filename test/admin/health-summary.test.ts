/** The summary at the top of the page. */
import { describe, expect, it } from 'vitest';
import { listAdvice } from '../../src/admin/page/advice.ts';
import { evaluateView } from '../../src/admin/page/fragments.ts';
import type { CodeCount, LastMinute } from '../../src/admin/samples/traffic.ts';
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
  const codes = { recentCodes: latestCodes, codes: latestCodes };
  return evaluateView(viewOf(states, { lastMinute: { ...idleMinute, ...lastMinute }, ...codes }));
}

const failing31: StatusInputs['alerts'] = [{ name: 'BearerSidecarRequestsFailing', subject: 'default', value: 0.31 }];

const upstream = (code: number, count: number): CodeCount => ({ code, source: 'upstream', count });
const queueing = { ...limited, pausedMs: 0 };

describe('the health summary', () => {
  it.each<[string, ReturnType<typeof evaluate>, string, string | RegExp, RegExp]>([
    ['there are no requests', evaluate({}), 'good', 'Ready', /no requests/],
    [
      'requests succeed',
      evaluate({}, { requests: 1234, ok: 1230, clientErrors: 4, p50Ms: 45 }),
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
      ...([
        'bad',
        'No token: client authentication failed (invalid_client)',
        /^Last failure: auth\.example responded .*401/,
      ] as const),
    ],
    [
      'the token endpoint is down',
      evaluate({ tokens: [{ ...noToken, ...failing }] }),
      ...([
        'bad',
        'No token: the token endpoint is not available',
        /^Last failure: connect to auth\.internal refused\./,
      ] as const),
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
      'no attempt has got a response for a moment',
      evaluate({}, { requests: 5, own: 5, sent: 20, faults: 20 }),
      ...(['wait', 'The upstream does not respond', /20 of 20 attempts/] as const),
    ],
    [
      'the alert on attempts without a response holds',
      evaluate({ alerts: [{ name: 'BearerSidecarUpstreamUnreachable', subject: undefined, value: 0.97 }] }),
      ...(['bad', 'The upstream is unreachable', /^97 % of the attempts/] as const),
    ],
    [
      'a third of the requests gets 503',
      evaluate({ alerts: failing31 }, { requests: 100, ok: 69 }, [upstream(200, 69), upstream(503, 31)]),
      ...(['bad', '31 % of the requests fail: the upstream responds 503', /^31 requests of the last 5/] as const),
    ],
    [
      'a third of the requests has failed, and none since',
      evaluate({ alerts: failing31 }, { requests: 9, ok: 9 }, [upstream(200, 69), upstream(503, 31)]),
      ...(['bad', /^31 %/, /None failed in the last minute\.$/] as const),
    ],
    [
      'a third of the requests gets a local reply',
      evaluate({ alerts: failing31 }, {}, [upstream(200, 69), { code: 503, source: 'sidecar', count: 31 }]),
      ...(['bad', '31 % of the requests fail: the sidecar responds 503', /401, 429 or 5xx/] as const),
    ],
    [
      'the upstream rejects the token',
      evaluate({ alerts: failing31 }, {}, [upstream(200, 69), upstream(401, 31)]),
      ...(['bad', '31 % of the requests fail: the upstream rejects the token (401)', /31 requests/] as const),
    ],
    [
      'most responses have been 5xx for a moment',
      evaluate({}, { requests: 10, ok: 2, serverErrors: 8 }, [upstream(200, 2), upstream(500, 1), upstream(503, 7)]),
      ...(['wait', 'Most requests of the last minutes fail: the upstream responds 503', /^8 of them/] as const),
    ],
    [
      'the held token is not refreshed',
      evaluate({ alerts: [{ name: 'BearerSidecarTokenExpiring', subject: 'default', value: 200 }] }),
      ...(['bad', 'The token expires soon and is not refreshed', /./] as const),
    ],
    [
      'the first token has been requested for longer than the alert waits',
      evaluate({ tokens: [noToken], uptimeMs: 121_000 }),
      ...(['bad', 'Starting: requesting the first token', /wait/] as const),
    ],
    [
      'only a warning holds',
      evaluate({ alerts: [{ name: 'BearerSidecarUpstreamErrors', subject: 'default', value: 0.105 }] }),
      ...(['wait', '11 % of the requests get 5xx from the upstream', /./] as const),
    ],
    [
      'most responses are 4xx',
      evaluate({}, { requests: 9, ok: 2, clientErrors: 7 }, [upstream(200, 2), upstream(422, 7)]),
      ...(['wait', 'Most requests get a client error (422)', /7 of 9/] as const),
    ],
    [
      'the sidecar rejects most requests',
      evaluate({}, { requests: 9, ok: 2, own: 7 }),
      ...(['wait', 'The sidecar rejects most requests', /7 of 9 requests/] as const),
    ],
    [
      'there is a warning',
      evaluate({ tokens: [{ ...validToken, missingScopes: ['a'] }] }, { requests: 1, ok: 1, p50Ms: 1 }),
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
    expect(summary.level).toBe(level);
    if (typeof headline === 'string') expect(summary.headline).toBe(headline);
    else expect(summary.headline).toMatch(headline);
    expect(summary.detail).toMatch(detail);
  });

  it('proposes the setting while responses come that are likely refusals, and not after them', () => {
    const figures = { refused: 60, accepted: 120, windows: 12, acceptedPerWindow: 100, windowMs: 10_000 };
    const shares = { shareAtHighRate: 1, shareAtLowRate: undefined, firstAt: 0, lastAt: 1 };
    const proposal = createProposal({ status: 503, ...figures, ...shares }, [], (at) => at);
    const states = { throttles: [{ ...unpaced, refusalProposals: [proposal] }] };
    const minute = { requests: 30, ok: 10, serverErrors: 20, p50Ms: 4 };
    expect(evaluate(states, minute, [upstream(200, 10), upstream(503, 20)])).toMatchObject({
      level: 'wait',
      headline: 'Likely rate limited: the upstream refuses calls with 503',
    });
    expect(listAdvice(viewOf(states))).toContain(
      'If 503 is the rate limit of the partner, set `throttle: { refusals: [{"status":503}] }`',
    );
    expect(evaluate(states, { requests: 30, ok: 30, p50Ms: 4 }, [upstream(200, 30)]).headline).toBe('Healthy');
  });

  it('stays good with a few faults among many responses', () => {
    expect(evaluate({}, { requests: 100, ok: 95, serverErrors: 5, faults: 3, p50Ms: 1 }).kind).toBe('good');
    expect(evaluate({}, { requests: 2, serverErrors: 2, p50Ms: 1 }).kind).toBe('good');
  });

  it('keeps its kind while only the numbers change', () => {
    const [one, two] = [evaluate({ throttles: [queueing] }), evaluate({ throttles: [{ ...queueing, queued: 99 }] })];
    expect(one.detail).not.toBe(two.detail);
    expect(one.kind).toBe(two.kind);
  });
});
