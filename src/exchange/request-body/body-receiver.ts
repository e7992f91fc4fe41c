/**
 * Reads a request body from its stream until it is whole or enough of it has been read. It pauses when the place for reading has been lost,
 * and ends with its request or after the client's silence. What is kept is the caller's.
 */
import type { IncomingMessage } from 'node:http';
import type { Lifeline, LifelineEnded } from '../lifeline.ts';
import { paceOf, type PacketPace } from './packet-pace.ts';
import { isReceived } from './received.ts';
import { nameEnd } from '../stage.ts';

/** What reading needs: it may be lost to another request during a silence. */
export interface ReadingPlace {
  /** Bytes were received. False when the place has been lost: `admitted` waits for another. */
  received(now: number): boolean;
  /** @throws SidecarError when there is none in time */
  admitted(): Promise<void>;
}

/** Whose body is read. */
export interface BodyKeeper {
  /** Body bytes received so far. */
  readonly receivedBytes: number;
  /** When the last of them came, monotonic. */
  readonly receivedAt: number;
  /** @returns false when no more is to be read */
  keep(chunk: Buffer): boolean;
  /** Calls `onSilence` once when no byte has come for too long. @returns ends that */
  watchSilence(onSilence: (reason: Error) => void): () => void;
}

export class BodyReceiver {
  readonly #request: IncomingMessage;
  readonly #keeper: BodyKeeper;
  readonly #lifeline: Lifeline;
  readonly #place: ReadingPlace;
  readonly #done = Promise.withResolvers<'whole' | 'enough'>();
  #stopWatching: () => void;
  #isOver = false;
  readonly #pace: PacketPace;

  constructor(request: IncomingMessage, keeper: BodyKeeper, lifeline: Lifeline, place: ReadingPlace) {
    this.#request = request;
    this.#keeper = keeper;
    this.#lifeline = lifeline;
    this.#place = place;
    this.#pace = paceOf(request.socket);
    this.#stopWatching = keeper.watchSilence(this.#giveUp);
    lifeline.onEnd(this.#onRequestEnded);
    request.on('data', this.#onData).on('end', this.#onEnd).resume();
  }

  /** @throws SidecarError, also that of an ended lifeline; LifelineEnded (client-left) */
  get done(): Promise<'whole' | 'enough'> {
    return this.#done.promise;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#pace.count();
    if (!this.#keeper.keep(chunk)) this.#finish('enough');
    else if (!this.#place.received(this.#keeper.receivedAt) && !this.#isReceived()) this.#waitForPlace();
  };

  readonly #onEnd = (): void => this.#finish('whole');

  readonly #onRequestEnded = (reason: LifelineEnded): void => this.#giveUp(nameEnd('body', reason));

  readonly #giveUp = (reason: Error): void => {
    if (this.#isOver) return;
    this.#stop();
    this.#done.reject(reason);
  };

  readonly #readOn = (): void => {
    if (this.#isOver) return;
    this.#stopWatching = this.#keeper.watchSilence(this.#giveUp);
    this.#request.resume();
  };

  #isReceived(): boolean {
    return isReceived(this.#request, this.#keeper.receivedBytes);
  }

  /** The client's silence does not count while nothing is read. */
  #waitForPlace(): void {
    this.#stopWatching();
    this.#request.pause();
    this.#place.admitted().then(this.#readOn, this.#giveUp);
  }

  #finish(how: 'whole' | 'enough'): void {
    this.#stop();
    this.#done.resolve(how);
  }

  #stop(): void {
    this.#isOver = true;
    this.#lifeline.offEnd(this.#onRequestEnded);
    this.#stopWatching();
    this.#request.pause();
    this.#request.off('data', this.#onData).off('end', this.#onEnd);
  }
}
