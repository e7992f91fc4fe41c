const NOTHING = Buffer.alloc(0);

/**
 * Bytes in order of arrival, in one piece of memory: of the size that was announced, and otherwise at most twice their own, however
 * small the pieces were that came.
 */
export class ByteStore {
  #memory: Buffer = NOTHING;
  #length = 0;
  readonly #announced: number;

  /** @param announced bytes that will come. Default: nobody knows */
  constructor(announced = 0) {
    this.#announced = announced;
  }

  /** The bytes so far; valid until the next `add`. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  add(chunk: Buffer): void {
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
    this.#memory = NOTHING;
    this.#length = 0;
  }

  #grow(needed: number): void {
    const memory = Buffer.allocUnsafeSlow(
      needed <= this.#announced ? this.#announced : Math.max(needed, 2 * this.#memory.length),
    );
    this.#memory.copy(memory, 0, 0, this.#length);
    this.#memory = memory;
  }
}
