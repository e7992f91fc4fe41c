/**
 * Records the last minutes for the status page and samples the throttles once a second. history.ts counts, alerts/alert-counters.ts
 * counts for the alert conditions, event-log.ts lists the notable events, recent-calls.ts the last calls, scope-refusals.ts the routes
 * that lack a scope.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { EventObserver, SidecarEvent } from '../../telemetry/events.ts';
import { AlertCounters } from '../alerts/alert-counters.ts';
import type { AlertSample } from '../alerts/alert-counters.ts';
import { EventLog } from './event-log.ts';
import { History } from './history.ts';
import type { ThrottleSample, PlotRow } from './history.ts';
import { RecentCalls } from './recent-calls.ts';
import { ScopeRefusalLog } from './scope-refusals.ts';

const SAMPLE_INTERVAL_MS = 1000;

/** Runs something once a second, until cancelled. */
export type RunEverySecond = (run: () => void) => Cancel;

export interface ActivityRecorderOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Read once a second. */
  readonly throttles: () => readonly (ThrottleSample & AlertSample)[];
  /** Whether the last calls are kept, with their paths. Default true. */
  readonly keepsCalls?: boolean;
  /** Default: a timer that does not keep the process alive. */
  readonly runEverySecond?: RunEverySecond;
}

export interface ActivityRecorder {
  readonly observe: EventObserver;
  readonly history: History;
  readonly alertCounters: AlertCounters;
  readonly eventLog: EventLog;
  /** Undefined when calls are not kept. */
  readonly recentCalls: RecentCalls | undefined;
  readonly scopeRefusals: ScopeRefusalLog;
  /** Calls back after each sample, until cancelled. */
  subscribe(listener: (row: PlotRow) => void): Cancel;
  /** Starts sampling. */
  start(): void;
  stop(): void;
}

/** Counts events at once; samples after `start`. */
export function createActivityRecorder({
  clock,
  throttles,
  keepsCalls = true,
  runEverySecond = runOnUnrefedTimer,
}: ActivityRecorderOptions): ActivityRecorder {
  const records = createRecords(clock, keepsCalls);
  const { history, alertCounters } = records;
  const listeners = new Set<(row: PlotRow) => void>();
  let cancel: Cancel = () => undefined;
  const sample = (): void => {
    const [now, states] = [clock.now(), throttles()];
    alertCounters.sample(now, states);
    const row = history.sample(now, clock.wallNow(), states);
    for (const listener of listeners) listener(row);
  };
  return {
    ...records,
    observe: (event) => recordEvent(records, event, clock),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    start() {
      cancel = runEverySecond(sample);
    },
    stop() {
      cancel();
      listeners.clear();
    },
  };
}

type ActivityRecords = Pick<
  ActivityRecorder,
  'history' | 'alertCounters' | 'eventLog' | 'recentCalls' | 'scopeRefusals'
>;

function createRecords(clock: ActivityRecorderOptions['clock'], keepsCalls: boolean): ActivityRecords {
  const wallNow = (): number => clock.wallNow();
  return {
    history: new History(clock.now()),
    alertCounters: new AlertCounters(clock.now()),
    eventLog: new EventLog(wallNow),
    recentCalls: keepsCalls ? new RecentCalls() : undefined,
    scopeRefusals: new ScopeRefusalLog(wallNow),
  };
}

function recordEvent(records: ActivityRecords, event: SidecarEvent, clock: ActivityRecorderOptions['clock']): void {
  records.alertCounters.observe(event);
  // The most frequent events first: an accepted attempt counts with its request, and neither is ever listed.
  if (event.kind === 'attempt-ended' && event.outcome === 'ok') return;
  records.history.observe(event);
  if (event.kind === 'request-ended') records.recentCalls?.add(event, clock.wallNow());
  if (event.kind === 'request-ended' || event.kind === 'permit-granted') return;
  if (event.kind === 'insufficient-scope') records.scopeRefusals.add(event);
  records.eventLog.observe(event);
}

/** After a stall there is one sample for the missed seconds. */
const runOnUnrefedTimer: RunEverySecond = (run) => {
  const timer = setInterval(run, SAMPLE_INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
};
