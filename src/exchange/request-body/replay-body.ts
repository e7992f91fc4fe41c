/**
 * The request body: read whole into bounded memory where it fits, so that a broken one never reaches the upstream and
 * an attempt can be repeated; streamed once where it does not. Nothing is read before the request is admitted.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../platform/clock.ts';
import { SidecarError } from '../../platform/errors.ts';
import { BodyReceiver, type BodySink, type ReadSlot } from './body-receiver.ts';
import { GrowableBuffer } from './growable-buffer.ts';
import type { RequestLifetime } from '../request-lifetime.ts';
import { EarlyChunks } from './early-chunks.ts';
import { declaredLength, isFullyReceived, onFullyReceived } from './request-receipt.ts';
import { toStageError } from '../stage.ts';
import { Upload } from './upload.ts';

const EMPTY = Buffer.alloc(0);
/** So much of a chunked body is received before it may be read; node:http would receive 64 KiB. */
const EARLY_MAX_BYTES = 16 * 1024;
/** A body that is streamed, and of which no byte has come for this long, has stalled. */
const STALLED_AFTER_MS = 1000;

/** Bytes that all replay buffers together may hold. */
export class ReplayMemory {
  #totalBytes: number;
  #leftBytes: number;

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
    this.#leftBytes = totalBytes;
  }

  /** What is taken stays taken, even where it is more than the new total. */
  resize(totalBytes: number): void {
    this.#leftBytes += totalBytes - this.#totalBytes;
    this.#totalBytes = totalBytes;
  }

  /** False, and nothing taken, when there is not as much left. */
  tryTake(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  /** Takes even what is not left: for a held answer, which is here already and small. */
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
  /** Longest silence of the client within its body, milliseconds; 0 = no limit. */
  readonly bodyIdleTimeoutMs: number;
}

export class RequestBody implements BodySink {
  /** Length that the client declared; undefined when chunked, 0 without a body. */
  readonly declaredBytes: number | undefined;
  /** Body bytes received so far. */
  receivedBytes = 0;
  /** When the last of them came, or their silence began to count; monotonic. */
  receivedAt = 0;
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #clock: Clock;
  /** Of a chunked body, until it is read. */
  readonly #early: EarlyChunks | undefined;
  #buffer: GrowableBuffer | undefined;
  #takenMemoryBytes = 0;
  #isWhole: boolean;

  constructor(request: IncomingMessage, limits: BodyLimits, clock: Clock) {
    this.#request = request;
    this.#limits = limits;
    this.#clock = clock;
    this.declaredBytes = declaredLength(request);
    this.#isWhole = this.declaredBytes === 0;
    if (this.declaredBytes === undefined) this.#early = new EarlyChunks(request, (chunk) => this.#appendEarly(chunk));
  }

  /** All of it is in memory: it can be sent again. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /**
   * The whole body; undefined when it is empty.
   * @throws SidecarError BAD_REQUEST when it is not as long as declared
   */
  get bytes(): Buffer | undefined {
    // The last look before they are sent: a wrong length must not become the truth (RFC 9112 §6.3).
    const fault = this.#findLengthFault();
    if (fault !== undefined) throw fault;
    return this.receivedBytes === 0 ? undefined : this.#buffer?.bytes;
  }

  /**
   * Takes a body that has been received to its end, if it may be buffered: without listeners or timers. False when it has not, or may not.
   * @throws SidecarError BAD_REQUEST when it is not as long as declared
   */
  tryReadReceived(): boolean {
    const request = this.#request;
    if (this.#isWhole) return true;
    const length = this.declaredBytes ?? this.receivedBytes + request.readableLength;
    if (!isFullyReceived(request, this.receivedBytes) || !this.#tryTakeUpTo(length)) return false;
    this.#early?.stop();
    const kept = (this.#buffer ??= new GrowableBuffer(length));
    // One call returns one buffer or all of them, depending on the version of Node.js.
    while (this.receivedBytes < length) {
      const chunk = request.read() as Buffer | null;
      if (chunk === null) break;
      kept.append(chunk);
      this.receivedBytes += chunk.length;
    }
    this.#markWhole();
    // Emits its end, which node:http waits for.
    request.resume();
    return true;
  }

  /**
   * Reads the body as far as it may be buffered. Resolves when it is whole, or when it will not fit.
   * @throws SidecarError, also that of an ended lifeline; LifelineEnded (client-left)
   */
  async read(lifeline: RequestLifetime, place: ReadSlot): Promise<void> {
    throwIfAborted(lifeline);
    if ((this.declaredBytes ?? 0) > this.#limits.retry.replayBufferBytes || this.tryReadReceived()) return;
    this.#early?.stop();
    if (isFullyReceived(this.#request, this.receivedBytes) || !this.#tryTakeForReceived()) return;
    if ((await new BodyReceiver(this.#request, this, lifeline, place).done) === 'whole') this.#markWhole();
    // An end may come in the same turn of the event loop as what is waited for: whoever goes on must be alive.
    throwIfAborted(lifeline);
  }

  #markWhole(): void {
    const fault = this.#findLengthFault();
    if (fault !== undefined) throw fault;
    this.#isWhole = true;
  }

  /** Why what was received is not the body; undefined when it is. */
  #findLengthFault(): SidecarError | undefined {
    const bytes = this.#buffer?.bytes.length ?? 0;
    const declared = this.declaredBytes ?? this.receivedBytes;
    if (bytes === declared && bytes === this.receivedBytes) return undefined;
    const detail = `the request body has ${String(bytes)} bytes, and ${String(declared)} are declared`;
    return new SidecarError('BAD_REQUEST', detail);
  }

  /** @returns false when the body does not fit: a longer one than may be buffered, or more than all bodies together may hold */
  append(chunk: Buffer): boolean {
    (this.#buffer ??= new GrowableBuffer(this.declaredBytes)).append(chunk);
    this.#countReceived(chunk);
    return this.#tryTakeForReceived();
  }

  /** Takes the memory of what has been received so far; false when that may not be buffered. */
  #tryTakeForReceived(): boolean {
    const most = this.#limits.retry.replayBufferBytes;
    return this.receivedBytes <= most && this.#tryTakeUpTo(Math.min(this.#buffer?.capacity ?? 0, most));
  }

  /** @returns false when it is enough */
  #appendEarly(chunk: Buffer): boolean {
    (this.#buffer ??= new GrowableBuffer()).append(chunk);
    this.#countReceived(chunk);
    return this.receivedBytes < EARLY_MAX_BYTES;
  }

  /**
   * Calls `listener` once when the last byte of the unread body has been received; not at once if it has been already.
   * @returns ends it; to be called before the body is read
   */
  onFullyReceived(listener: () => void): () => void {
    const request = this.#request;
    if (this.#early === undefined) return onFullyReceived(request, listener);
    request.once('end', listener);
    return () => void request.off('end', listener);
  }

  /**
   * What has been read and all that follows, once.
   * @param onSilence called once when no byte has come for the idle time-out
   * @param onStalled called each second while no byte comes
   */
  stream(onSilence: (reason: SidecarError) => void, onStalled: () => void): Readable {
    this.#early?.stop();
    const begun = this.#buffer?.bytes ?? EMPTY;
    this.dispose();
    return new Upload(this.#request, begun, {
      onChunk: (chunk) => this.#countReceived(chunk),
      startIdleTimer: () => this.startIdleTimer(onSilence, onStalled),
    });
  }

  /** Gives the memory back, and the rest of the body to another reader. */
  dispose(): void {
    this.#early?.stop();
    this.#buffer?.clear();
    this.#limits.memory.giveBack(this.#takenMemoryBytes);
    this.#takenMemoryBytes = 0;
  }

  /** Takes memory for so many bytes in all; false, and nothing more taken, when they may not be buffered. */
  #tryTakeUpTo(bytes: number): boolean {
    const more = bytes - this.#takenMemoryBytes;
    if (bytes > this.#limits.retry.replayBufferBytes || !this.#limits.memory.tryTake(more)) return false;
    this.#takenMemoryBytes = bytes;
    return true;
  }

  /** Calls `onSilence` once when no byte has come for the idle time-out, and until then `onStalled` each second while none comes. */
  startIdleTimer(onSilence: (reason: SidecarError) => void, onStalled?: () => void): () => void {
    const idleTimeoutMs = this.#limits.bodyIdleTimeoutMs || Infinity;
    const lookMs = Math.min(idleTimeoutMs, onStalled === undefined ? Infinity : STALLED_AFTER_MS);
    if (lookMs === Infinity) return () => undefined;
    this.receivedAt = this.#clock.now();
    const look = (): void => {
      const silentMs = this.#clock.now() - this.receivedAt;
      if (silentMs >= idleTimeoutMs) {
        onSilence(stalledUploadError(idleTimeoutMs));
        return;
      }
      // One timer, moved along when it fires.
      cancel = this.#clock.after(Math.min(lookMs - (silentMs % lookMs), idleTimeoutMs - silentMs), look);
      // After a turn of the event loop that took long, bytes may wait in the socket: they are read before this is judged.
      if (silentMs >= lookMs) setImmediate(judge);
    };
    const judge = (): void => {
      if (!isStopped && this.#clock.now() - this.receivedAt >= lookMs) onStalled?.();
    };
    let isStopped = false;
    let cancel = this.#clock.after(lookMs, look);
    return () => {
      isStopped = true;
      cancel();
    };
  }

  #countReceived(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    this.receivedAt = this.#clock.now();
  }
}

function throwIfAborted({ aborted }: RequestLifetime): void {
  if (aborted !== undefined) throw toStageError('body', aborted);
}

/** The reply to a client that stops in the middle of its own body. */
function stalledUploadError(afterMs: number): SidecarError {
  const detail = `the request body stopped coming: nothing was received for ${String(Math.round(afterMs))} ms`;
  return new SidecarError('REQUEST_TIMEOUT', detail);
}
