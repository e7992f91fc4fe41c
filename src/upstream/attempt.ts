/**
 * One attempt on the wire: an undici handler that turns callbacks into one value (`AttemptEnd`) and either streams
 * the answer to its target with backpressure or holds it, small and whole, for the caller to decide about.
 * Undici's own timers are off: time is the injected clock's.
 */
import type { Dispatcher } from 'undici';
import type { Cancel, Clock } from '../platform/clock.ts';
import { readResponseHead, type UpstreamResponse } from './upstream-response.ts';
import type { ResponseSink, AttemptResult, AttemptHandler } from './attempt-contract.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  protocolFailure,
  idleTimeoutFailure,
  timeoutFailure,
  type UpstreamFailure,
} from './failure.ts';
import { findFramingFault } from './response-framing.ts';

/** A larger answer is not worth holding back for a retry. */
export const HELD_RESPONSE_MAX_BYTES = 256 * 1024;

/** Its head has said what follows: the rest of an answer that is held back is not waited for any longer than this. */
const HELD_BODY_TIMEOUT_MS = 2_000;

export class Attempt implements Dispatcher.DispatchHandler {
  /** True once undici has refused the request itself, so that no connection is occupied by it. */
  isRefused = false;
  readonly #clock: Clock;
  readonly #handler: AttemptHandler;
  readonly #method: string;
  #result: AttemptResult | undefined;
  #ended: PromiseWithResolvers<AttemptResult> | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #head: UpstreamResponse | undefined;
  #sink: ResponseSink | undefined;
  #connectionError: Error | undefined;
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  /** Longest silence that is borne now; 0 = no limit. */
  #timeoutMs = 0;
  #lastActivityAt = 0;
  /** The client takes nothing at the moment. */
  #isPaused = false;
  #timerAt = Infinity;
  #cancelTimer: Cancel | undefined;

  constructor(clock: Clock, terms: AttemptHandler, method: string) {
    this.#clock = clock;
    this.#handler = terms;
    this.#method = method;
  }

  /** For those who wait for it besides its terms: made when asked for. */
  get ended(): Promise<AttemptResult> {
    this.#ended ??= Promise.withResolvers();
    if (this.#result !== undefined) this.#ended.resolve(this.#result);
    return this.#ended.promise;
  }

  get hasEnded(): boolean {
    return this.#result !== undefined;
  }

  get hasHead(): boolean {
    return this.#head !== undefined;
  }

  /** Ends the attempt: an answer under way is cut, the connection closed. Does nothing when it has ended. */
  abort(): void {
    this.#fail(abortedFailure());
  }

  /**
   * The connection has broken: an answer that has begun is not whole, and one that has not is missing for this reason, whatever
   * undici makes of it.
   */
  onConnectionError(error: Error): void {
    this.#connectionError ??= error;
    if (this.#head !== undefined) this.#conclude(classifyExchangeError(error, true));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.hasEnded) controller.abort(new Error('ended before it began'));
    else this.#handler.onStart();
  }

  onRequestSent(): void {
    if (this.hasEnded || this.#head !== undefined) return;
    this.#startTimeout(this.#handler.responseTimeoutMs, this.#clock.now());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusText = ''): void {
    // Interim answers (1xx) arrive here as well; only the final one counts.
    if (status < 200 || this.hasEnded) return;
    const head = readResponseHead(status, statusText, controller.rawHeaders);
    const contradiction = findFramingFault(this.#method, head);
    if (contradiction !== undefined) {
      this.#fail(protocolFailure(contradiction));
      return;
    }
    this.#head = head;
    const now = this.#clock.now();
    const target = this.#handler.onHead(head, now);
    if (target === 'hold') this.#startTimeout(HELD_BODY_TIMEOUT_MS, now);
    else this.#relayTo(target, now);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.hasEnded) return;
    if (this.#sink === undefined) {
      this.#hold(chunk);
      return;
    }
    this.#lastActivityAt = this.#clock.now();
    this.#write(controller, this.#sink, chunk);
  }

  onResponseEnd(): void {
    if (this.hasEnded || this.#head === undefined) return;
    if (this.#sink === undefined) {
      this.#finishHeld(this.#head, undefined);
      return;
    }
    this.#sink.end();
    this.#finish({ kind: 'relayed', head: this.#head, fault: undefined });
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    // Without a controller the request never got as far as a connection.
    this.isRefused = controller === null;
    const fault = this.#connectionError ?? error;
    this.#fail(
      this.#controller === undefined ? classifyConnectError(fault) : classifyExchangeError(fault, this.hasHead),
    );
  }

  #relayTo(target: ResponseSink, now: number): void {
    if (this.#head === undefined) return;
    // Set first: a head that cannot be sent on is taken back like any other of which nothing has been sent.
    this.#sink = target;
    target.begin(this.#head);
    this.#startTimeout(this.#handler.bodyIdleTimeoutMs, now);
  }

  #write(controller: Dispatcher.DispatchController, target: ResponseSink, chunk: Buffer): void {
    if (target.write(chunk)) return;
    controller.pause();
    this.#isPaused = true;
    target.onDrain(() => {
      this.#isPaused = false;
      this.#lastActivityAt = this.#clock.now();
      controller.resume();
    });
  }

  #hold(chunk: Buffer): void {
    const held = (this.#held ??= []);
    held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= HELD_RESPONSE_MAX_BYTES || this.#head === undefined || this.#controller === undefined)
      return;
    const target = this.#handler.onBufferExceeded(this.#head);
    this.#relayTo(target, this.#clock.now());
    this.#held = undefined;
    this.#write(this.#controller, target, Buffer.concat(held));
  }

  /** From now on silence may last so long; 0 = for ever. The one timer is moved along when it fires: bytes, or more patience, cost nothing. */
  #startTimeout(limitMs: number, now: number): void {
    this.#timeoutMs = limitMs;
    this.#lastActivityAt = now;
    if (limitMs > 0 && now + limitMs < this.#timerAt) this.#setTimer(limitMs, now);
  }

  #setTimer(delayMs: number, now: number): void {
    this.#cancelTimer?.();
    this.#timerAt = now + delayMs;
    this.#cancelTimer = this.#clock.after(delayMs, () => this.#onTimer(), now);
  }

  #onTimer(): void {
    this.#timerAt = Infinity;
    if (this.#timeoutMs === 0) return;
    const now = this.#clock.now();
    const leftMs = this.#lastActivityAt + this.#timeoutMs - now;
    if (leftMs <= 0) this.#fail(this.#describeTimeout());
    else this.#setTimer(leftMs, now);
  }

  #describeTimeout(): UpstreamFailure {
    if (this.#head === undefined) return timeoutFailure(this.#timeoutMs);
    return idleTimeoutFailure(this.#isPaused ? 'client' : 'upstream', this.#timeoutMs);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.hasEnded) return;
    this.#conclude(failure);
    this.#controller?.abort(new Error(failure.detail));
  }

  #conclude(failure: UpstreamFailure): void {
    if (this.hasEnded) return;
    const head = this.#head;
    const target = this.#sink;
    if (head === undefined || target?.discardUnsent() === true) {
      this.#finish({ kind: 'failed', failure });
      return;
    }
    if (target !== undefined) {
      const cutBy = failure.kind === 'aborted' ? 'sidecar' : 'upstream';
      this.#finish({ kind: 'relayed', head, fault: { detail: failure.detail, cutBy } });
      target.cut();
    }
    // Its head, and what has come of it, are the upstream's word all the same; an attempt that was ended has none.
    else if (failure.kind !== 'aborted') this.#finishHeld(head, failure.detail);
    else this.#finish({ kind: 'failed', failure });
  }

  #finishHeld(head: UpstreamResponse, fault: string | undefined): void {
    this.#finish({ kind: 'held', response: { head, body: Buffer.concat(this.#held ?? []), fault } });
  }

  #finish(end: AttemptResult): void {
    this.#result = end;
    this.#cancelTimer?.();
    this.#held = undefined;
    this.#ended?.resolve(end);
    this.#handler.onEnded?.(end);
  }
}
