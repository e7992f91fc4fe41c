const EMPTY = Buffer.alloc(0);

/** The first piece of memory for bytes that come in several pieces, if so many are announced. */
const INITIAL_CAPACITY = 64 * 1024;

/**
 * Bytes in order of arrival, in one piece of memory: at most twice their own size, or 64 KiB, and at most the announced size, however
 * small the pieces were that came. An announcement alone takes no memory.
 */
export class GrowableBuffer {
  #memory: Buffer = EMPTY;
  #length = 0;
  readonly #expectedBytes: number;

  /** @param announced bytes that will come. Default: nobody knows */
  constructor(announced = 0) {
    this.#expectedBytes = announced;
  }

  /** The bytes so far; valid until the next `add`. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  /** Bytes of memory that it takes. */
  get capacity(): number {
    return this.#memory.length;
  }

  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#length === 0) {
      // Most bodies come in one piece, which is kept as it is.
      this.#memory = chunk;
    } else {
      if (length > this.#memory.length) this.#grow(length);
      chunk.copy(this.#memory, this.#length);
    }
    this.#length = length;
  }

  clear(): void {
    this.#memory = EMPTY;
    this.#length = 0;
  }

  #grow(needed: number): void {
    const doubled = Math.max(needed, 2 * this.#memory.length);
    const announced = Math.max(doubled, INITIAL_CAPACITY);
    const memory = Buffer.allocUnsafeSlow(
      needed <= this.#expectedBytes ? Math.min(this.#expectedBytes, announced) : doubled,
    );
    this.#memory.copy(memory, 0, 0, this.#length);
    this.#memory = memory;
  }
}
