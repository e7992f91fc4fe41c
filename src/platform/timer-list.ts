/**
 * Waits of one length, in the order in which they began, which is that in which they end: one timer of Node's serves them all. Nearly
 * every time-out is cancelled, and then costs a link in a list.
 */

interface TimerEntry {
  readonly run: () => void;
  /** Of performance.now(). */
  readonly dueAt: number;
  earlier: TimerEntry | undefined;
  later: TimerEntry | undefined;
  isDone: boolean;
}

/** Keeps the process for as long as somebody waits. */
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

  /** Nobody waits. */
  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  /**
   * Runs `run` once after the delay, never synchronously.
   * @param from the present, where the caller has just asked for it
   * @returns cancels it, as often as one likes
   */
  add(run: () => void, from = performance.now()): () => void {
    const dueAt = from + this.#delayMs;
    const wait: TimerEntry = { run, dueAt, earlier: this.#last, later: undefined, isDone: false };
    if (this.#last === undefined) this.#first = wait;
    else this.#last.later = wait;
    this.#last = wait;
    // While it rings there may be earlier ones: the timer is set for the first of them then.
    if (this.#timer === undefined && !this.#isFiring) this.#startTimer(this.#delayMs);
    else if (wait.earlier === undefined) this.#timer?.ref();
    return () => {
      this.#remove(wait);
    };
  }

  #remove(wait: TimerEntry): void {
    if (wait.isDone) return;
    wait.isDone = true;
    const { earlier, later } = wait;
    if (earlier === undefined) this.#first = later;
    else earlier.later = later;
    if (later === undefined) this.#last = earlier;
    else later.earlier = earlier;
    wait.earlier = wait.later = undefined;
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
      for (let wait = this.#first; wait !== undefined && wait.dueAt <= now; wait = this.#first) {
        this.#remove(wait);
        wait.run();
      }
    } finally {
      this.#isFiring = false;
      if (this.#first !== undefined) this.#startTimer(this.#first.dueAt - now);
    }
  }
}
