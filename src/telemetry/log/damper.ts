/**
 * Keeps a storm of like events from flooding the log: the first is told at once, the rest as one summary per window.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';

export interface DamperOptions<T> {
  readonly clock: Clock;
  /** Milliseconds between summaries. */
  readonly windowMs: number;
  /** Told at once, after a whole window without an event. */
  readonly first: (event: T) => void;
  /** Told at the end of a window that held `count` further events, `last` the latest. */
  readonly summary: (count: number, last: T) => void;
}

export interface Damper<T> {
  tell(event: T): void;
  /** Tells what is held back and ends the timer. */
  stop(): void;
}

/** A damper at rest. */
function createDamper<T>({ clock, windowMs, first, summary }: DamperOptions<T>): Damper<T> {
  let cancel: Cancel | undefined;
  let held: { count: number; last: T } | undefined;

  const release = (): boolean => {
    if (held === undefined) return false;
    const { count, last } = held;
    held = undefined;
    summary(count, last);
    return true;
  };
  const openWindow = (): void => {
    cancel = clock.after(windowMs, () => {
      cancel = undefined;
      if (release()) openWindow();
    });
  };

  return {
    tell(event) {
      if (cancel !== undefined) {
        held = { count: (held?.count ?? 0) + 1, last: event };
        return;
      }
      first(event);
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
export function dampEach<T>(nameOf: (event: T) => string, options: DamperOptions<T>): Damper<T> {
  const dampers = new Map<string, Damper<T>>();
  return {
    tell(event) {
      const name = nameOf(event);
      let damper = dampers.get(name);
      if (damper === undefined) dampers.set(name, (damper = createDamper(options)));
      damper.tell(event);
    },
    stop() {
      for (const damper of dampers.values()) damper.stop();
    },
  };
}
