/**
 * Reads a request body from its stream until it is whole or the sink takes no more. It pauses while the request has lost its slot, and ends
 * with the request or after the idle time-out.
 */
import type { IncomingMessage } from 'node:http';
import type { RequestLifetime, RequestAborted } from '../request-lifetime.ts';
import { getReadLimiter, type ReadLimiter } from './read-limiter.ts';
import { isFullyReceived } from './request-receipt.ts';
import { toStageError } from '../stage.ts';

/** The slot that reading needs. Another request may take it while no bytes come. */
export interface ReadSlot {
  /** Bytes were received. @returns false when the slot has been lost: `waitForBodySlot` waits for another */
  recordBodyBytes(now: number): boolean;
  /** @throws SidecarError when there is no slot in time */
  waitForBodySlot(): Promise<void>;
}

/** Where the body is kept. */
export interface BodySink {
  /** Body bytes received so far. */
  readonly receivedBytes: number;
  /** When the last of them came, monotonic. */
  readonly receivedAt: number;
  /** @returns false when no more is to be read */
  append(chunk: Buffer): boolean;
  /** Calls `onIdle` once when no byte has come for too long. @returns stops the timer */
  startIdleTimer(onIdle: (reason: Error) => void): () => void;
}

export class BodyReceiver {
  readonly #request: IncomingMessage;
  readonly #sink: BodySink;
  readonly #lifetime: RequestLifetime;
  readonly #slot: ReadSlot;
  readonly #done = Promise.withResolvers<'whole' | 'enough'>();
  #stopIdleTimer: () => void;
  #hasEnded = false;
  readonly #readLimiter: ReadLimiter;

  constructor(request: IncomingMessage, sink: BodySink, lifetime: RequestLifetime, slot: ReadSlot) {
    this.#request = request;
    this.#sink = sink;
    this.#lifetime = lifetime;
    this.#slot = slot;
    this.#readLimiter = getReadLimiter(request.socket);
    this.#stopIdleTimer = sink.startIdleTimer(this.#fail);
    lifetime.onAbort(this.#onRequestAborted);
    request.on('data', this.#onData).on('end', this.#onEnd).resume();
  }

  /** @throws SidecarError; RequestAborted when the client has left */
  get done(): Promise<'whole' | 'enough'> {
    return this.#done.promise;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#readLimiter.countChunk();
    if (!this.#sink.append(chunk)) this.#finish('enough');
    else if (!this.#slot.recordBodyBytes(this.#sink.receivedAt) && !this.#isReceived()) this.#waitForSlot();
  };

  readonly #onEnd = (): void => this.#finish('whole');

  readonly #onRequestAborted = (reason: RequestAborted): void => this.#fail(toStageError('body', reason));

  readonly #fail = (reason: Error): void => {
    if (this.#hasEnded) return;
    this.#stop();
    this.#done.reject(reason);
  };

  readonly #resume = (): void => {
    if (this.#hasEnded) return;
    this.#stopIdleTimer = this.#sink.startIdleTimer(this.#fail);
    this.#request.resume();
  };

  #isReceived(): boolean {
    return isFullyReceived(this.#request, this.#sink.receivedBytes);
  }

  /** The idle time-out does not run while nothing is read. */
  #waitForSlot(): void {
    this.#stopIdleTimer();
    this.#request.pause();
    this.#slot.waitForBodySlot().then(this.#resume, this.#fail);
  }

  #finish(result: 'whole' | 'enough'): void {
    this.#stop();
    this.#done.resolve(result);
  }

  #stop(): void {
    this.#hasEnded = true;
    this.#lifetime.offAbort(this.#onRequestAborted);
    this.#stopIdleTimer();
    this.#request.pause();
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
  }
}
