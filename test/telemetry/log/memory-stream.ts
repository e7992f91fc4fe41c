/** An in-memory log destination that can be busy like a full pipe or fail like a full disk. */
import type { LogWriter } from '../../../src/telemetry/log/log-sink.ts';

export class MemoryStream implements LogWriter {
  blocked = false;
  /** Node's code of what is thrown while it is set. */
  refusal: string | undefined;
  /** Writes that took something. */
  writes = 0;
  attempts = 0;
  #text = '';

  get text(): string {
    return this.#text;
  }

  get lines(): Record<string, unknown>[] {
    return this.#text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  write(bytes: Uint8Array): number {
    this.attempts++;
    if (this.refusal !== undefined) throw Object.assign(new Error(`write ${this.refusal}`), { code: this.refusal });
    if (this.blocked) return 0;
    this.writes++;
    this.#text += Buffer.from(bytes).toString('utf8');
    return bytes.length;
  }
}
