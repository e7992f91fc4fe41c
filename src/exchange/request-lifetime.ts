/**
 * How long a request may live: until its client leaves, its deadline passes or the drain cuts it. Everything that
 * waits on a request's behalf hangs on its lifeline and lets go when it ends, once and for one reason.
 */
import type { Cancel, Clock } from '../platform/clock.ts';
import type { SidecarError } from '../platform/errors.ts';

export type AbortReason =
  | { readonly kind: 'client-left' }
  /** The deadline for the response head has passed. */
  | { readonly kind: 'deadline' }
  /** Ended from outside with a reply of the sidecar's own: drain, broken framing. */
  | { readonly kind: 'failed'; readonly error: SidecarError };

/** Thrown through whatever was waiting when the lifeline ended. */
export class RequestAborted extends Error {
  override readonly name = 'LifelineEnded';
  readonly reason: AbortReason;

  constructor(end: AbortReason) {
    super(`the request has ended: ${end.kind}`);
    this.reason = end;
  }
}

type AbortListener = (reason: RequestAborted) => void;

const NO_LISTENERS: readonly AbortListener[] = [];

export class RequestLifetime {
  /** Monotonic instants. */
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  readonly #clock: Clock;
  /** Mostly one; each list is as long as it must be. */
  #listeners: readonly AbortListener[] = NO_LISTENERS;
  #cancelDeadline: Cancel | undefined;
  #aborted: RequestAborted | undefined;

  /** @param arrivedAt monotonic. Default: now */
  constructor(clock: Clock, deadlineMs: number, arrivedAt = clock.now()) {
    this.#clock = clock;
    this.arrivedAt = arrivedAt;
    this.deadlineAt = this.arrivedAt + deadlineMs;
    this.#cancelDeadline = clock.after(deadlineMs, () => this.abort({ kind: 'deadline' }), arrivedAt);
  }

  get aborted(): RequestAborted | undefined {
    return this.#aborted;
  }

  get remainingMs(): number {
    return this.deadlineAt - this.#clock.now();
  }

  /** Ends the request; the first reason stands. */
  abort(why: AbortReason): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = new RequestAborted(why);
    this.clearDeadline();
    const listeners = this.#listeners;
    this.#listeners = NO_LISTENERS;
    for (const listener of listeners) listener(this.#aborted);
  }

  /** The response head is on its way: the deadline has been met. Leaving and cutting still end the request. */
  clearDeadline(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
  }

  /** @throws LifelineEnded when it has ended already */
  throwIfAborted(): void {
    if (this.#aborted !== undefined) throw this.#aborted;
  }

  /** Calls `listener` when the lifeline ends, at once if it has. */
  onAbort(listener: AbortListener): void {
    if (this.#aborted === undefined) this.#listeners = [...this.#listeners, listener];
    else listener(this.#aborted);
  }

  /** Does nothing when it is not, or no longer, listened with. */
  offAbort(listener: AbortListener): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener);
  }

  /**
   * Runs `wait` with a signal that is aborted when the lifeline ends; made only where something has to be waited for.
   * @throws LifelineEnded when it ends before the wait does
   */
  async withAbortSignal<T>(wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const aborter = new AbortController();
    const abort = (reason: RequestAborted): void => aborter.abort(reason);
    this.onAbort(abort);
    try {
      const outcome = await wait(aborter.signal);
      // Both may come in the same turn of the event loop: whoever goes on must be alive.
      this.throwIfAborted();
      return outcome;
    } finally {
      this.offAbort(abort);
    }
  }

  /** @throws LifelineEnded when the lifeline ends first */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (reason: RequestAborted): void => {
        cancel();
        reject(reason);
      };
      const cancel = this.#clock.after(delayMs, () => {
        this.offAbort(stop);
        resolve();
      });
      this.onAbort(stop);
    });
  }
}
