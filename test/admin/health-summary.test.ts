/** The first words of the page: whether the job is being done. */
import { describe, expect, it } from 'vitest';
import type { LastMinute } from '../../src/admin/history/history.ts';
import type { CodeCount } from '../../src/admin/history/minutes.ts';
import { evaluateView } from '../../src/admin/page/fragments.ts';
import type { StatusInputs } from '../../src/admin/status/status-shape.ts';
import type { TokenState } from '../../src/token/token.ts';
import { failing, limited, noToken, unpaced, validToken } from './states.ts';
import { viewOf } from './view.ts';

const calm = viewOf().lastMinute;
const refusedClient: TokenState['lastFailure'] = {
  outcome: 'rejected',
  detail: 'auth.example answered the token request with 401 and the error "invalid_client"',
  wallAt: 0,
};

function judge(states: Partial<StatusInputs>, lastMinute: Partial<LastMinute> = {}, latestCodes: CodeCount[] = []) {
  return evaluateView(viewOf(states, { lastMinute: { ...calm, ...lastMinute }, recentCodes: latestCodes }));
}

const upstream = (code: number, count: number): CodeCount => ({ code, source: 'upstream', count });
const queueing = { ...limited, pausedMs: 0 };

describe('the verdict', () => {
  it.each<[string, ReturnType<typeof judge>, string, string, RegExp]>([
    ['nothing happens', judge({}), 'good', 'Ready for calls', /nobody has called/],
    [
      'calls go through',
      judge({}, { requests: 1234, ok: 1230, clientErrors: 4, medianMs: 45 }),
      ...([
        'good',
        'Calls go through',
        /^1,234 calls in the last minute, half of them within 45 ms; none failed, 4 answered 4xx\.$/,
      ] as const),
    ],
    [
      'the first token is asked for',
      judge({ tokens: [noToken] }),
      'wait',
      'Starting: asking for the first token',
      /wait/,
    ],
    [
      'the client is refused',
      judge({ tokens: [{ ...noToken, lastFailure: refusedClient, consecutiveFailures: 1 }] }),
      ...(['bad', 'No token: the client secret was refused (invalid_client)', /401.*worth a look/] as const),
    ],
    [
      'the token endpoint is down',
      judge({ tokens: [{ ...noToken, ...failing }] }),
      ...(['bad', 'No token: the token endpoint does not work', /^Connect to auth\.internal refused\./] as const),
    ],
    [
      'a held token has ended',
      judge({ tokens: [{ ...validToken, ...failing, validForMs: 0 }] }),
      ...(['bad', 'No token: the token endpoint does not work', /auth\.internal/] as const),
    ],
    [
      'one credential of two has no token',
      judge({ tokens: [validToken, { ...noToken, ...failing, credential: 'quotes' }] }),
      ...(['bad', 'No token for quotes: the token endpoint does not work', /other credentials work\.$/] as const),
    ],
    [
      'the limit holds calls back',
      judge({ throttles: [{ ...queueing, learned: { ...queueing.learned!, rate: 6.1 } }] }),
      ...(['wait', 'Waiting: the partner limits us to about 6 a second', /12 calls wait\.$/] as const),
    ],
    [
      'a configured rate does',
      judge({ throttles: [{ ...queueing, mode: 'static', rate: 0.5, learned: undefined }] }),
      ...(['wait', 'Waiting: the configuration limits us to 0.5 a second', /12 calls wait\.$/] as const),
    ],
    [
      'a pause',
      judge({ throttles: [limited] }),
      'wait',
      'Waiting: a pause, the partner asked for it',
      /12 calls wait and/,
    ],
    [
      'a pause on one route of two',
      judge({ throttles: [unpaced, { ...limited, route: 'quotes', queued: 1 }] }),
      ...(['wait', 'Waiting: a pause, the partner asked for it', /1 call waits on quotes/] as const),
    ],
    [
      'nothing answers',
      judge({}, { requests: 5, own: 5, sent: 20, faults: 20 }),
      ...(['bad', 'No answer: the partner’s API cannot be reached', /20 of 20 attempts/] as const),
    ],
    [
      'the API fails',
      judge({}, { requests: 10, ok: 2, serverErrors: 8 }, [upstream(200, 2), upstream(500, 1), upstream(503, 7)]),
      ...(['bad', 'The partner’s API fails (503)', /8 of 10 answers/] as const),
    ],
    [
      'the API refuses the token',
      judge({}, { requests: 9, clientErrors: 9 }, [upstream(401, 9)]),
      ...(['bad', 'The partner’s API refuses the token (401)', /audience/] as const),
    ],
    [
      'the app asks for what is wrong',
      judge({}, { requests: 9, ok: 2, clientErrors: 7 }, [upstream(200, 2), upstream(422, 7)]),
      ...(['wait', 'Calls go through, and most are refused as wrong (422)', /7 of 9/] as const),
    ],
    [
      'the sidecar refuses most itself',
      judge({}, { requests: 9, ok: 2, own: 7 }),
      ...(['bad', 'Most calls are refused by the sidecar itself', /7 of 9 calls/] as const),
    ],
    [
      'something needs a look',
      judge({ tokens: [{ ...validToken, missingScopes: ['a'] }] }, { requests: 1, ok: 1, medianMs: 1 }),
      ...(['wait', 'Calls go through, and something needs a look', /^1 call in/] as const),
    ],
    ['it drains', judge({ draining: true, tokens: [noToken] }), 'wait', 'Shutting down', /1 call still under way/],
  ])('%s', (_, verdict, level, headline, detail) => {
    expect([verdict.level, verdict.headline]).toEqual([level, headline]);
    expect(verdict.detail).toMatch(detail);
  });

  it('one fault among many answers is no outage', () => {
    expect(judge({}, { requests: 100, ok: 95, serverErrors: 5, faults: 3, medianMs: 1 }).kind).toBe('good');
    expect(judge({}, { requests: 2, serverErrors: 2, medianMs: 1 }).kind).toBe('good');
  });

  it('is of the same kind while only its numbers change', () => {
    const [one, two] = [judge({ throttles: [queueing] }), judge({ throttles: [{ ...queueing, queued: 99 }] })];
    expect(one.detail).not.toBe(two.detail);
    expect(one.kind).toBe(two.kind);
  });
});
