/** A destination of the log in memory, which can stop taking bytes as a blocked pipe does. */
import type { LogStream } from '../../src/telemetry/log-sink.ts';

export class MemoryStream implements LogStream {
  blocked = false;
  writes = 0;
  #text = '';
  #waiting: { chunk: Uint8Array; done: () => void }[] = [];
  #onError: ((error: Error) => void) | undefined;

  get writableLength(): number {
    return this.#waiting.reduce((sum, { chunk }) => sum + chunk.length, 0);
  }

  get text(): string {
    return this.#text;
  }

  get lines(): Record<string, unknown>[] {
    return this.#text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  write(chunk: Uint8Array, done: () => void): boolean {
    this.writes++;
    this.#waiting.push({ chunk, done });
    if (!this.blocked) this.unblock();
    return !this.blocked;
  }

  on(_event: 'error', listener: (error: Error) => void): this {
    this.#onError = listener;
    return this;
  }

  unblock(): void {
    this.blocked = false;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#text += Buffer.from(next.chunk).toString('utf8');
      next.done();
    }
  }

  fail(error: Error): void {
    this.#onError?.(error);
  }
}
