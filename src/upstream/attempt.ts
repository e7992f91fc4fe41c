/**
 * One attempt on the wire: an undici handler that turns callbacks into one value (`AttemptEnd`) and either streams
 * the answer to its target with backpressure or holds it, small and whole, for the caller to decide about.
 * Undici's own timers are off: time is the injected clock's.
 */
import type { Dispatcher } from 'undici';
import type { Cancel, Clock } from '../clock.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  timeoutFailure,
  type UpstreamFailure,
} from './failure.ts';
import { fieldOf } from './fields.ts';

/** The head of an upstream's answer: a value, whatever its status. */
export interface AnswerHead {
  readonly status: number;
  readonly statusText: string;
  /** Flat list [name, value, …] as received. */
  readonly fields: readonly string[];
}

/** Where an answer is streamed to. */
export interface AnswerTarget {
  begin(head: AnswerHead): void;
  /** False asks to be left alone until `onDrain` calls back. */
  write(chunk: Buffer): boolean;
  onDrain(resume: () => void): void;
  end(): void;
  /** The answer breaks off here: the client must be able to tell. */
  cut(): void;
}

/** An answer read whole, not yet given to anybody. */
export interface HeldAnswer {
  readonly head: AnswerHead;
  readonly body: Buffer;
}

export type AttemptEnd =
  | { readonly kind: 'held'; readonly answer: HeldAnswer }
  | { readonly kind: 'relayed'; readonly head: AnswerHead; readonly fault: string | undefined }
  | { readonly kind: 'failed'; readonly failure: UpstreamFailure };

export interface AttemptTerms {
  /** Called when the request goes onto a connection. */
  onStart(): void;
  /** Called once with the final head: `hold` keeps the answer back, a target gets it streamed. */
  onHead(head: AnswerHead): AnswerTarget | 'hold';
  /** An answer too large to hold goes here after all. */
  onOverflow(head: AnswerHead): AnswerTarget;
  /** From the last request byte sent to the response head, milliseconds. */
  readonly responseTimeoutMs: number;
  /** Longest silence within an answer's body, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
}

/** A larger answer is not worth holding back for a retry. */
export const HELD_ANSWER_MAX_BYTES = 256 * 1024;

/** Its head has said what follows: the rest of an answer that is held back is not waited for any longer than this. */
const HOLD_PATIENCE_MS = 2_000;

export class Attempt implements Dispatcher.DispatchHandler {
  readonly ended: Promise<AttemptEnd>;
  /** True once undici has refused the request itself, so that no connection is occupied by it. */
  refused = false;
  readonly #clock: Clock;
  readonly #terms: AttemptTerms;
  #settle: (end: AttemptEnd) => void = () => undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #head: AnswerHead | undefined;
  #target: AnswerTarget | undefined;
  #brokenBy: Error | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Longest silence that is borne now; 0 = no limit. */
  #patienceMs = 0;
  #silentSince = 0;
  #looksAt = Infinity;
  #cancelLook: Cancel | undefined;
  #isOver = false;

  constructor(clock: Clock, terms: AttemptTerms) {
    this.#clock = clock;
    this.#terms = terms;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
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
    if (this.#head !== undefined) this.#conclude(describeExchangeFailure(error));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('ended before it began'));
    else this.#terms.onStart();
  }

  onRequestSent(): void {
    if (this.#isOver || this.#head !== undefined) return;
    this.#expectWithin(this.#terms.responseTimeoutMs);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusText = ''): void {
    // Interim answers (1xx) arrive here as well; only the final one counts.
    if (status < 200 || this.#isOver) return;
    this.#head = { status, statusText: sendable(statusText), fields: textFields(controller.rawHeaders) };
    const target = this.#terms.onHead(this.#head);
    if (target === 'hold') this.#expectWithin(HOLD_PATIENCE_MS);
    else this.#relayTo(target);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#target === undefined) {
      this.#hold(chunk);
      return;
    }
    this.#silentSince = this.#clock.now();
    this.#write(controller, this.#target, chunk);
  }

  onResponseEnd(): void {
    if (this.#isOver || this.#head === undefined) return;
    if (this.#target === undefined) {
      this.#finish({ kind: 'held', answer: { head: this.#head, body: Buffer.concat(this.#held) } });
      return;
    }
    this.#target.end();
    this.#finish({ kind: 'relayed', head: this.#head, fault: undefined });
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    // Without a controller the request never got as far as a connection.
    this.refused = controller === null;
    const fault = this.#brokenBy ?? error;
    this.#fail(this.#controller === undefined ? describeConnectFailure(fault) : describeExchangeFailure(fault));
  }

  #relayTo(target: AnswerTarget): void {
    if (this.#head === undefined) return;
    target.begin(this.#head);
    this.#target = target;
    this.#expectWithin(this.#terms.bodyIdleTimeoutMs);
  }

  #write(controller: Dispatcher.DispatchController, target: AnswerTarget, chunk: Buffer): void {
    if (target.write(chunk)) return;
    controller.pause();
    target.onDrain(() => {
      this.#silentSince = this.#clock.now();
      controller.resume();
    });
  }

  #hold(chunk: Buffer): void {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= HELD_ANSWER_MAX_BYTES || this.#head === undefined || this.#controller === undefined) return;
    const target = this.#terms.onOverflow(this.#head);
    this.#relayTo(target);
    const held = Buffer.concat(this.#held);
    this.#held = [];
    this.#write(this.#controller, target, held);
  }

  /**
   * From now on silence may last so long; 0 = for ever. One timer serves the whole attempt: it is moved along when it fires, so that
   * neither bytes nor a longer patience cost anything.
   */
  #expectWithin(limitMs: number): void {
    this.#patienceMs = limitMs;
    this.#silentSince = this.#clock.now();
    const dueAt = this.#silentSince + limitMs;
    if (limitMs > 0 && dueAt < this.#looksAt) this.#lookAfter(limitMs, dueAt);
  }

  #lookAfter(delayMs: number, at: number): void {
    this.#cancelLook?.();
    this.#looksAt = at;
    this.#cancelLook = this.#clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#looksAt = Infinity;
    if (this.#patienceMs === 0) return;
    const dueAt = this.#silentSince + this.#patienceMs;
    const leftMs = dueAt - this.#clock.now();
    if (leftMs <= 0) this.#fail(timeoutFailure(this.#patienceMs));
    else this.#lookAfter(leftMs, dueAt);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isOver) return;
    this.#conclude(failure);
    this.#controller?.abort(new Error(failure.detail));
  }

  #conclude(failure: UpstreamFailure): void {
    if (this.#isOver) return;
    const head = this.#head;
    const target = this.#target;
    this.#finish(
      head !== undefined && target !== undefined
        ? { kind: 'relayed', head, fault: failure.detail }
        : { kind: 'failed', failure },
    );
    target?.cut();
  }

  #finish(end: AttemptEnd): void {
    this.#isOver = true;
    this.#cancelLook?.();
    this.#held = [];
    this.#settle(end);
  }
}

/** A reason phrase that cannot be sent on is dropped: clients are to ignore it anyway (RFC 9112 §4). */
function sendable(statusText: string): string {
  if (statusText === 'OK') return statusText;
  return /^[\t -~\x80-\xff]*$/.test(statusText) ? statusText : '';
}

/** Undici's raw field list as text; bytes above 0x7f stay what they are (latin1). */
function textFields(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}

/** First value of a field of an answer; `name` in lower case. */
export function answerField(head: AnswerHead, name: string): string | undefined {
  return fieldOf(head.fields, name);
}
