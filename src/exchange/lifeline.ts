/**
 * How long a request may live: until its client leaves, its deadline passes or the drain cuts it. Everything that
 * waits on a request's behalf hangs on its lifeline and lets go when it ends, once and for one reason.
 */
import type { Cancel, Clock } from '../platform/clock.ts';
import type { SidecarError } from '../platform/errors.ts';

export type LifelineEnd =
  | { readonly kind: 'client-left' }
  /** The deadline for the response head has passed. */
  | { readonly kind: 'deadline' }
  /** Ended from outside with a reply of the sidecar's own: drain, broken framing. */
  | { readonly kind: 'failed'; readonly error: SidecarError };

/** Thrown through whatever was waiting when the lifeline ended. */
export class LifelineEnded extends Error {
  override readonly name = 'LifelineEnded';
  readonly end: LifelineEnd;

  constructor(end: LifelineEnd) {
    super(`the request has ended: ${end.kind}`);
    this.end = end;
  }
}

type Listener = (reason: LifelineEnded) => void;

const NONE: readonly Listener[] = [];

export class Lifeline {
  /** Monotonic instants. */
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  readonly #clock: Clock;
  /** Mostly one; each list is as long as it must be. */
  #listeners: readonly Listener[] = NONE;
  #cancelDeadline: Cancel | undefined;
  #ended: LifelineEnded | undefined;

  /** @param arrivedAt monotonic. Default: now */
  constructor(clock: Clock, deadlineMs: number, arrivedAt = clock.now()) {
    this.#clock = clock;
    this.arrivedAt = arrivedAt;
    this.deadlineAt = this.arrivedAt + deadlineMs;
    this.#cancelDeadline = clock.after(deadlineMs, () => this.end({ kind: 'deadline' }), arrivedAt);
  }

  get ended(): LifelineEnded | undefined {
    return this.#ended;
  }

  get leftMs(): number {
    return this.deadlineAt - this.#clock.now();
  }

  /** Ends the request; the first reason stands. */
  end(why: LifelineEnd): void {
    if (this.#ended !== undefined) return;
    this.#ended = new LifelineEnded(why);
    this.meetDeadline();
    const listeners = this.#listeners;
    this.#listeners = NONE;
    for (const listener of listeners) listener(this.#ended);
  }

  /** The response head is on its way: the deadline has been met. Leaving and cutting still end the request. */
  meetDeadline(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
  }

  /** @throws LifelineEnded when it has ended already */
  assertAlive(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  /** Calls `listener` when the lifeline ends, at once if it has. */
  onEnd(listener: Listener): void {
    if (this.#ended === undefined) this.#listeners = [...this.#listeners, listener];
    else listener(this.#ended);
  }

  /** Does nothing when it is not, or no longer, listened with. */
  offEnd(listener: Listener): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener);
  }

  /**
   * Runs `wait` with a signal that is aborted when the lifeline ends; made only where something has to be waited for.
   * @throws LifelineEnded when it ends before the wait does
   */
  async during<T>(wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const aborter = new AbortController();
    const abort = (reason: LifelineEnded): void => aborter.abort(reason);
    this.onEnd(abort);
    try {
      const outcome = await wait(aborter.signal);
      // Both may come in the same turn of the event loop: whoever goes on must be alive.
      this.assertAlive();
      return outcome;
    } finally {
      this.offEnd(abort);
    }
  }

  /** @throws LifelineEnded when the lifeline ends first */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (reason: LifelineEnded): void => {
        cancel();
        reject(reason);
      };
      const cancel = this.#clock.after(delayMs, () => {
        this.offEnd(stop);
        resolve();
      });
      this.onEnd(stop);
    });
  }
}
