/** A buffer that grows with the bytes that are appended. */

const EMPTY = Buffer.alloc(0);

/** Allocated for the second chunk, if as many bytes are expected. */
const INITIAL_CAPACITY = 64 * 1024;

/**
 * Bytes in order of arrival, in one piece of memory: at most twice their size, or 64 KiB, and at most the expected size. Nothing is
 * allocated before the first byte.
 */
export class GrowableBuffer {
  /** Read only. */
  length = 0;
  #memory: Buffer = EMPTY;
  readonly #expectedBytes: number;

  /** @param expectedBytes bytes that will come. Default: unknown */
  constructor(expectedBytes = 0) {
    this.#expectedBytes = expectedBytes;
  }

  /** The bytes so far; valid until the next `append`. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.length);
  }

  get capacity(): number {
    return this.#memory.length;
  }

  append(chunk: Buffer): void {
    const length = this.length + chunk.length;
    if (this.length === 0) {
      // Most bodies come in one chunk, which is not copied.
      this.#memory = chunk;
    } else {
      if (length > this.#memory.length) this.#grow(length);
      chunk.copy(this.#memory, this.length);
    }
    this.length = length;
  }

  clear(): void {
    this.#memory = EMPTY;
    this.length = 0;
  }

  #grow(needed: number): void {
    const doubled = Math.max(needed, 2 * this.#memory.length);
    const isExpected = needed <= this.#expectedBytes;
    const capacity = isExpected ? Math.min(this.#expectedBytes, Math.max(doubled, INITIAL_CAPACITY)) : doubled;
    const memory = Buffer.allocUnsafeSlow(capacity);
    this.#memory.copy(memory, 0, 0, this.length);
    this.#memory = memory;
  }
}
