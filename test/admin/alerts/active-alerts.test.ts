/** The verdict of the page for what a sidecar has seen in the last minutes, and the alert that goes with it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AlertCounters } from '../../../src/admin/alerts/alert-counters.ts';
import { ALERT_RULES } from '../../../src/admin/alerts/alert-rules.ts';
import { evaluateView } from '../../../src/admin/page/fragments.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { callOf, recordActivity, requestEnded } from '../recorded-activity.ts';
import { failing, noToken, unpaced, validToken } from '../states.ts';

const namesOf = ({ view }: ReturnType<typeof recordActivity>): string[] => view().status.alerts.map(({ name }) => name);

describe('the level of the page', () => {
  it('is critical with 31 % of the calls answered 503, as the alert is', async () => {
    const recorded = recordActivity();
    await recorded.play(120, (second) => callOf(second % 100 < 31 ? 503 : 201));
    expect(namesOf(recorded)).toEqual(['BearerSidecarRequestsFailing', 'BearerSidecarUpstreamErrors']);
    expect(evaluateView(recorded.view())).toMatchObject({
      level: 'bad',
      headline: expect.stringMatching(/^\d\d % of the requests fail: the upstream responds 503$/) as string,
    });
  });

  it('is critical exactly when a critical alert holds, for any share and number of failures', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 40 }),
        fc.integer({ min: 0, max: 200 }),
        fc.constantFrom(401, 429, 500, 503, 599),
        async (failed, accepted, code) => {
          const recorded = recordActivity();
          const events = [
            ...Array.from({ length: failed }, () => callOf(code)),
            ...Array.from({ length: accepted }, () => callOf(200)),
          ];
          await recorded.play(1, () => events.flat());
          const isFailing = failed >= 3 && failed / (failed + accepted) > 0.1;
          expect(namesOf(recorded).includes('BearerSidecarRequestsFailing')).toBe(isFailing);
          expect(evaluateView(recorded.view()).level === 'bad').toBe(isFailing);
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each([400, 403, 404, 422, 499, 200, 302, 600, 999])(
    'is not critical for %i, which is no failure',
    async (code) => {
      const recorded = recordActivity();
      await recorded.play(60, () => [requestEnded(code)]);
      expect(namesOf(recorded)).toEqual([]);
      expect(evaluateView(recorded.view()).level).not.toBe('bad');
    },
  );

  it('falls when the failures are older than the window of the alert', async () => {
    const recorded = recordActivity();
    await recorded.play(60, () => callOf(503));
    await recorded.play(200, () => callOf(200));
    expect(evaluateView(recorded.view()).detail).toMatch(/None failed in the last minute\.$/);
    expect(namesOf(recorded)).toContain('BearerSidecarRequestsFailing');
    await recorded.play(120, () => callOf(200));
    expect(namesOf(recorded)).toEqual([]);
    expect(evaluateView(recorded.view()).level).toBe('good');
  });

  it('forgets what was counted before a stall of the process, however long', async () => {
    for (const stalledMs of [299_000, 900_000, 7_200_000]) {
      const counters = new AlertCounters(0);
      for (let count = 0; count < 9; count++) counters.observe(requestEnded(503));
      counters.sample(stalledMs, []);
      expect(counters.countRoute('failed', 'default', 300_000)).toBe(stalledMs < 300_000 ? 9 : 0);
    }
  });

  it('counts a window no shorter than it is, and at most a slot longer', () => {
    const instants = fc.array(fc.integer({ min: 0, max: 1_200_000 }), { maxLength: 60 });
    const windows = fc.constantFrom(180_000, 300_000, 600_000, 900_000);
    fc.assert(
      fc.property(instants, windows, (unsorted, windowMs) => {
        const counters = new AlertCounters(0);
        const sorted = [...unsorted].sort((one, other) => one - other);
        for (const at of sorted) {
          counters.sample(at, []);
          counters.observe(requestEnded(503));
        }
        const end = 1_200_000;
        counters.sample(end, []);
        const count = counters.countRoute('failed', 'default', windowMs);
        expect(count).toBeGreaterThanOrEqual(sorted.filter((at) => at > end - windowMs).length);
        expect(count).toBeLessThanOrEqual(sorted.filter((at) => at >= end - windowMs - 10_000).length);
      }),
    );
  });
});

const many = (count: number, event: SidecarEvent): SidecarEvent[] => Array.from({ length: count }, () => event);
const attempt = (outcome: 'timeout' | 'unauthorized' | 'ok'): SidecarEvent => ({
  ...{ kind: 'attempt-ended', route: 'default', outcome, durationMs: 5 },
});

describe('the condition of an alert', () => {
  it.each<[keyof typeof ALERT_RULES, readonly SidecarEvent[], readonly SidecarEvent[]]>([
    ['upstreamUnreachable', [...many(6, attempt('timeout')), ...many(5, attempt('ok'))], many(5, attempt('timeout'))],
    [
      'tokenNotAccepted',
      [...many(6, attempt('unauthorized')), ...many(94, attempt('ok'))],
      [...many(5, attempt('unauthorized')), ...many(95, attempt('ok'))],
    ],
    [
      'requestsShed',
      [...many(2, { kind: 'queue-rejected', route: 'default', reason: 'full' }), ...many(98, callOf(200)[0]!)],
      many(50, { kind: 'queue-rejected', route: 'default', reason: 'client_left' }),
    ],
    [
      'queueSlow',
      many(2, { kind: 'permit-granted', route: 'default', waitedMs: 10_001 }),
      many(2, { kind: 'permit-granted', route: 'default', waitedMs: 10_000 }),
    ],
    [
      'rateLimited',
      [
        ...many(6, { kind: 'rate-limited', route: 'default', status: 429, pauseMs: 0, stated: false, fields: {} }),
        ...many(50, callOf(200)[0]!),
      ],
      [
        ...many(6, { kind: 'rate-limited', route: 'default', status: 429, pauseMs: 0, stated: false, fields: {} }),
        ...many(60, callOf(200)[0]!),
      ],
    ],
    [
      'responsesCut',
      many(6, requestEnded(200, { cutBy: 'upstream' })),
      [...many(5, requestEnded(200, { cutBy: 'upstream' })), ...many(6, requestEnded(200, { cutBy: 'sidecar' }))],
    ],
    ['retryBudgetExhausted', [{ kind: 'retry-budget-exhausted', route: 'default', reason: 'status' }], []],
    ['scopeMissing', [{ kind: 'insufficient-scope', route: 'default', needed: 'a' }], []],
    [
      'clientRejected',
      [{ kind: 'token-requested', credential: 'default', outcome: 'rejected', durationMs: 1 }],
      [{ kind: 'token-requested', credential: 'default', outcome: 'unavailable', durationMs: 1 }],
    ],
    [
      'rotationFailing',
      [{ kind: 'credential-rotation', credential: 'default', outcome: 'unreadable' }],
      [{ kind: 'credential-rotation', credential: 'default', outcome: 'taken' }],
    ],
    [
      'reloadFailed',
      [{ kind: 'configuration-read', outcome: 'invalid', lines: [] }],
      [{ kind: 'configuration-read', outcome: 'ok', lines: [] }],
    ],
  ])('%s holds above its threshold only', async (id, above, below) => {
    for (const [events, isActive] of [[above, true] as const, [below, false] as const]) {
      const recorded = recordActivity();
      await recorded.play(1, () => events);
      expect([id, namesOf(recorded).includes(ALERT_RULES[id].alert)]).toEqual([id, isActive]);
    }
  });

  it('paused holds for a throttle that is paused nine tenths of ten minutes', async () => {
    const recorded = recordActivity({ throttles: [{ ...unpaced, pausedMs: Infinity }] });
    await recorded.play(30);
    expect(namesOf(recorded)).toEqual(['BearerSidecarPaused']);
  });

  it.each([
    ['a missing token', { tokens: [{ ...noToken, ...failing }] }, 'BearerSidecarTokenMissing'],
    ['an expired token', { tokens: [{ ...validToken, validForMs: -1 }] }, 'BearerSidecarTokenMissing'],
    [
      'a token that expires soon',
      { tokens: [{ ...validToken, ...failing, validForMs: 299_000 }] },
      'BearerSidecarTokenExpiring',
    ],
    ['a failing token endpoint', { tokens: [{ ...validToken, ...failing }] }, 'BearerSidecarTokenEndpointFailing'],
    ['missing scopes', { tokens: [{ ...validToken, missingScopes: ['a'] }] }, 'BearerSidecarScopeMissing'],
    ['a full queue', { throttles: [{ ...unpaced, queued: 801 }] }, 'BearerSidecarQueueSaturated'],
  ])('holds for %s', async (_, states, name) => {
    const recorded = recordActivity(states);
    await recorded.play(1);
    expect(namesOf(recorded)[0]).toBe(name);
  });

  it('tokenExpiring holds for a short-lived token that has not been replaced for twelve minutes', async () => {
    const recorded = recordActivity({ tokens: [{ ...validToken, validForMs: 100_000 }] });
    await recorded.play(60, (second) =>
      second === 0 ? [{ kind: 'token-requested', credential: 'default', outcome: 'ok', durationMs: 1 }] : [],
    );
    expect(namesOf(recorded)).toEqual([]);
    await recorded.play(700);
    expect(namesOf(recorded)).toEqual(['BearerSidecarTokenExpiring']);
  });
});
