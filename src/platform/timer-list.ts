/**
 * Timers of one delay, in the order in which they started, which is the order in which they fire: one timer of Node's serves them all.
 * Nearly every timeout is cancelled, and then costs one entry in a linked list.
 */

/** What a timer calls when it fires. */
export interface TimerTarget {
  onTimer(): void;
}

export interface Timer {
  /** May be called again, and after it fired. */
  cancel(): void;
}

/** The list alone writes the links. */
class TimerEntry implements Timer {
  readonly target: TimerTarget;
  /** An instant of performance.now(). */
  readonly dueAt: number;
  earlier: TimerEntry | undefined;
  later: TimerEntry | undefined;
  /** Undefined when it was cancelled or has fired. */
  #list: TimerList | undefined;

  constructor(list: TimerList, target: TimerTarget, dueAt: number, earlier: TimerEntry | undefined) {
    this.#list = list;
    this.target = target;
    this.dueAt = dueAt;
    this.earlier = earlier;
  }

  cancel(): void {
    this.#list?.remove(this);
    this.#list = undefined;
  }
}

/** Keeps the process running while it has entries. */
export class TimerList {
  readonly #delayMs: number;
  #first: TimerEntry | undefined;
  #last: TimerEntry | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFiring = false;

  /** @param delayMs whole milliseconds, above 0 */
  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  /**
   * Calls `target` once after the delay, never synchronously.
   * @param from what performance.now() gave just now. Default: it is called
   */
  add(target: TimerTarget, from = performance.now()): Timer {
    const entry = new TimerEntry(this, target, from + this.#delayMs, this.#last);
    if (this.#last === undefined) this.#first = entry;
    else this.#last.later = entry;
    this.#last = entry;
    // While entries fire, earlier ones may be left: #fireDue starts the timer for the first of them.
    if (this.#timer === undefined && !this.#isFiring) this.#startTimer(this.#delayMs);
    else if (entry.earlier === undefined) this.#timer?.ref();
    return entry;
  }

  /** To be called by the entry, once. */
  remove(entry: TimerEntry): void {
    const { earlier, later } = entry;
    if (earlier === undefined) this.#first = later;
    else earlier.later = later;
    if (later === undefined) this.#last = earlier;
    else later.earlier = earlier;
    entry.earlier = entry.later = undefined;
    if (this.#first === undefined) this.#timer?.unref();
  }

  #startTimer(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#fireDue();
    }, delayMs);
  }

  #fireDue(): void {
    const now = performance.now();
    this.#isFiring = true;
    try {
      for (let entry = this.#first; entry !== undefined && entry.dueAt <= now; entry = this.#first) {
        entry.cancel();
        entry.target.onTimer();
      }
    } finally {
      this.#isFiring = false;
      if (this.#first !== undefined) this.#startTimer(this.#first.dueAt - now);
    }
  }
}
