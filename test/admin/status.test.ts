import { describe, expect, it } from 'vitest';
import { describeReadiness, describeStatus } from '../../src/admin/status.ts';
import { failing, limited, noToken, unpaced, validToken } from './states.ts';

describe('status', () => {
  it('tells all of a busy sidecar', () => {
    const token = { ...validToken, ...failing };
    expect(describeStatus({ version: '1.2.3', uptimeMs: 61_999, draining: false, token, throttle: limited })).toEqual({
      version: '1.2.3',
      uptimeSeconds: 61,
      draining: false,
      token: {
        credential: 'default',
        status: 'valid',
        serial: 3,
        scope: 'quotes.write policies.write',
        expiresAt: '2026-11-01T01:00:00.000Z',
        validForSeconds: 1234.567,
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
        queued: 12,
        inFlight: 1,
        inFlightLimit: 4,
        streams: 0,
        recentSignals: [
          {
            at: '2026-11-01T00:00:00.000Z',
            status: 429,
            pauseSeconds: 2,
            stated: true,
            fields: { 'retry-after': '2', 'x-ratelimit-remaining': '<script>' },
          },
        ],
      },
    });
  });

  it('what is unknown or without limit is null, and survives JSON', () => {
    const throttle = { ...unpaced, pausedMs: Infinity, inFlightLimit: Infinity };
    const status = describeStatus({ version: '1', uptimeMs: 0, draining: true, token: noToken, throttle });
    expect(JSON.parse(JSON.stringify(status))).toEqual(status);
    expect(status.throttle).toMatchObject({ rate: null, unpaced: true, pausedSeconds: null, inFlightLimit: null });
    expect(status.token).toMatchObject({ scope: null, expiresAt: null, validForSeconds: null, lastFailure: null });
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
      ['token valid for 1234 s', 'the upstream refused the token; a new one is asked for'],
    ],
    ['a token at its end', { ...validToken, validForMs: 0 }, false, false, ['no usable token']],
    ['draining with a valid token', validToken, true, false, ['draining', 'token valid for 1234 s']],
  ])('%s', (_, token, draining, ready, reasons) => {
    expect(describeReadiness({ token, draining })).toEqual({ ready, reasons });
  });
});
