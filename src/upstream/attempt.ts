/**
 * One attempt on the wire: an undici handler that turns callbacks into one value (`AttemptEnd`) and either streams
 * the answer to its target with backpressure or holds it, small and whole, for the caller to decide about.
 * Undici's own timers are off: time is the injected clock's.
 */
import type { Dispatcher } from 'undici';
import type { Cancel, Clock } from '../platform/clock.ts';
import { readHead, type AnswerHead } from './answer-head.ts';
import type { AnswerTarget, AttemptEnd, AttemptTerms } from './attempt-terms.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  framingFailure,
  silenceFailure,
  timeoutFailure,
  type UpstreamFailure,
} from './failure.ts';
import { framingFault } from './response-framing.ts';

/** A larger answer is not worth holding back for a retry. */
export const HELD_ANSWER_MAX_BYTES = 256 * 1024;

/** Its head has said what follows: the rest of an answer that is held back is not waited for any longer than this. */
const HOLD_PATIENCE_MS = 2_000;

export class Attempt implements Dispatcher.DispatchHandler {
  /** True once undici has refused the request itself, so that no connection is occupied by it. */
  refused = false;
  readonly #clock: Clock;
  readonly #terms: AttemptTerms;
  readonly #method: string;
  #end: AttemptEnd | undefined;
  #ended: PromiseWithResolvers<AttemptEnd> | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #head: AnswerHead | undefined;
  #target: AnswerTarget | undefined;
  #brokenBy: Error | undefined;
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  /** Longest silence that is borne now; 0 = no limit. */
  #patienceMs = 0;
  #silentSince = 0;
  /** The client takes nothing at the moment. */
  #isPaused = false;
  #looksAt = Infinity;
  #cancelLook: Cancel | undefined;

  constructor(clock: Clock, terms: AttemptTerms, method: string) {
    this.#clock = clock;
    this.#terms = terms;
    this.#method = method;
  }

  /** For those who wait for it besides its terms: made when asked for. */
  get ended(): Promise<AttemptEnd> {
    this.#ended ??= Promise.withResolvers();
    if (this.#end !== undefined) this.#ended.resolve(this.#end);
    return this.#ended.promise;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
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
  breakOff(error: Error): void {
    this.#brokenBy ??= error;
    if (this.#head !== undefined) this.#conclude(describeExchangeFailure(error, true));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.isOver) controller.abort(new Error('ended before it began'));
    else this.#terms.onStart();
  }

  onRequestSent(): void {
    if (this.isOver || this.#head !== undefined) return;
    this.#expectWithin(this.#terms.responseTimeoutMs, this.#clock.now());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusText = ''): void {
    // Interim answers (1xx) arrive here as well; only the final one counts.
    if (status < 200 || this.isOver) return;
    const head = readHead(status, statusText, controller.rawHeaders);
    const contradiction = framingFault(this.#method, head);
    if (contradiction !== undefined) {
      this.#fail(framingFailure(contradiction));
      return;
    }
    this.#head = head;
    const now = this.#clock.now();
    const target = this.#terms.onHead(head, now);
    if (target === 'hold') this.#expectWithin(HOLD_PATIENCE_MS, now);
    else this.#relayTo(target, now);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.isOver) return;
    if (this.#target === undefined) {
      this.#hold(chunk);
      return;
    }
    this.#silentSince = this.#clock.now();
    this.#write(controller, this.#target, chunk);
  }

  onResponseEnd(): void {
    if (this.isOver || this.#head === undefined) return;
    if (this.#target === undefined) {
      this.#finishHeld(this.#head, undefined);
      return;
    }
    this.#target.end();
    this.#finish({ kind: 'relayed', head: this.#head, fault: undefined });
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    // Without a controller the request never got as far as a connection.
    this.refused = controller === null;
    const fault = this.#brokenBy ?? error;
    this.#fail(
      this.#controller === undefined ? describeConnectFailure(fault) : describeExchangeFailure(fault, this.hasHead),
    );
  }

  #relayTo(target: AnswerTarget, now: number): void {
    if (this.#head === undefined) return;
    // Set first: a head that cannot be sent on is taken back like any other of which nothing has been sent.
    this.#target = target;
    target.begin(this.#head);
    this.#expectWithin(this.#terms.bodyIdleTimeoutMs, now);
  }

  #write(controller: Dispatcher.DispatchController, target: AnswerTarget, chunk: Buffer): void {
    if (target.write(chunk)) return;
    controller.pause();
    this.#isPaused = true;
    target.onDrain(() => {
      this.#isPaused = false;
      this.#silentSince = this.#clock.now();
      controller.resume();
    });
  }

  #hold(chunk: Buffer): void {
    const held = (this.#held ??= []);
    held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= HELD_ANSWER_MAX_BYTES || this.#head === undefined || this.#controller === undefined) return;
    const target = this.#terms.onOverflow(this.#head);
    this.#relayTo(target, this.#clock.now());
    this.#held = undefined;
    this.#write(this.#controller, target, Buffer.concat(held));
  }

  /** From now on silence may last so long; 0 = for ever. The one timer is moved along when it fires: bytes, or more patience, cost nothing. */
  #expectWithin(limitMs: number, now: number): void {
    this.#patienceMs = limitMs;
    this.#silentSince = now;
    if (limitMs > 0 && now + limitMs < this.#looksAt) this.#lookAfter(limitMs, now);
  }

  #lookAfter(delayMs: number, now: number): void {
    this.#cancelLook?.();
    this.#looksAt = now + delayMs;
    this.#cancelLook = this.#clock.after(delayMs, () => this.#look(), now);
  }

  #look(): void {
    this.#looksAt = Infinity;
    if (this.#patienceMs === 0) return;
    const now = this.#clock.now();
    const leftMs = this.#silentSince + this.#patienceMs - now;
    if (leftMs <= 0) this.#fail(this.#describeSilence());
    else this.#lookAfter(leftMs, now);
  }

  #describeSilence(): UpstreamFailure {
    if (this.#head === undefined) return timeoutFailure(this.#patienceMs);
    return silenceFailure(this.#isPaused ? 'client' : 'upstream', this.#patienceMs);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.isOver) return;
    this.#conclude(failure);
    this.#controller?.abort(new Error(failure.detail));
  }

  #conclude(failure: UpstreamFailure): void {
    if (this.isOver) return;
    const head = this.#head;
    const target = this.#target;
    if (head === undefined || target?.takeBack() === true) {
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

  #finishHeld(head: AnswerHead, fault: string | undefined): void {
    this.#finish({ kind: 'held', answer: { head, body: Buffer.concat(this.#held ?? []), fault } });
  }

  #finish(end: AttemptEnd): void {
    this.#end = end;
    this.#cancelLook?.();
    this.#held = undefined;
    this.#ended?.resolve(end);
    this.#terms.onEnded?.(end);
  }
}
