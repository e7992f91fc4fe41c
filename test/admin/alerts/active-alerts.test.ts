/** Which routes and credentials the alerts are about, in which order, and their short texts. The scenarios try the conditions. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluateAlerts } from '../../../src/admin/alerts/active-alerts.ts';
import { ALERTS } from '../../../src/admin/alerts/alert-table.ts';
import { formatHeadline } from '../../../src/admin/alerts/active-alerts.ts';
import { PlayedSamples } from '../samples/played-samples.ts';

/** What happens on a route in each of some minutes. */
interface Traffic {
  readonly ok: number;
  readonly errors: number;
  readonly faults: number;
  readonly refused: number;
  readonly slow: number;
  readonly unknown: number;
}

const traffic = fc.record<Traffic>({
  ...{ ok: fc.nat(30), errors: fc.nat(4), faults: fc.nat(20), refused: fc.nat(6), slow: fc.nat(30) },
  unknown: fc.nat(1),
});

function playMinutes(routes: Readonly<Record<string, Traffic>>) {
  const played = new PlayedSamples();
  played.play(480, (now, second) => {
    if (second % 60 !== 0) return;
    for (const [route, { ok, errors, faults, refused, slow, unknown }] of Object.entries(routes)) {
      now.count('requests_total', { route, code: '200', source: 'upstream' }, ok);
      now.count('requests_total', { route, code: '503', source: 'upstream' }, errors);
      now.count('permits_total', { route }, ok + errors + faults);
      now.count('upstream_attempts_total', { route, outcome: 'ok' }, ok + errors);
      now.count('upstream_attempts_total', { route, outcome: 'unreachable' }, faults);
      now.count('upstream_faults_total', { route, cause: 'connection_refused' }, faults);
      now.count('queue_rejected_total', { route, reason: 'full' }, refused);
      now.observe('upstream_duration_seconds', 30, { route, outcome: 'ok' }, ok);
      now.observe('upstream_duration_seconds', 9000, { route, outcome: 'ok' }, slow);
      now.count('unknown_outcomes_total', { route }, unknown);
    }
  });
  const throttles = Object.keys(routes).map((route) => ({ route }));
  return evaluateAlerts({ samples: played.samples, wallNow: 0, throttles, tokens: [] });
}

describe('the alerts of /status', () => {
  it('of a route do not depend on the traffic of other routes', () => {
    fc.assert(
      fc.property(traffic, traffic, (one, other) => {
        const both = playMinutes({ one, other });
        expect(both.filter(({ subject }) => subject === 'one')).toEqual(playMinutes({ one }));
        expect(both.filter(({ subject }) => subject === 'other')).toEqual(playMinutes({ other }));
      }),
      { numRuns: 60 },
    );
  });

  it('are there for a route that shares the throttle of others, too', () => {
    const played = new PlayedSamples();
    played.play(60, (now) => {
      now.count('requests_total', { route: 'policies', code: '503', source: 'sidecar' });
      now.count('permits_total', { route: 'shared' });
    });
    const alerts = evaluateAlerts({
      samples: played.samples,
      wallNow: 0,
      throttles: [{ route: 'shared' }],
      tokens: [],
    });
    expect(alerts).toEqual([{ name: 'BearerSidecarRequestsFailing', subject: 'policies', value: 1 }]);
  });

  it('begin with the critical ones', () => {
    const severities = playMinutes({ one: { ok: 1, errors: 3, faults: 9, refused: 2, slow: 9, unknown: 1 } }).map(
      ({ name }) => ALERTS[name].severity,
    );
    expect(severities.length).toBeGreaterThan(4);
    expect([...severities].sort()).toEqual(severities);
  });
});

describe('the headline of an alert', () => {
  it.each([
    ['BearerSidecarRequestsFailing', 0.314, '31 % of the requests fail'],
    ['BearerSidecarOutcomeUnknown', 1, 'Calls with an unknown outcome: 1'],
    ['BearerSidecarUpstreamSlow', 7.25, 'The upstream is slow: 7.3 s for a typical attempt'],
    ['BearerSidecarTokenMissing', 3, 'No token'],
  ] as const)('of %s has its value in its unit', (name, value, expected) => {
    expect(formatHeadline(name, value)).toBe(expected);
  });
});

it('the forecast of a declared limit is of the earliest one, and begins when there is a pace', () => {
  const played = new PlayedSamples();
  const metric = 'declared_limit_exhausted_timestamp_seconds';
  played.set(metric, { route: 'default', limit: 'day' }, 9000).set(metric, { route: 'default', limit: 'hour' }, 4000);
  const evaluate = () =>
    evaluateAlerts({ samples: played.samples, wallNow: 1_000_000, throttles: [{ route: 'default' }], tokens: [] });
  played.play(890);
  expect(evaluate()).toEqual([]);
  played.play(20);
  const [alert, ...more] = evaluate();
  expect(alert).toEqual({ name: 'BearerSidecarDeclaredLimitUsedUp', subject: 'default', value: 3000 });
  expect(more).toEqual([]);
  expect(formatHeadline('BearerSidecarDeclaredLimitUsedUp', 3000)).toContain('in 50 min 0 s');
});
