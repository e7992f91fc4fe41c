/** What the page says to do: settings and commands that exist, for every alert and every bad state. */
import { describe, expect, it } from 'vitest';
import { ALERT_NAMES } from '../../src/admin/alerts/alert-table.ts';
import { adviseOnThrottle, listAdvice } from '../../src/admin/page/advice.ts';
import { renderFragments } from '../../src/admin/page/fragments.ts';
import { SETTINGS } from '../../src/config/schema/schema.ts';
import type { TokenState } from '../../src/token/token.ts';
import { failing, limited, noToken, unpaced, validToken } from './states.ts';
import { textOf, viewOf } from './view.ts';

const known = new Set([...SETTINGS].flatMap(([key, { env }]) => [key, env]));
const failedWith = (detail: string, outcome: 'rejected' | 'unavailable' | 'malformed' = 'rejected'): TokenState => ({
  ...{ ...noToken, consecutiveFailures: 1, lastFailure: { outcome, detail, wallAt: 0 } },
});
const NOT_FOUND = 'auth.example answered the token request with 404: check auth.url and auth.tokenPath';
const settings = (url: string, path = '/oauth/token') => [
  { key: 'auth.url', value: url, origin: 'environment SIDECAR_AUTH_URL' },
  { key: 'auth.tokenPath', value: path, origin: 'default' },
];

describe('the advice', () => {
  it('exists for every alert, and names settings that exist', () => {
    const sentences = ALERT_NAMES.flatMap((name) => {
      const advice = listAdvice(viewOf({ alerts: [{ name, subject: undefined, value: 1 }] }));
      expect([name, advice.length > 0]).toEqual([name, true]);
      return advice;
    });
    const tokens = [NOT_FOUND, 'error "invalid_client"', 'error "invalid_scope"'].map((detail) => failedWith(detail));
    const states = [...tokens, failedWith('x', 'unavailable'), failedWith('x', 'malformed')];
    const onTokens = states.flatMap((token) => listAdvice(viewOf({ tokens: [token] })));
    const onThrottles = [limited, { ...limited, pausedMs: 0 }, { ...limited, pausedMs: 0, mode: 'static' as const }];
    const others = onThrottles.flatMap((throttle) =>
      adviseOnThrottle(viewOf({ throttles: [throttle] }).status.throttle),
    );
    expect(states.every((token) => listAdvice(viewOf({ tokens: [token] })).length > 0)).toBe(true);
    const named = [...sentences, ...onTokens, ...others].join(' ').match(/SIDECAR_\w+|`[a-z]+\.\w+`/g) ?? [];
    expect(named.length).toBeGreaterThan(10);
    expect(named.map((name) => name.replaceAll('`', '')).filter((name) => !known.has(name))).toEqual([]);
  });

  it('stands in the summary of a queue that waits for the limit', () => {
    const verdict = renderFragments(viewOf({ throttles: [{ ...limited, pausedMs: 0 }] })).verdict?.text ?? '';
    expect(textOf(verdict)).toContain('What to do Send fewer calls');
  });

  it('is empty for a healthy sidecar', () => {
    const view = viewOf();
    expect(listAdvice(view)).toEqual([]);
    expect(adviseOnThrottle(viewOf({ throttles: [unpaced] }).status.throttle)).toEqual([]);
    expect(renderFragments(view).verdict?.text).not.toContain('What to do');
  });

  it.each([
    ['a full token URL', settings('https://auth.Example/oauth/token'), 'set SIDECAR_AUTH_URL=https://auth.Example'],
    ['another path', settings('https://auth.Example', '/token'), 'here https://auth.Example/token : correct'],
    ['an unknown configuration', undefined, 'SIDECAR_AUTH_TOKEN_PATH'],
  ])('names a token path that is wrong: %s', (_, given, expected) => {
    const view = viewOf({ tokens: [failedWith(NOT_FOUND)] }, { settings: given });
    const verdict = textOf(renderFragments(view).verdict?.text ?? '');
    expect(verdict).toContain('No token: the token endpoint does not exist at this address (404)');
    expect(verdict).toContain(expected);
    expect(verdict).toContain('Last failure: auth.example answered');
  });

  it('names the cause alone where a missing token makes all requests fail', () => {
    const alerts = (
      [
        'BearerSidecarTokenMissing',
        'BearerSidecarRequestsFailing',
        'BearerSidecarTokenEndpointFailing',
        'BearerSidecarClientRejected',
      ] as const
    ).map((name) => ({
      ...{ name, subject: 'default', value: 1 },
    }));
    const tokens = [failedWith(NOT_FOUND)];
    expect(listAdvice(viewOf({ tokens, alerts }))).toEqual([expect.stringContaining('SIDECAR_AUTH_TOKEN_PATH')]);
  });

  it.each([
    [503, true],
    [500, false],
  ])('asks whether %i is a rate limit: %s', (code, isAsked) => {
    const alerts = [{ name: 'BearerSidecarUpstreamErrors' as const, subject: 'default', value: 0.3 }];
    const view = viewOf({ alerts }, { codes: [{ code, source: 'upstream', count: 30 }] });
    expect(listAdvice(view).join().includes('SIDECAR_THROTTLE_REFUSALS=[{"status":503}]')).toBe(isAsked);
  });

  it('does not name auth.tokenPath where metadata name the endpoint', () => {
    const detail = 'auth.example answered the token request with 404: the metadata of auth.issuer names it';
    expect(listAdvice(viewOf({ tokens: [failedWith(detail)] })).join()).not.toContain('TOKEN_PATH');
  });

  it('stands beside a degraded token as well', () => {
    const page = renderFragments(viewOf({ tokens: [{ ...validToken, ...failing }] }));
    expect(textOf(page.parts?.text ?? '')).toContain('What to do');
  });
});
