import { describe, expect, it } from 'vitest';
import { describeReadiness } from '../../../src/admin/status/readiness.ts';
import { describeStatus } from '../../../src/admin/status/status.ts';
import type { InsufficientScopes } from '../../../src/admin/status/states.ts';
import type { TokenState } from '../../../src/token/token.ts';
import { failing, healthy, limited, noToken, unpaced, validToken } from '../states.ts';
import { pageOf, textOf } from '../view.ts';

describe('status', () => {
  it('shows the state of a busy sidecar', () => {
    const listener = { connections: 3, connectionsLimit: 10_000, requests: 1, requestsLimit: Infinity };
    const states = { tokens: [{ ...validToken, ...failing }], throttles: [limited], listener };
    const status = describeStatus({
      version: '1.2.3',
      pid: 4711,
      verdict: healthy,
      alerts: [],
      uptimeMs: 61_999,
      draining: false,
      ...states,
    });
    expect(status).toEqual({
      pid: 4711,
      tokens: [status.token],
      throttles: [status.throttle],
      routes: [],
      listener: { ...listener, requestsLimit: null },
      version: '1.2.3',
      uptimeSeconds: 61,
      draining: false,
      degraded: [],
      token: {
        credential: 'default',
        file: null,
        status: 'valid',
        serial: 3,
        scope: 'quotes.write policies.write',
        expiresAt: '2026-11-01T01:00:00.000Z',
        validForSeconds: 1234.567,
        usesPrevious: false,
        missingScopes: [],
        credentialFault: null,
        circuit: 'closed',
        consecutiveFailures: 2,
        lastFailure: {
          outcome: 'unavailable',
          detail: 'connect to auth.internal refused',
          at: '2026-11-01T00:00:00.000Z',
        },
        nextRequestInSeconds: 900,
      },
      throttle: {
        route: 'default',
        mode: 'auto',
        rate: 9.5,
        unpaced: false,
        pausedSeconds: 1.5,
        heldBy: null,
        disbelievedFields: [],
        queued: 12,
        queueLimit: 1000,
        queuedByPriority: { high: 1, normal: 2, low: 9 },
        readingBodies: 0,
        stalledBodies: 0,
        stalledResponses: 0,
        stalledInFlight: 0,
        inFlight: 1,
        inFlightLimit: 4,
        streams: 0,
        learned: {
          rate: 9.5,
          limit: 100,
          windowSeconds: 10,
          kind: 'window',
          confidence: 'high',
          since: '2026-11-01T00:00:00.000Z',
        },
        usage: null,
        fleet: null,
        limits: [],
        lanes: [],
        refusedOperation: null,
        assumed: [],
        observed: null,
        refusals: [],
        recentSignals: [
          {
            at: '2026-11-01T00:00:00.000Z',
            status: 429,
            pauseSeconds: 2,
            stated: true,
            fields: { 'retry-after': 2, 'x-ratelimit-remaining': { unparsed: 8 } },
          },
        ],
      },
      insufficientScope: [],
      fleet: null,
      configuration: null,
      verdict: {
        ...{ level: 'good', where: 'none', code: null, headline: 'Healthy', detail: '3 requests.', route: null },
        ...{ share: null, since: null, advice: null, other: null },
      },
      alerts: [],
      recentCalls: null,
    });
  });

  it('is null for unknown or unlimited values', () => {
    const throttle = { ...unpaced, pausedMs: Infinity, inFlightLimit: Infinity };
    const status = describeStatus({
      version: '1',
      verdict: healthy,
      alerts: [],
      uptimeMs: 0,
      draining: true,
      tokens: [noToken],
      throttles: [throttle],
    });
    expect(JSON.parse(JSON.stringify(status))).toEqual(status);
    expect(status.throttle).toMatchObject({ rate: null, unpaced: true, pausedSeconds: null, inFlightLimit: null });
    expect(status.throttle.learned).toMatchObject({ rate: null, limit: null, windowSeconds: null, confidence: 'none' });
    expect(status.token).toMatchObject({ scope: null, expiresAt: null, validForSeconds: null, lastFailure: null });
  });
});

const unsent: Pick<TokenState, 'consecutiveFailures' | 'lastFailure'> = {
  consecutiveFailures: 1,
  lastFailure: {
    outcome: 'unavailable',
    detail: 'auth.assertionFile: the file /t is empty',
    wallAt: 0,
    isUnsent: true,
  },
};

describe('a warning of /status', () => {
  const credentialFault = { detail: 'the new credentials were refused: invalid_client', wallAt: Date.UTC(2026, 10, 1) };
  const statusOf = (token: TokenState, insufficientScopes: readonly InsufficientScopes[] = []) =>
    describeStatus({
      version: '1',
      verdict: healthy,
      alerts: [],
      uptimeMs: 0,
      draining: false,
      tokens: [token],
      throttles: [unpaced],
      insufficientScopes,
    });

  it('names a failing token endpoint with its last detail', () => {
    const { degraded, token } = statusOf({ ...validToken, ...failing, circuit: 'half-open' });
    expect(degraded).toEqual(['the token endpoint keeps failing: connect to auth.internal refused']);
    expect(token.circuit).toBe('half-open');
    expect(statusOf({ ...noToken, ...unsent, circuit: 'open' }).degraded).toEqual([
      'no token request can be sent: auth.assertionFile: the file /t is empty',
    ]);
  });

  it('names new credentials that were not applied', () => {
    const { degraded, token } = statusOf({ ...validToken, credentialFault });
    expect(degraded).toEqual([
      'the new credentials were refused: invalid_client; the previous credentials stay in use',
    ]);
    expect(token.credentialFault).toEqual({ detail: credentialFault.detail, since: '2026-11-01T00:00:00.000Z' });
  });

  it('names scopes that were not granted and routes that lack one', () => {
    const status = statusOf({ ...validToken, missingScopes: ['urn:a', 'urn:b'] }, [
      { route: 'sales', count: 7, wallAt: 0, needed: 'urn:c' },
      { route: 'other', count: 1, wallAt: 0, needed: undefined },
    ]);
    expect(status.degraded).toEqual([
      'the token lacks requested scopes: urn:a urn:b',
      'route sales: the upstream requires a scope that the token does not have: urn:c',
      'route other: the upstream requires a scope that the token does not have',
    ]);
    expect(status.token.missingScopes).toEqual(['urn:a', 'urn:b']);
    expect(status.insufficientScope).toEqual([
      { route: 'sales', count: 7, lastAt: '1970-01-01T00:00:00.000Z', needed: 'urn:c' },
      { route: 'other', count: 1, lastAt: '1970-01-01T00:00:00.000Z', needed: null },
    ]);
  });

  it('is on the page, escaped', () => {
    const page = (token: TokenState) => pageOf({ tokens: [token] });
    expect(page({ ...validToken, missingScopes: ['<b>'] })).toContain('lacks requested scopes: &#60;b&#62;');
    expect(page(validToken)).not.toMatch(/needs a look|asked for:/);
  });

  it('has no detail in /readyz', () => {
    const { ready, reasons } = describeReadiness({ tokens: [{ ...validToken, credentialFault }], draining: false });
    expect(ready).toBe(true);
    expect(reasons).toEqual(['token valid for 1234 s', 'new credentials not applied; the previous ones stay in use']);
  });
});

describe('readiness', () => {
  it.each([
    ['a valid token', validToken, false, true, ['token valid for 1234 s']],
    ['no token yet', noToken, false, false, ['no usable token']],
    [
      'no token, the endpoint failing',
      { ...noToken, ...failing },
      false,
      false,
      ['no usable token', 'token endpoint failed 2 times in a row (unavailable)'],
    ],
    [
      'no token yet, and a file that cannot be used',
      { ...noToken, ...unsent },
      false,
      false,
      ['no usable token', 'no token request sent: a file of the client cannot be used (once, see /status)'],
    ],
    [
      'no token yet, and a token file that cannot be used',
      { ...noToken, ...unsent, file: '/t' },
      false,
      false,
      ['no usable token', 'the token file cannot be used (see /status)'],
    ],
    [
      'a valid token, the endpoint failing',
      { ...validToken, ...failing },
      false,
      true,
      ['token valid for 1234 s', 'token endpoint failed 2 times in a row (unavailable)'],
    ],
    [
      'a suspect token',
      { ...validToken, status: 'suspect' as const },
      false,
      true,
      ['token valid for 1234 s', 'the upstream rejected the token; a new one is being requested'],
    ],
    ['a token at its end', { ...validToken, validForMs: 0 }, false, false, ['no usable token']],
    ['draining with a valid token', validToken, true, false, ['draining', 'token valid for 1234 s']],
  ])('%s', (_, token, draining, ready, reasons) => {
    expect(describeReadiness({ tokens: [token], draining })).toEqual({ ready, reasons });
  });
});

describe('with several credentials', () => {
  const quotes = { ...validToken, ...failing, credential: 'quotes', circuit: 'open' } as const;

  it('each needs a token, and the reasons name the credential', () => {
    const tokens = [quotes, { ...noToken, credential: 'policies' }];
    expect(describeReadiness({ tokens, draining: false })).toEqual({
      ready: false,
      reasons: [
        'credential quotes: token valid for 1234 s',
        'credential quotes: token endpoint failed 2 times in a row (unavailable)',
        'credential policies: no usable token',
      ],
    });
    expect(describeReadiness({ tokens: [quotes, validToken], draining: false }).ready).toBe(true);
  });

  it('/status and page show each credential and throttle by name', () => {
    const slow = { ...limited, route: 'policies' };
    const states = { tokens: [validToken, quotes], throttles: [unpaced, slow] };
    const status = describeStatus({
      version: '1',
      verdict: healthy,
      alerts: [],
      uptimeMs: 0,
      draining: false,
      ...states,
    });
    expect(status.tokens.map(({ credential }) => credential)).toEqual(['default', 'quotes']);
    expect(status.throttles.map(({ route }) => route)).toEqual(['default', 'policies']);
    expect([status.token, status.throttle]).toEqual([status.tokens[0], status.throttles[0]]);
    expect(status.degraded).toEqual([expect.stringContaining('credential quotes: the token endpoint keeps failing')]);
    const page = textOf(pageOf(states));
    for (const heading of ['Token default', 'Token quotes', 'Rate limit default', 'Rate limit policies'])
      expect(page).toContain(heading);
  });
});
