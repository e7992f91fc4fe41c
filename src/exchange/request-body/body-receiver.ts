/**
 * Reads a request body from its stream until it is whole or enough of it has been read. It pauses when the place for reading has been lost,
 * and ends with its request or after the client's silence. What is kept is the caller's.
 */
import type { IncomingMessage } from 'node:http';
import type { RequestLifetime, RequestAborted } from '../request-lifetime.ts';
import { getReadLimiter, type ReadLimiter } from './read-limiter.ts';
import { isFullyReceived } from './request-receipt.ts';
import { toStageError } from '../stage.ts';

/** What reading needs: it may be lost to another request during a silence. */
export interface ReadSlot {
  /** Bytes were received. False when the place has been lost: `admitted` waits for another. */
  recordBodyBytes(now: number): boolean;
  /** @throws SidecarError when there is none in time */
  waitForAdmission(): Promise<void>;
}

/** Whose body is read. */
export interface BodySink {
  /** Body bytes received so far. */
  readonly receivedBytes: number;
  /** When the last of them came, monotonic. */
  readonly receivedAt: number;
  /** @returns false when no more is to be read */
  append(chunk: Buffer): boolean;
  /** Calls `onSilence` once when no byte has come for too long. @returns ends that */
  startIdleTimer(onSilence: (reason: Error) => void): () => void;
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

  constructor(request: IncomingMessage, keeper: BodySink, lifeline: RequestLifetime, place: ReadSlot) {
    this.#request = request;
    this.#sink = keeper;
    this.#lifetime = lifeline;
    this.#slot = place;
    this.#readLimiter = getReadLimiter(request.socket);
    this.#stopIdleTimer = keeper.startIdleTimer(this.#fail);
    lifeline.onAbort(this.#onRequestAborted);
    request.on('data', this.#onData).on('end', this.#onEnd).resume();
  }

  /** @throws SidecarError, also that of an ended lifeline; LifelineEnded (client-left) */
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

  /** The client's silence does not count while nothing is read. */
  #waitForSlot(): void {
    this.#stopIdleTimer();
    this.#request.pause();
    this.#slot.waitForAdmission().then(this.#resume, this.#fail);
  }

  #finish(how: 'whole' | 'enough'): void {
    this.#stop();
    this.#done.resolve(how);
  }

  #stop(): void {
    this.#hasEnded = true;
    this.#lifetime.offAbort(this.#onRequestAborted);
    this.#stopIdleTimer();
    this.#request.pause();
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
  }
}
