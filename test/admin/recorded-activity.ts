/** What the parts of a sidecar report, counted and sampled second by second on a manual clock, and the view that the page has of it. */
import { evaluateAlerts } from '../../src/admin/alerts/active-alerts.ts';
import { createActivity } from '../../src/admin/history/activity.ts';
import { readCodes, readLastMinute, readPlotRows } from '../../src/admin/samples/traffic.ts';
import type { PageView } from '../../src/admin/page/markup.ts';
import { Sampler } from '../../src/admin/samples/sampler.ts';
import { describeStatus } from '../../src/admin/status/status.ts';
import type { StatusInputs } from '../../src/admin/status/status.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import type { RequestRecord } from '../../src/telemetry/request-record.ts';
import { evaluateVerdict } from '../../src/admin/verdict/verdict.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { report } from '../support/recorded-events.ts';
import type { RecordedEvent, RequestEnded } from '../support/recorded-events.ts';
import { unpaced, validToken } from './states.ts';
import { eachSecondOf } from './view.ts';

export function requestEnded(code: number, given: Partial<RequestRecord> = {}): RequestEnded {
  return {
    ...{ kind: 'request-ended', route: 'default', method: 'POST', path: '/quotes', code, source: 'upstream' },
    ...{ durationMs: 45, queuedMs: 0, attempts: 1, requestBytes: 20, responseBytes: 20 },
    ...given,
  };
}

/** @param keepsCalls as the setting `admin.recentCalls` */
export function recordActivity(states: Partial<StatusInputs> = {}, keepsCalls = true) {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const current = { tokens: [validToken], throttles: [unpaced], ...states };
  const names = current.throttles.map(({ route }) => route);
  const metrics = createMetrics({
    ...{ routes: names, credentials: current.tokens.map(({ credential }) => credential) },
    readStates: () => ({ version: '1.2.3', ...current, fleet: undefined }),
  });
  const activity = createActivity(clock, keepsCalls);
  const { counters, durations, bounds } = metrics.series;
  const source = { counters, durations, bounds, gauges: metrics.readGauges };
  const sampler = new Sampler({ clock, source, routes: names.length, runEverySecond: eachSecondOf(clock) });
  sampler.start();
  return {
    clock,
    activity,
    metrics,
    sampler,
    /** Plays some seconds, each with these events. */
    async play(seconds: number, eventsOf: (second: number) => readonly RecordedEvent[] = () => []): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        for (const event of eventsOf(second)) {
          report(event, { ...metrics, recorders: { requests: [activity.recordRequest] } });
          report(event, { observe: activity.observe });
        }
        await clock.advance(1000);
      }
    },
    view(): PageView {
      const samples = sampler.read();
      const known = { version: '1.2.3', uptimeMs: clock.now(), draining: false, ...current };
      const seen = { ...known, samples, wallNow: clock.wallNow() };
      const alerts = evaluateAlerts(seen);
      const nothing = { pending: [], settings: undefined };
      const faults = activity.listLastFaults();
      const verdict = evaluateVerdict({ ...seen, ...nothing, alerts, faults });
      const status = describeStatus({ ...known, alerts, verdict, recentCalls: activity.listRecentCalls() });
      return {
        ...{ status, nowWallAt: clock.wallNow(), lastMinute: readLastMinute(samples) },
        rows: readPlotRows(sampler.ring, status.throttles, clock.wallNow() - samples.now),
        codes: readCodes(samples, 300_000),
        ...{ events: activity.eventLog.read(), settings: undefined },
      };
    },
  };
}
