/**
 * Records the last minutes for the status page and samples the throttles once a second. history.ts counts, event-log.ts lists the
 * notable events, scope-refusals.ts the routes that lack a scope.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { EventLog } from './event-log.ts';
import { History } from './history.ts';
import type { ThrottleSample, PlotRow } from './history.ts';
import { ScopeRefusalLog } from './scope-refusals.ts';

const SAMPLE_INTERVAL_MS = 1000;

/** Runs something once a second, until cancelled. */
export type RunEverySecond = (run: () => void) => Cancel;

export interface ActivityRecorderOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Read once a second. */
  readonly throttles: () => readonly ThrottleSample[];
  /** Default: a timer that does not keep the process alive. */
  readonly runEverySecond?: RunEverySecond;
}

export interface ActivityRecorder {
  readonly observe: EventObserver;
  readonly history: History;
  readonly eventLog: EventLog;
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
  runEverySecond = runOnUnrefedTimer,
}: ActivityRecorderOptions): ActivityRecorder {
  const history = new History(clock.now());
  const eventLog = new EventLog(() => clock.wallNow());
  const scopeRefusals = new ScopeRefusalLog(() => clock.wallNow());
  const listeners = new Set<(row: PlotRow) => void>();
  let cancel: Cancel = () => undefined;
  const sample = (): void => {
    const row = history.sample(clock.now(), clock.wallNow(), throttles());
    for (const listener of listeners) listener(row);
  };
  return {
    observe(event) {
      // The most frequent events first: an accepted attempt counts with its request, and neither is ever listed.
      if (event.kind === 'attempt-ended' && event.outcome === 'ok') return;
      history.observe(event);
      if (event.kind === 'request-ended' || event.kind === 'permit-granted') return;
      if (event.kind === 'insufficient-scope') scopeRefusals.add(event);
      eventLog.observe(event);
    },
    history,
    eventLog,
    scopeRefusals,
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

/** After a stall there is one sample for the missed seconds. */
const runOnUnrefedTimer: RunEverySecond = (run) => {
  const timer = setInterval(run, SAMPLE_INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
};
