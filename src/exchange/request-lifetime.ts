/**
 * How long a request may live: until its client leaves, its deadline passes or the drain cuts it. All waits of a request listen to its
 * lifetime, which ends once, for one reason. Each stage of a request has its own local reply for that.
 */
import type { Clock, Timer, TimerTarget } from '../platform/clock.ts';
import { SidecarError, type LocalReplyCode } from '../platform/errors.ts';
import type { TokenCaller, TokenSource } from '../token/token.ts';
import type { RequestTracer, Stage } from './request-tracer.ts';

export type AbortReason =
  | { readonly kind: 'client-left' }
  /** The deadline for the response head has passed. `limit`: its length, and what set it. */
  | { readonly kind: 'deadline'; readonly limit: string }
  /** Ended from outside, by broken framing for example. The error is the reply. */
  | { readonly kind: 'failed'; readonly error: SidecarError }
  /** Cut by the drain. The error is the reply to a call that was not sent. */
  | { readonly kind: 'draining'; readonly error: SidecarError };

export class RequestAborted extends Error {
  override readonly name = 'RequestAborted';
  readonly reason: AbortReason;

  constructor(reason: AbortReason) {
    super(`the request has ended: ${reason.kind}`);
    this.reason = reason;
  }
}

type AbortListener = (reason: RequestAborted) => void;

export type DeadlineSetting = 'request.deadlineMs (SIDECAR_DEADLINE_MS)' | 'x-sidecar-timeout-ms of the request';

const NO_LISTENERS: readonly AbortListener[] = [];

export class RequestLifetime implements TimerTarget {
  /** Monotonic instants. */
  readonly arrivedAt: number;
  readonly deadlineAt: number;
  aborted: RequestAborted | undefined;
  /** Called first when the request is aborted. */
  target: { onAborted(aborted: RequestAborted): void } | undefined;
  /** Called when the deadline passes: unless it clears the deadline, the request is then aborted. */
  onDeadline: (() => void) | undefined;
  readonly #clock: Clock;
  readonly #deadlineSetting: DeadlineSetting;
  /** Few: copied, since a growing array reserves more. */
  #listeners: readonly AbortListener[] = NO_LISTENERS;
  #deadlineTimer: Timer | undefined;

  /** @param arrivedAt monotonic */
  constructor(
    clock: Clock,
    deadlineMs: number,
    arrivedAt = clock.now(),
    deadlineSetting: DeadlineSetting = 'request.deadlineMs (SIDECAR_DEADLINE_MS)',
  ) {
    this.#clock = clock;
    this.#deadlineSetting = deadlineSetting;
    this.arrivedAt = arrivedAt;
    this.deadlineAt = this.arrivedAt + deadlineMs;
    this.#deadlineTimer = clock.startTimer(deadlineMs, this, arrivedAt);
  }

  get remainingMs(): number {
    return this.deadlineAt - this.#clock.now();
  }

  onTimer(): void {
    this.onDeadline?.();
    if (this.#deadlineTimer === undefined) return;
    const limit = `${String(Math.round(this.deadlineAt - this.arrivedAt))} ms: ${this.#deadlineSetting}`;
    this.abort({ kind: 'deadline', limit });
  }

  /** Ends the request. Later calls do nothing. */
  abort(reason: AbortReason): void {
    if (this.aborted !== undefined) return;
    this.aborted = new RequestAborted(reason);
    this.clearDeadline();
    this.target?.onAborted(this.aborted);
    const listeners = this.#listeners;
    this.#listeners = NO_LISTENERS;
    for (const listener of listeners) listener(this.aborted);
  }

  /** The response head is being sent: the deadline has been met. The client and the drain can still end the request. */
  clearDeadline(): void {
    this.#deadlineTimer?.cancel();
    this.#deadlineTimer = undefined;
  }

  /** Calls `listener` when the request is aborted, at once if it has been. */
  onAbort(listener: AbortListener): void {
    if (this.aborted === undefined) this.#listeners = [...this.#listeners, listener];
    else listener(this.aborted);
  }

  offAbort(listener: AbortListener): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener);
  }

  /**
   * Runs `wait` with a signal that is aborted with the request.
   * @throws RequestAborted when the request is aborted before the wait ends
   */
  async withAbortSignal<T>(wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const aborter = new AbortController();
    const abort = (reason: RequestAborted): void => aborter.abort(reason);
    this.onAbort(abort);
    try {
      const result = await wait(aborter.signal);
      // Both may happen in the same turn of the event loop.
      if (this.aborted !== undefined) throw this.aborted;
      return result;
    } finally {
      this.offAbort(abort);
    }
  }

  /** @throws RequestAborted when the request is aborted first */
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

export async function waitInStage<T>(stage: Stage, wait: Promise<T>, tracer?: RequestTracer): Promise<T> {
  tracer?.startWait(stage);
  try {
    return await wait;
  } catch (error) {
    throw error instanceof RequestAborted ? toStageError(stage, error) : error;
  } finally {
    tracer?.endWait();
  }
}

/**
 * Resolves when the source has a token that may be sent. To be called only while it has none.
 * @throws SidecarError TOKEN_REJECTED, TOKEN_UNAVAILABLE; RequestAborted (client-left)
 */
export async function awaitToken(
  tokens: TokenSource,
  lifetime: RequestLifetime,
  tracer?: RequestTracer,
  caller: TokenCaller = lifetime,
): Promise<void> {
  await waitInStage(
    'token',
    lifetime.withAbortSignal((signal) => tokens.waitForToken(signal, caller)),
    tracer,
  );
}

/** @throws the error of the stage, when the request has been aborted */
export function throwIfAborted({ aborted }: RequestLifetime, stage: Stage): void {
  if (aborted !== undefined) throw toStageError(stage, aborted);
}

const DEADLINE_ERRORS: Readonly<Record<Stage, readonly [code: LocalReplyCode, when: string]>> = {
  token: ['TOKEN_UNAVAILABLE', 'before an access token was received'],
  queue: ['QUEUE_TIMEOUT', 'in the queue'],
  body: ['REQUEST_TIMEOUT', 'before the request body was complete'],
  upstream: ['UPSTREAM_TIMEOUT', 'before the upstream responded'],
};

export function toStageError(stage: Stage, aborted: RequestAborted): Error {
  const { reason } = aborted;
  if (reason.kind === 'client-left') return aborted;
  if (reason.kind !== 'deadline') return reason.error;
  const [code, when] = DEADLINE_ERRORS[stage];
  return new SidecarError(code, `the deadline passed (${reason.limit}) ${when}`);
}

/** Whether the client is still connected and gets a reply. */
export function isClientFacing(thrown: unknown): boolean {
  return thrown instanceof SidecarError || (thrown instanceof RequestAborted && thrown.reason.kind !== 'client-left');
}
