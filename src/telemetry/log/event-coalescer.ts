/** Rate limits repeated log lines: the first of a key is reported at once, the rest as one summary per window. */
import type { Cancel, Clock } from '../../platform/clock.ts';

export interface EventCoalescerOptions<T> {
  readonly clock: Clock;
  readonly windowMs: number;
  /** Default: all events have one key. */
  readonly keyOf?: (event: T) => string;
  /** Called at once for an event after a whole window without one. */
  readonly onFirst: (event: T) => void;
  /** Called at the end of a window with `count` further events; `last` is the latest. */
  readonly onSummary: (count: number, last: T) => void;
}

export class EventCoalescer<T> {
  readonly #options: EventCoalescerOptions<T>;
  readonly #windows = new Map<string, { readonly cancel: Cancel; count: number; last: T }>();

  constructor(options: EventCoalescerOptions<T>) {
    this.#options = options;
  }

  add(event: T): void {
    const { keyOf, onFirst } = this.#options;
    const key = keyOf?.(event) ?? '';
    const window = this.#windows.get(key);
    if (window === undefined) {
      onFirst(event);
      this.#openWindow(key, event);
    } else {
      window.count++;
      window.last = event;
    }
  }

  stop(): void {
    for (const key of this.#windows.keys()) this.#closeWindow(key);
  }

  #openWindow(key: string, last: T): void {
    const { clock, windowMs } = this.#options;
    const cancel = clock.after(windowMs, () => {
      if (this.#closeWindow(key)) this.#openWindow(key, last);
    });
    this.#windows.set(key, { cancel, count: 0, last });
  }

  /** @returns whether there was something to summarize */
  #closeWindow(key: string): boolean {
    const window = this.#windows.get(key);
    this.#windows.delete(key);
    window?.cancel();
    if (window === undefined || window.count === 0) return false;
    this.#options.onSummary(window.count, window.last);
    return true;
  }
}
