/**
 * Timers of one delay, in the order in which they started, which is the order in which they fire: one timer of Node's serves them all.
 * Nearly every timeout is cancelled, and then costs one entry in a linked list.
 */

interface TimerEntry {
  readonly run: () => void;
  /** Of performance.now(). */
  readonly dueAt: number;
  readonly remove: () => void;
  earlier: TimerEntry | undefined;
  later: TimerEntry | undefined;
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
   * Runs `run` once after the delay, never synchronously.
   * @param from what performance.now() gave just now. Default: it is called
   * @returns cancels the timer; may be called again, and after it fired
   */
  add(run: () => void, from = performance.now()): () => void {
    let isRemoved = false;
    const remove = (): void => {
      if (isRemoved) return;
      isRemoved = true;
      const { earlier, later } = entry;
      if (earlier === undefined) this.#first = later;
      else earlier.later = later;
      if (later === undefined) this.#last = earlier;
      else later.earlier = earlier;
      entry.earlier = entry.later = undefined;
      if (this.#first === undefined) this.#timer?.unref();
    };
    const entry: TimerEntry = { run, dueAt: from + this.#delayMs, remove, earlier: this.#last, later: undefined };
    if (this.#last === undefined) this.#first = entry;
    else this.#last.later = entry;
    this.#last = entry;
    // While entries fire, earlier ones may be left: #fireDue starts the timer for the first of them.
    if (this.#timer === undefined && !this.#isFiring) this.#startTimer(this.#delayMs);
    else if (entry.earlier === undefined) this.#timer?.ref();
    return remove;
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
        entry.remove();
        entry.run();
      }
    } finally {
      this.#isFiring = false;
      if (this.#first !== undefined) this.#startTimer(this.#first.dueAt - now);
    }
  }
}
