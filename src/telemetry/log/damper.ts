/**
 * Keeps a storm of like events from flooding the log: the first is told at once, the rest as one summary per window.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';

export interface EventCoalescerOptions<T> {
  readonly clock: Clock;
  /** Milliseconds between summaries. */
  readonly windowMs: number;
  /** Told at once, after a whole window without an event. */
  readonly onFirst: (event: T) => void;
  /** Told at the end of a window that held `count` further events, `last` the latest. */
  readonly onSummary: (count: number, last: T) => void;
}

export interface EventCoalescer<T> {
  add(event: T): void;
  /** Tells what is held back and ends the timer. */
  stop(): void;
}

/** A damper at rest. */
function createCoalescer<T>({ clock, windowMs, onFirst, onSummary }: EventCoalescerOptions<T>): EventCoalescer<T> {
  let cancel: Cancel | undefined;
  let held: { count: number; last: T } | undefined;

  const release = (): boolean => {
    if (held === undefined) return false;
    const { count, last } = held;
    held = undefined;
    onSummary(count, last);
    return true;
  };
  const openWindow = (): void => {
    cancel = clock.after(windowMs, () => {
      cancel = undefined;
      if (release()) openWindow();
    });
  };

  return {
    add(event) {
      if (cancel !== undefined) {
        held = { count: (held?.count ?? 0) + 1, last: event };
        return;
      }
      onFirst(event);
      openWindow();
    },
    stop() {
      cancel?.();
      cancel = undefined;
      release();
    },
  };
}

/** A damper of its own for each name, such as a route's. */
export function createKeyedCoalescer<T>(
  nameOf: (event: T) => string,
  options: EventCoalescerOptions<T>,
): EventCoalescer<T> {
  const dampers = new Map<string, EventCoalescer<T>>();
  return {
    add(event) {
      const name = nameOf(event);
      let damper = dampers.get(name);
      if (damper === undefined) dampers.set(name, (damper = createCoalescer(options)));
      damper.add(event);
    },
    stop() {
      for (const damper of dampers.values()) damper.stop();
    },
  };
}
