/** Rate limits repeated log lines: the first of a kind is reported at once, the rest as one summary per window. */
import type { Cancel, Clock } from '../../platform/clock.ts';

export interface EventCoalescerOptions<T> {
  readonly clock: Clock;
  readonly windowMs: number;
  /** Called at once for an event after a whole window without one. */
  readonly onFirst: (event: T) => void;
  /** Called at the end of a window with `count` further events; `last` is the latest. */
  readonly onSummary: (count: number, last: T) => void;
}

export interface EventCoalescer<T> {
  add(event: T): void;
  stop(): void;
}

export function createCoalescer<T>({
  clock,
  windowMs,
  onFirst,
  onSummary,
}: EventCoalescerOptions<T>): EventCoalescer<T> {
  let cancel: Cancel | undefined;
  let pending: { count: number; last: T } | undefined;

  const reportPending = (): boolean => {
    if (pending === undefined) return false;
    const { count, last } = pending;
    pending = undefined;
    onSummary(count, last);
    return true;
  };
  const openWindow = (): void => {
    cancel = clock.after(windowMs, () => {
      cancel = undefined;
      if (reportPending()) openWindow();
    });
  };

  return {
    add(event) {
      if (cancel !== undefined) {
        pending = { count: (pending?.count ?? 0) + 1, last: event };
        return;
      }
      onFirst(event);
      openWindow();
    },
    stop() {
      cancel?.();
      cancel = undefined;
      reportPending();
    },
  };
}

export function createKeyedCoalescer<T>(
  keyOf: (event: T) => string,
  options: EventCoalescerOptions<T>,
): EventCoalescer<T> {
  const coalescers = new Map<string, EventCoalescer<T>>();
  return {
    add(event) {
      const key = keyOf(event);
      let coalescer = coalescers.get(key);
      if (coalescer === undefined) coalescers.set(key, (coalescer = createCoalescer(options)));
      coalescer.add(event);
    },
    stop() {
      for (const coalescer of coalescers.values()) coalescer.stop();
    },
  };
}
