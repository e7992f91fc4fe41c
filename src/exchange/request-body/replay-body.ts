/**
 * The request body. One that fits is read whole into bounded memory, so that a broken body never reaches the upstream and an
 * attempt can be repeated; a larger one is streamed once. Nothing is read before its request has a body slot.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { AttemptTimeouts } from '../../upstream/response-receiver.ts';
import type { Ticket } from '../../throttle/throttle.ts';
import { EarlyChunks, getReadLimiter, Upload } from './body-readers.ts';
import { GrowableBuffer } from '../../platform/growable-buffer.ts';
import { type RequestAborted, type RequestLifetime, throwIfAborted, toStageError } from '../request-lifetime.ts';
import { declaredLength, isFullyReceived, onFullyReceived } from './request-receipt.ts';

const EMPTY = Buffer.alloc(0);
/** How much of a chunked body is received before it may be read; node:http would receive 64 KiB. */
const EARLY_MAX_BYTES = 16 * 1024;
/** A streamed body has stalled when no byte of it has come for this long. */
const STALLED_AFTER_MS = 1000;

export class ReplayMemory {
  #totalBytes: number;
  #leftBytes: number;

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
    this.#leftBytes = totalBytes;
  }

  /** Memory in use stays in use, also where it is more than the new total. */
  resize(totalBytes: number): void {
    this.#leftBytes += totalBytes - this.#totalBytes;
    this.#totalBytes = totalBytes;
  }

  /** @returns false, with nothing taken, when less is left */
  tryTake(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  /** May exceed the total: for a held response, which is small and already in memory. */
  forceTake(bytes: number): void {
    this.#leftBytes -= bytes;
  }

  giveBack(bytes: number): void {
    this.#leftBytes += bytes;
  }
}

export interface BodyLimits {
  readonly retry: { readonly replayBufferBytes: number };
  readonly memory: ReplayMemory;
  readonly timeouts: Pick<AttemptTimeouts, 'bodyIdleTimeoutMs'>;
}

/** The slot that reading needs. Another request may take it while no bytes come. */
type ReadSlot = Pick<Ticket, 'recordBodyBytes' | 'waitForBodySlot'>;

export class RequestBody {
  /** Length that the client declared; undefined when chunked, 0 without a body. */
  readonly declaredBytes: number | undefined;
  /** All of it is in memory, so that it can be sent again. */
  isInMemory: boolean;
  receivedBytes = 0;
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #clock: Clock;
  readonly #early: EarlyChunks | undefined;
  #buffer: GrowableBuffer | undefined;
  #takenMemoryBytes = 0;
  /** When the last bytes came, or the idle time began; monotonic. */
  #receivedAt = 0;

  constructor(request: IncomingMessage, limits: BodyLimits, clock: Clock) {
    this.#request = request;
    this.#limits = limits;
    this.#clock = clock;
    this.declaredBytes = declaredLength(request);
    this.isInMemory = this.declaredBytes === 0;
    if (this.declaredBytes === undefined) this.#early = new EarlyChunks(request, (chunk) => this.#appendEarly(chunk));
  }

  /**
   * The whole body; undefined when it is empty.
   * @throws SidecarError BAD_REQUEST when it is not as long as declared
   */
  get bytes(): Buffer | undefined {
    if (this.#buffer === undefined) return undefined;
    // Checked again right before they are sent, since they are sent with their own length (RFC 9112 §6.3).
    const fault = this.#findLengthFault();
    if (fault !== undefined) throw fault;
    return this.receivedBytes === 0 ? undefined : this.#buffer.bytes;
  }

  /**
   * Reads a body that has been received to its end and may be buffered, without listeners or timers.
   * @returns whether the body is whole
   * @throws SidecarError BAD_REQUEST when it is not as long as declared
   */
  tryReadReceived(): boolean {
    const request = this.#request;
    if (this.isInMemory) return true;
    const length = this.declaredBytes ?? this.receivedBytes + request.readableLength;
    if (!isFullyReceived(request, this.receivedBytes) || !this.#tryTakeUpTo(length)) return false;
    this.#early?.stop();
    const buffer = (this.#buffer ??= new GrowableBuffer(length));
    // One call returns one buffer or all of them, by the version of Node.js.
    while (this.receivedBytes < length) {
      const chunk = request.read() as Buffer | null;
      if (chunk === null) break;
      buffer.append(chunk);
      this.receivedBytes += chunk.length;
    }
    this.#markWhole();
    // Emits 'end', which node:http waits for.
    request.resume();
    return true;
  }

  /**
   * Reads the body as far as it may be buffered. Resolves when it is whole, or when it will not fit.
   * @throws SidecarError; RequestAborted when the client has left
   */
  async read(lifetime: RequestLifetime, slot: ReadSlot): Promise<void> {
    throwIfAborted(lifetime, 'body');
    if ((this.declaredBytes ?? 0) > this.#limits.retry.replayBufferBytes || this.tryReadReceived()) return;
    this.#early?.stop();
    if (isFullyReceived(this.#request, this.receivedBytes) || !this.#tryTakeForReceived()) return;
    if (await this.#receive(lifetime, slot)) this.#markWhole();
    // The request may have been aborted in the same turn of the event loop.
    throwIfAborted(lifetime, 'body');
  }

  /** @returns false when no more of the body fits */
  #receive(lifetime: RequestLifetime, slot: ReadSlot): Promise<boolean> {
    const request = this.#request;
    const readLimiter = getReadLimiter(request.socket);
    const { promise: isWhole, resolve, reject } = Promise.withResolvers<boolean>();
    let hasEnded = false;
    const stop = (): void => {
      hasEnded = true;
      lifetime.offAbort(onAborted);
      stopIdleTimer();
      request.off('data', onData).off('end', onEnd).pause();
    };
    const finish = (result: boolean): void => {
      stop();
      resolve(result);
    };
    const fail = (reason: Error): void => {
      if (!hasEnded) stop();
      reject(reason);
    };
    const onData = (chunk: Buffer): void => {
      readLimiter.countChunk();
      if (!this.#append(chunk)) finish(false);
      else if (!slot.recordBodyBytes(this.#receivedAt) && !isFullyReceived(request, this.receivedBytes)) {
        // The request has lost its slot. The idle time-out does not run while nothing is read.
        stopIdleTimer();
        request.pause();
        slot.waitForBodySlot().then(() => hasEnded || start(), fail);
      }
    };
    const onEnd = (): void => finish(true);
    const onAborted = (reason: RequestAborted): void => fail(toStageError('body', reason));
    const start = (): void => {
      stopIdleTimer = this.#startIdleTimer(fail);
      request.resume();
    };
    let stopIdleTimer = (): void => undefined;
    lifetime.onAbort(onAborted);
    request.on('data', onData).on('end', onEnd);
    start();
    return isWhole;
  }

  #markWhole(): void {
    const fault = this.#findLengthFault();
    if (fault !== undefined) throw fault;
    this.isInMemory = true;
  }

  #findLengthFault(): SidecarError | undefined {
    const bytes = this.#buffer?.bytes.length ?? 0;
    const declared = this.declaredBytes ?? this.receivedBytes;
    if (bytes === declared && bytes === this.receivedBytes) return undefined;
    const detail = `the request body has ${String(bytes)} bytes, and ${String(declared)} are declared`;
    return new SidecarError('BAD_REQUEST', detail);
  }

  /** @returns false when the body does not fit: a longer one than may be buffered, or more than all bodies together may hold */
  #append(chunk: Buffer): boolean {
    (this.#buffer ??= new GrowableBuffer(this.declaredBytes)).append(chunk);
    this.#countReceived(chunk);
    return this.#tryTakeForReceived();
  }

  #tryTakeForReceived(): boolean {
    const most = this.#limits.retry.replayBufferBytes;
    return this.receivedBytes <= most && this.#tryTakeUpTo(Math.min(this.#buffer?.capacity ?? 0, most));
  }

  #appendEarly(chunk: Buffer): boolean {
    (this.#buffer ??= new GrowableBuffer()).append(chunk);
    this.#countReceived(chunk);
    return this.receivedBytes < EARLY_MAX_BYTES;
  }

  /**
   * Calls `listener` once when the last byte of the unread body is received; not if it has been received before.
   * @returns removes the listener; to be called before the body is read
   */
  onFullyReceived(listener: () => void): () => void {
    const request = this.#request;
    if (this.#early === undefined) return onFullyReceived(request, listener);
    request.once('end', listener);
    return () => void request.off('end', listener);
  }

  /**
   * The whole body as a stream; can be called once.
   * @param onIdle called once when no byte has come for the idle time-out
   * @param onStalled called each second while no byte comes
   */
  stream(onIdle: (reason: SidecarError) => void, onStalled: () => void): Readable {
    this.#early?.stop();
    const received = this.#buffer?.bytes ?? EMPTY;
    this.dispose();
    return new Upload(this.#request, received, {
      onChunk: (chunk) => this.#countReceived(chunk),
      startIdleTimer: () => this.#startIdleTimer(onIdle, onStalled),
    });
  }

  /** Until when the upstream has waited for the client, monotonic; not while it does not read, or has all of the body. */
  waitedUntil(now: number): number {
    return this.#request.complete || this.#request.isPaused() ? this.#receivedAt : now;
  }

  /** Gives the memory back, and leaves the rest of the body to another reader. */
  dispose(): void {
    this.#early?.stop();
    this.#buffer?.clear();
    if (this.#takenMemoryBytes > 0) this.#limits.memory.giveBack(this.#takenMemoryBytes);
    this.#takenMemoryBytes = 0;
  }

  /** Takes memory for this many bytes in all. @returns false, with no more taken, when they may not be buffered */
  #tryTakeUpTo(bytes: number): boolean {
    const more = bytes - this.#takenMemoryBytes;
    if (bytes > this.#limits.retry.replayBufferBytes || !this.#limits.memory.tryTake(more)) return false;
    this.#takenMemoryBytes = bytes;
    return true;
  }

  /** Calls `onIdle` once when no byte has come for the idle time-out, and until then `onStalled` each second while none comes. */
  #startIdleTimer(onIdle: (reason: SidecarError) => void, onStalled?: () => void): () => void {
    const idleTimeoutMs = this.#limits.timeouts.bodyIdleTimeoutMs || Infinity;
    const intervalMs = Math.min(idleTimeoutMs, onStalled === undefined ? Infinity : STALLED_AFTER_MS);
    if (intervalMs === Infinity) return () => undefined;
    this.#receivedAt = this.#clock.now();
    const check = (): void => {
      const idleMs = this.#clock.now() - this.#receivedAt;
      if (idleMs >= idleTimeoutMs) {
        onIdle(stalledUploadError(idleTimeoutMs));
        return;
      }
      // One timer, moved along when it fires.
      cancel = this.#clock.after(Math.min(intervalMs - (idleMs % intervalMs), idleTimeoutMs - idleMs), check);
      // After a long turn of the event loop, bytes may wait in the socket: they are read first.
      if (idleMs >= intervalMs) setImmediate(reportStall);
    };
    const reportStall = (): void => {
      if (!isStopped && this.#clock.now() - this.#receivedAt >= intervalMs) onStalled?.();
    };
    let isStopped = false;
    let cancel = this.#clock.after(intervalMs, check);
    return () => {
      isStopped = true;
      cancel();
    };
  }

  #countReceived(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    this.#receivedAt = this.#clock.now();
  }
}

function stalledUploadError(afterMs: number): SidecarError {
  const limit = `${String(Math.round(afterMs))} ms: upstream.bodyIdleTimeoutMs (SIDECAR_BODY_IDLE_TIMEOUT_MS)`;
  const detail = `the request body stopped coming: nothing was received for ${limit}`;
  return new SidecarError('REQUEST_TIMEOUT', detail);
}
