/**
 * Keeps what the status page tells of the last minutes, and takes a sample once a second. While nobody looks it only counts. What is
 * counted is history.ts's, what is worth a line happenings.ts's.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { EventLog } from './event-log.ts';
import { History } from './history.ts';
import type { ThrottleSample, PlotRow } from './history.ts';

const SAMPLE_INTERVAL_MS = 1000;

/** Runs something once a second, until cancelled. */
export type RunEverySecond = (run: () => void) => Cancel;

export interface ActivityRecorderOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Read once a second. */
  readonly throttles: () => readonly ThrottleSample[];
  /** Default: a timer that does not keep the process. */
  readonly runEverySecond?: RunEverySecond;
}

export interface ActivityRecorder {
  readonly observe: EventObserver;
  readonly history: History;
  readonly eventLog: EventLog;
  /** Calls back after each sample, until cancelled. */
  subscribe(hear: (row: PlotRow) => void): Cancel;
  /** Begins to sample. */
  start(): void;
  /** Ends it for good. */
  stop(): void;
}

/** Counts from now on, and samples once started. */
export function createActivityRecorder({
  clock,
  throttles,
  runEverySecond = runOnUnrefedTimer,
}: ActivityRecorderOptions): ActivityRecorder {
  const history = new History(clock.now());
  const happenings = new EventLog(() => clock.wallNow());
  const followers = new Set<(row: PlotRow) => void>();
  let cancel: Cancel = () => undefined;
  const sample = (): void => {
    const row = history.sample(clock.now(), clock.wallNow(), throttles());
    for (const hear of followers) hear(row);
  };
  return {
    observe(event) {
      history.observe(event);
      happenings.observe(event);
    },
    history,
    eventLog: happenings,
    subscribe(hear) {
      followers.add(hear);
      return () => followers.delete(hear);
    },
    start() {
      cancel = runEverySecond(sample);
    },
    stop() {
      cancel();
      followers.clear();
    },
  };
}

/** After a stall the missed turns are not made up for; the next row spans them. */
const runOnUnrefedTimer: RunEverySecond = (run) => {
  const timer = setInterval(run, SAMPLE_INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
};
