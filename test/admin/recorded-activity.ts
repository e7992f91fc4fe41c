/** Events as the parts of a sidecar emit them, recorded second by second on a manual clock, and the view that the page has of them. */
import { evaluateAlerts } from '../../src/admin/alerts/active-alerts.ts';
import { createActivityRecorder } from '../../src/admin/history/activity-recorder.ts';
import { describeStatus } from '../../src/admin/status/status.ts';
import type { StatusInputs } from '../../src/admin/status/status-shape.ts';
import type { PageView } from '../../src/admin/page/view.ts';
import type { RequestEvent, SidecarEvent } from '../../src/telemetry/events.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { unpaced, validToken } from './states.ts';
import { eachSecondOf } from './view.ts';

export function requestEnded(code: number, given: Partial<RequestEvent> = {}): RequestEvent {
  return {
    ...{ kind: 'request-ended', route: 'default', method: 'POST', path: '/quotes', code, source: 'upstream' },
    ...{ durationMs: 45, queuedMs: 0, attempts: 1, requestBytes: 20, responseBytes: 20 },
    ...given,
  };
}

/** One call of a client: permit, attempt, request. */
export function callOf(code: number, given: Partial<RequestEvent> = {}): SidecarEvent[] {
  const outcome = code === 401 ? 'unauthorized' : code === 429 ? 'rate_limited' : code >= 400 ? 'error_status' : 'ok';
  return [
    { kind: 'permit-granted', route: 'default', waitedMs: 0 },
    { kind: 'attempt-ended', route: 'default', outcome, durationMs: 40 },
    requestEnded(code, given),
  ];
}

/** @param keepsCalls as the setting `admin.recentCalls` */
export function recordActivity(states: Partial<StatusInputs> = {}, keepsCalls = true) {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const current = { tokens: [validToken], throttles: [unpaced], ...states };
  const activity = createActivityRecorder({
    ...{ clock, keepsCalls, runEverySecond: eachSecondOf(clock), throttles: () => current.throttles },
  });
  activity.start();
  return {
    clock,
    activity,
    /** Plays some seconds, each with these events. */
    async play(seconds: number, eventsOf: (second: number) => readonly SidecarEvent[] = () => []): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        for (const event of eventsOf(second)) activity.observe(event);
        await clock.advance(1000);
      }
    },
    view(): PageView {
      const { history, eventLog, alertCounters, recentCalls } = activity;
      const status = describeStatus({
        ...{ version: '1.2.3', uptimeMs: clock.now(), draining: false, ...current },
        alerts: evaluateAlerts({ ...current, counters: alertCounters }),
        recentCalls: recentCalls?.read(),
      });
      return {
        ...{ status, nowWallAt: clock.wallNow(), lastMinute: history.lastMinute(), rows: history.rows() },
        ...{ minutes: history.minutes.read(), codes: history.minutes.readCodes() },
        ...{ recentCodes: history.minutes.readCodes(2), events: eventLog.read(), settings: undefined },
      };
    },
  };
}
