/**
 * The request body: read whole into bounded memory where it fits, so that a broken one never reaches the upstream and
 * an attempt can be repeated; streamed once where it does not. Nothing is read before the request is admitted.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../clock.ts';
import { SidecarError } from '../errors.ts';
import { ByteStore } from './byte-store.ts';
import type { Lifeline, LifelineEnded } from './lifeline.ts';
import { declaredLength, isReceived } from './received.ts';
import { nameEnd } from './stage.ts';
import { Upload } from './upload.ts';

const NOTHING = Buffer.alloc(0);

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
  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  /** Takes even what is not left: for a held answer, which is here already and small. */
  reserve(bytes: number): void {
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

export class RequestBody {
  /** Body bytes received so far. */
  receivedBytes = 0;
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #clock: Clock;
  #kept: ByteStore | undefined;
  #takenBytes = 0;
  #isWhole: boolean;
  /** When its last bytes came, while somebody watches. */
  #heardAt = 0;

  constructor(request: IncomingMessage, limits: BodyLimits, clock: Clock) {
    this.#request = request;
    this.#limits = limits;
    this.#clock = clock;
    this.#isWhole = this.declaredBytes === 0;
  }

  /** Length that the client declared; undefined when chunked. 0 without a body. */
  get declaredBytes(): number | undefined {
    return declaredLength(this.#request);
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
    const fault = this.#wrongLength();
    if (fault !== undefined) throw fault;
    return this.receivedBytes === 0 ? undefined : this.#kept?.bytes;
  }

  /**
   * Takes a body that has been received to its end, if it may be buffered: without listeners or timers. False when it has not, or may not.
   * @throws SidecarError BAD_REQUEST when it is not as long as declared
   */
  takeWhole(): boolean {
    const request = this.#request;
    if (this.#isWhole) return true;
    const length = this.declaredBytes ?? request.readableLength;
    if (this.receivedBytes > 0 || !isReceived(request) || !this.#mayKeep(length)) return false;
    const kept = (this.#kept = new ByteStore(length));
    // One call returns one buffer or all of them, depending on the version of Node.js.
    for (let chunk = readNext(request); chunk !== null; chunk = readNext(request)) {
      kept.add(chunk);
      this.receivedBytes += chunk.length;
    }
    const fault = this.#wrongLength();
    if (fault !== undefined) throw fault;
    this.#isWhole = true;
    // Emits its end, which node:http waits for.
    request.resume();
    return true;
  }

  /**
   * Reads the body as far as it may be buffered. Resolves when it is whole, or when it will not fit.
   * @throws SidecarError, also that of an ended lifeline; LifelineEnded (client-left)
   */
  async read(lifeline: Lifeline): Promise<void> {
    assertAlive(lifeline);
    const declared = this.declaredBytes;
    if (declared !== undefined && !this.#mayKeep(declared)) return;
    await this.#receive(lifeline, declared === undefined);
    // An end may come in the same turn of the event loop as what is waited for: whoever goes on must be alive.
    assertAlive(lifeline);
  }

  /** Why what was received is not the body; undefined when it is. */
  #wrongLength(): SidecarError | undefined {
    const bytes = this.#kept?.bytes.length ?? 0;
    const declared = this.declaredBytes ?? this.receivedBytes;
    if (bytes === declared && bytes === this.receivedBytes) return undefined;
    const detail = `the request body has ${String(bytes)} bytes, and ${String(declared)} are declared`;
    return new SidecarError('BAD_REQUEST', detail);
  }

  /** Takes the memory for so many bytes, once. */
  #mayKeep(declared: number): boolean {
    if (this.#takenBytes > 0) return true;
    return declared <= this.#limits.retry.replayBufferBytes && this.#take(declared);
  }

  /** @param isBounded ends when the bytes do not fit, as those of an unknown length may */
  #receive(lifeline: Lifeline, isBounded: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        lifeline.offEnd(end);
        stopWatching();
        this.#request.pause();
        this.#request.off('data', keep).off('end', finish);
      };
      const keep = (chunk: Buffer): void => {
        (this.#kept ??= new ByteStore(this.declaredBytes)).add(chunk);
        this.#hear(chunk);
        const isOver = this.receivedBytes > this.#limits.retry.replayBufferBytes;
        if (isBounded && (isOver || !this.#take(chunk.length))) {
          stop();
          resolve();
        }
      };
      const giveUp = (reason: Error): void => {
        stop();
        reject(reason);
      };
      const finish = (): void => {
        stop();
        const fault = this.#wrongLength();
        this.#isWhole = fault === undefined;
        if (fault === undefined) resolve();
        else reject(fault);
      };
      const stopWatching = this.#watchSilence(giveUp);
      const end = (reason: LifelineEnded): void => giveUp(nameEnd('body', reason));
      lifeline.onEnd(end);
      this.#request.on('data', keep).on('end', finish);
    });
  }

  /** What has been read and all that follows, once. `onStall` hears of a client that stops sending. */
  stream(onStall: (reason: SidecarError) => void): Readable {
    const begun = this.#kept?.bytes ?? NOTHING;
    this.dispose();
    return new Upload(this.#request, begun, {
      onChunk: (chunk) => this.#hear(chunk),
      watch: () => this.#watchSilence(onStall),
    });
  }

  /** Gives the memory back. */
  dispose(): void {
    this.#kept?.clear();
    this.#limits.memory.giveBack(this.#takenBytes);
    this.#takenBytes = 0;
  }

  #take(bytes: number): boolean {
    if (!this.#limits.memory.take(bytes)) return false;
    this.#takenBytes += bytes;
    return true;
  }

  /** Calls `onSilence` once when no byte has come for the idle time-out. */
  #watchSilence(onSilence: (reason: SidecarError) => void): () => void {
    const { bodyIdleTimeoutMs: idleTimeoutMs } = this.#limits;
    if (idleTimeoutMs === 0) return () => undefined;
    this.#heardAt = this.#clock.now();
    const look = (): void => {
      // One timer, moved along when it fires.
      const leftMs = this.#heardAt + idleTimeoutMs - this.#clock.now();
      if (leftMs > 0) cancel = this.#clock.after(leftMs, look);
      else onSilence(stalledUpload(idleTimeoutMs));
    };
    let cancel = this.#clock.after(idleTimeoutMs, look);
    return () => {
      cancel();
    };
  }

  #hear(chunk: Buffer): void {
    this.receivedBytes += chunk.length;
    if (this.#limits.bodyIdleTimeoutMs > 0) this.#heardAt = this.#clock.now();
  }
}

function readNext(request: IncomingMessage): Buffer | null {
  return request.read() as Buffer | null;
}

function assertAlive({ ended }: Lifeline): void {
  if (ended !== undefined) throw nameEnd('body', ended);
}

/** The reply to a client that stops in the middle of its own body. */
function stalledUpload(afterMs: number): SidecarError {
  const detail = `the request body stopped coming: nothing was received for ${String(Math.round(afterMs))} ms`;
  return new SidecarError('REQUEST_TIMEOUT', detail);
}
