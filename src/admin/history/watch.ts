/**
 * Keeps what the status page tells of the last minutes, and takes a sample once a second. While nobody looks it only counts. What is
 * counted is history.ts's, what is worth a line happenings.ts's.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { Observe } from '../../telemetry/events.ts';
import { Happenings } from './happenings.ts';
import { History } from './history.ts';
import type { Gauge, Row } from './history.ts';

const SAMPLE_MS = 1000;

/** Runs something once a second, until cancelled. */
export type EachSecond = (run: () => void) => Cancel;

export interface WatchOptions {
  readonly clock: Pick<Clock, 'now' | 'wallNow'>;
  /** Read once a second. */
  readonly throttles: () => readonly Gauge[];
  /** Default: a timer that does not keep the process. */
  readonly eachSecond?: EachSecond;
}

export interface Watch {
  readonly observe: Observe;
  readonly history: History;
  readonly happenings: Happenings;
  /** Calls back after each sample, until cancelled. */
  follow(hear: (row: Row) => void): Cancel;
  /** Begins to sample. */
  start(): void;
  /** Ends it for good. */
  stop(): void;
}

/** Counts from now on, and samples once started. */
export function createWatch({ clock, throttles, eachSecond = repeatAside }: WatchOptions): Watch {
  const history = new History(clock.now());
  const happenings = new Happenings(() => clock.wallNow());
  const followers = new Set<(row: Row) => void>();
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
    happenings,
    follow(hear) {
      followers.add(hear);
      return () => followers.delete(hear);
    },
    start() {
      cancel = eachSecond(sample);
    },
    stop() {
      cancel();
      followers.clear();
    },
  };
}

/** After a stall the missed turns are not made up for; the next row spans them. */
const repeatAside: EachSecond = (run) => {
  const timer = setInterval(run, SAMPLE_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
};
