/**
 * One attempt on the wire: an undici handler that turns callbacks into one value (`AttemptResult`). It streams the response to its
 * sink with backpressure, or holds a small one until it is whole or its beginning decides. The injected clock measures time.
 */
import type { Dispatcher } from 'undici';
import type { Clock, Timer, TimerTarget } from '../platform/clock.ts';
import { GrowableBuffer } from '../platform/growable-buffer.ts';
import { resumeInTurn } from '../platform/reading-rounds.ts';
import type { CutBy, FaultCause } from '../telemetry/events.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  idleTimeoutFailure,
  parsingFailure,
  timeoutFailure,
  type UpstreamFailure,
} from './failure.ts';
import { readResponseHead, type UpstreamResponse } from './upstream-response.ts';

export interface ResponseSink {
  begin(head: UpstreamResponse): void;
  /** @returns false: no more until `onDrain` calls back */
  write(chunk: Buffer): boolean;
  onDrain(resume: () => void): void;
  end(): void;
  /** Drops what it was given, if none of it has been sent, so that another response can be. @returns false when it is too late */
  discardUnsent(): boolean;
  /** The response breaks off here: the client must be able to tell. */
  cut(): void;
}

/** Where a response goes: it is streamed, or kept for the result. */
export type ResponseDestination = ResponseSink | 'hold';

/** Decides from the beginning of a body where the response goes. The attempt keeps the body until then. */
export interface BodyInspector {
  /** Called first. `onDecided` is called once, also during one of the calls below or between them. */
  begin(onDecided: (destination: ResponseDestination) => void): void;
  write(chunk: Buffer): void;
  /** No more of the body comes: decides now. */
  end(): void;
  /** The attempt was ended from outside: nothing is decided. */
  cancel(): void;
}

export interface ResponseCut {
  readonly detail: string;
  readonly cutBy: CutBy;
  /** Undefined when the sidecar cut it. */
  readonly cause: FaultCause | undefined;
}

/** What one attempt gave. `fault` is undefined when the response is whole. */
export type AttemptResult =
  | { readonly kind: 'relayed'; readonly head: UpstreamResponse; readonly fault: ResponseCut | undefined }
  | {
      readonly kind: 'held';
      readonly head: UpstreamResponse;
      readonly body: Buffer;
      readonly fault: ResponseCut | undefined;
    }
  /** No response came, or it broke off before any of it was sent to the client. */
  | { readonly kind: 'failed'; readonly failure: UpstreamFailure };

export interface AttemptTimeouts {
  /** From the last request byte sent to the response head, milliseconds. */
  readonly requestTimeoutMs: number;
  /** Longest silence within a body, in either direction, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
}

/** The caller of an attempt. No method may throw. */
export interface AttemptHandler {
  readonly timeouts: AttemptTimeouts;
  /** The request is about to go onto a connection: no byte of it has. @returns why it must not */
  onStart(): UpstreamFailure | undefined;
  /**
   * Called once with the final head.
   * @param at when it came, monotonic
   * @returns where the response goes, or what decides that from its body
   */
  onHead(head: UpstreamResponse, at: number): ResponseDestination | { readonly inspector: BodyInspector };
  /** The response is too large to be held. @returns where it is streamed to */
  onBufferExceeded(head: UpstreamResponse): ResponseSink;
}

/** A larger response is not held for a retry. */
export const HELD_RESPONSE_MAX_BYTES = 256 * 1024;

/**
 * After this many chunks other connections are read first. Fewer than a packet holds would cost memory before Node 26: there, the connection
 * reads up to 64 KiB more each time that undici goes on.
 */
const CHUNKS_PER_ROUND = 16_384;

/** The head has decided what follows: the rest of a held response is not waited for any longer. */
const HELD_BODY_TIMEOUT_MS = 2_000;

export class ResponseReceiver implements Dispatcher.DispatchHandler, TimerTarget {
  /** Undici has rejected the request itself: it occupies no connection. */
  isUnsendable = false;
  hasEnded = false;
  hasHead = false;
  readonly #result = Promise.withResolvers<AttemptResult>();
  /** Resolves with how it ended. Never rejects. */
  readonly ended = this.#result.promise;
  readonly #clock: Clock;
  readonly #handler: AttemptHandler;
  readonly #method: string;
  #controller: Dispatcher.DispatchController | undefined;
  #head: UpstreamResponse | undefined;
  #sink: ResponseSink | undefined;
  /** Decides where the response goes; undefined when that is known. */
  #inspector: BodyInspector | undefined;
  #connectionError: Error | undefined;
  /** In one piece: a buffer for each chunk of one byte would cost a hundred times its size. */
  #held: GrowableBuffer | undefined;
  /** Longest silence that is allowed now; 0 = no limit. */
  #timeoutMs = 0;
  #lastActivityAt = 0;
  /** The client takes nothing at the moment. */
  #isPaused = false;
  /** At 0 the attempt waits until other connections have been read. */
  #chunksLeft = CHUNKS_PER_ROUND;
  #timerAt = Infinity;
  #timer: Timer | undefined;

  constructor(clock: Clock, handler: AttemptHandler, method: string) {
    this.#clock = clock;
    this.#handler = handler;
    this.#method = method;
  }

  /** Ends the attempt: the response is cut, the connection closed. Does nothing when it has ended. */
  abort(): void {
    this.#fail(abortedFailure());
  }

  /** The connection has broken: undici may report another reason, or take a response that ends with its connection for whole. */
  onConnectionError(error: Error): void {
    this.#connectionError ??= error;
    if (this.hasHead) this.#conclude(classifyExchangeError(error, true));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.hasEnded) {
      controller.abort(new Error('ended before it began'));
      return;
    }
    const refusal = this.#handler.onStart();
    if (refusal === undefined) return;
    this.#conclude(refusal);
    // Undici drops the request and keeps the connection; an abort would close it.
    throw new Error(refusal.detail);
  }

  onRequestSent(): void {
    if (this.hasEnded || this.hasHead) return;
    this.#startTimeout(this.#handler.timeouts.requestTimeoutMs, this.#clock.now());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusText = ''): void {
    // Interim responses (1xx) arrive here as well.
    if (status < 200 || this.hasEnded) return;
    const head = readResponseHead(status, statusText, controller.rawHeaders);
    const hasBody = this.#method !== 'HEAD' && status !== 204 && status !== 304;
    if (hasBody && head.framingFault !== undefined) {
      this.#fail(parsingFailure(head.framingFault));
      return;
    }
    this.#head = head;
    this.hasHead = true;
    const now = this.#clock.now();
    const next = this.#handler.onHead(head, now);
    if (next === 'hold') this.#startTimeout(HELD_BODY_TIMEOUT_MS, now);
    else if ('inspector' in next) this.#inspect(next.inspector, now);
    else this.#relay(head, next, now);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.hasEnded) return;
    if (--this.#chunksLeft === 0) this.#pauseForOthers(controller);
    if (this.#sink === undefined) {
      this.#hold(chunk);
      return;
    }
    this.#lastActivityAt = this.#clock.now();
    if (!this.#sink.write(chunk)) this.#pause(controller, this.#sink);
  }

  onResponseEnd(): void {
    const head = this.#head;
    if (this.hasEnded || head === undefined) return;
    this.#inspector?.end();
    if (this.#sink === undefined) {
      this.#finishHeld(head, undefined);
      return;
    }
    this.#sink.end();
    this.#finish({ kind: 'relayed', head, fault: undefined });
  }

  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void {
    // Without a controller the request was never given to a connection.
    this.isUnsendable = controller === null;
    const fault = this.#connectionError ?? error;
    this.#fail(
      this.#controller === undefined ? classifyConnectError(fault) : classifyExchangeError(fault, this.hasHead),
    );
  }

  #inspect(inspector: BodyInspector, now: number): void {
    this.#inspector = inspector;
    this.#startTimeout(this.#handler.timeouts.bodyIdleTimeoutMs, now);
    inspector.begin((destination) => this.#onInspected(destination));
  }

  #onInspected(destination: ResponseDestination): void {
    this.#inspector = undefined;
    if (destination === 'hold') this.#startTimeout(HELD_BODY_TIMEOUT_MS, this.#clock.now());
    else this.#relayHeld(destination);
  }

  #relay(head: UpstreamResponse, sink: ResponseSink, now: number): void {
    // Set before `begin`: a head that cannot be sent on is taken back like any other unsent one.
    this.#sink = sink;
    sink.begin(head);
    this.#startTimeout(this.#handler.timeouts.bodyIdleTimeoutMs, now);
  }

  #relayHeld(sink: ResponseSink): void {
    if (this.#head === undefined || this.#controller === undefined) return;
    const held = this.#held;
    this.#held = undefined;
    this.#relay(this.#head, sink, this.#clock.now());
    if (held !== undefined && !sink.write(held.bytes)) this.#pause(this.#controller, sink);
  }

  #pause(controller: Dispatcher.DispatchController, sink: ResponseSink): void {
    controller.pause();
    this.#isPaused = true;
    sink.onDrain(() => {
      this.#isPaused = false;
      this.#lastActivityAt = this.#clock.now();
      if (this.#chunksLeft > 0) controller.resume();
    });
  }

  #pauseForOthers(controller: Dispatcher.DispatchController): void {
    controller.pause();
    resumeInTurn(() => {
      this.#chunksLeft = CHUNKS_PER_ROUND;
      if (!this.#isPaused && !this.hasEnded) controller.resume();
    });
  }

  #hold(chunk: Buffer): void {
    const held = (this.#held ??= new GrowableBuffer());
    held.append(chunk);
    if (this.#inspector !== undefined) {
      this.#lastActivityAt = this.#clock.now();
      this.#inspector.write(chunk);
    }
    if (this.#sink !== undefined || held.length <= HELD_RESPONSE_MAX_BYTES || this.#head === undefined) return;
    this.#relayHeld(this.#handler.onBufferExceeded(this.#head));
  }

  /** Limits the silence from now on; 0 = no limit. The timer is moved along when it fires, so that bytes cost nothing. */
  #startTimeout(limitMs: number, now: number): void {
    this.#timeoutMs = limitMs;
    this.#lastActivityAt = now;
    if (limitMs > 0 && now + limitMs < this.#timerAt) this.#setTimer(limitMs, now);
  }

  #setTimer(delayMs: number, now: number): void {
    this.#timer?.cancel();
    this.#timerAt = now + delayMs;
    this.#timer = this.#clock.startTimer(delayMs, this, now);
  }

  onTimer(): void {
    this.#timerAt = Infinity;
    if (this.#timeoutMs === 0) return;
    const now = this.#clock.now();
    const leftMs = this.#lastActivityAt + this.#timeoutMs - now;
    if (leftMs <= 0) this.#fail(this.#timeoutFailure());
    else this.#setTimer(leftMs, now);
  }

  #timeoutFailure(): UpstreamFailure {
    if (!this.hasHead) return timeoutFailure(this.#timeoutMs);
    const isConfigured = this.#timeoutMs === this.#handler.timeouts.bodyIdleTimeoutMs;
    return idleTimeoutFailure(this.#isPaused ? 'client' : 'upstream', this.#timeoutMs, isConfigured);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.hasEnded) return;
    this.#conclude(failure);
    this.#controller?.abort(new Error(failure.detail));
  }

  #conclude(failure: UpstreamFailure): void {
    if (this.hasEnded) return;
    const { kind, detail, cause } = failure;
    const cutBy = kind === 'aborted' ? 'sidecar' : 'upstream';
    // What has come decides; an attempt that the sidecar ended decides nothing.
    if (cutBy === 'upstream') this.#inspector?.end();
    else this.#inspector?.cancel();
    const head = this.#head;
    const sink = this.#sink;
    const fault: ResponseCut = { detail, cutBy, cause };
    if (head === undefined || sink?.discardUnsent() === true) {
      this.#finish({ kind: 'failed', failure });
    } else if (sink !== undefined) {
      this.#finish({ kind: 'relayed', head, fault });
      sink.cut();
    }
    // The part of a held response that has come is still the upstream's response, unless the sidecar ended the attempt.
    else if (cutBy === 'upstream') this.#finishHeld(head, fault);
    else this.#finish({ kind: 'failed', failure });
  }

  #finishHeld(head: UpstreamResponse, fault: ResponseCut | undefined): void {
    this.#finish({ kind: 'held', head, body: Buffer.from(this.#held?.bytes ?? []), fault });
  }

  #finish(result: AttemptResult): void {
    this.hasEnded = true;
    this.#timer?.cancel();
    this.#held = undefined;
    this.#result.resolve(result);
  }
}
