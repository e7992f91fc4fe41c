/**
 * The way of log lines to a stream that may be slow or never read: gathered into batches, bounded in memory, dropped and
 * counted past the bound. What a line says is the log's business.
 * Not pino.destination: its write occupies a thread of the pool, and with a pipe that nobody reads that thread keeps
 * process.exit from ending. A pipe opened by process.stdout does not block.
 */
import type { Cancel, Clock } from '../clock.ts';

/** Lines are handed on when this many characters have gathered ... */
const BATCH_CHARS = 16_384;
/** ... or this long after the first of them. */
const GATHER_MS = 250;
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** The most that UTF-8 needs for a UTF-16 code unit. */
const BYTES_A_CHAR = 3;
/** Room for a batch of whatever characters, and for the line that filled it. */
const SPARE_BYTES = (BATCH_CHARS + 4096) * BYTES_A_CHAR;
const DROP_NOTICE_EVERY_MS = 5000;

/** The part of a Node writable stream that is used. */
export interface LogStream {
  /** @param done has to be called when the chunk is not read any more: what is in it changes then */
  write(chunk: Uint8Array, done: () => void): boolean;
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Bytes accepted and not yet passed on. */
  readonly writableLength: number;
}

export interface LogSinkOptions {
  readonly stream: LogStream;
  /** Has the last look at whole lines. Default: nobody. */
  readonly redact?: (lines: string) => string;
  readonly clock: Clock;
  /** Told how many lines were dropped since the last time, when there is room to say so; at most every 5 s. */
  readonly onDropped: (lines: number) => void;
}

/** A bounded way to one stream. An error of the stream (a closed pipe) drops every later line. */
export class LogSink {
  readonly #stream: LogStream;
  readonly #redact: (lines: string) => string;
  readonly #clock: Clock;
  readonly #onDropped: (lines: number) => void;
  #gathered = '';
  /** Batch after batch is encoded into it; undefined while the stream reads it. Buffers of their own add up to 17 MB before V8 collects them. */
  #spare: Buffer | undefined = Buffer.allocUnsafeSlow(SPARE_BYTES);
  #cancelFlush: Cancel | undefined;
  #broken = false;
  #closing: Promise<void> | undefined;
  #dropped = 0;
  #dropsTold = 0;
  #tellDropsAt = -Infinity;

  constructor({ stream, redact = (lines) => lines, clock, onDropped }: LogSinkOptions) {
    this.#stream = stream;
    this.#redact = redact;
    this.#clock = clock;
    this.#onDropped = onDropped;
    stream.on('error', () => {
      this.#broken = true;
    });
  }

  /** Lines dropped since the start. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** Takes a line with its line end; never blocks, never throws. Past 1 MiB unwritten the line is dropped. */
  write(line: string): void {
    if (this.#broken || this.#closing !== undefined || this.#bufferedBytes + line.length > MAX_BUFFERED_BYTES) {
      this.#dropped++;
      return;
    }
    this.#gathered += line;
    if (this.#gathered.length >= BATCH_CHARS) this.flush();
    else this.#cancelFlush ??= this.#clock.after(GATHER_MS, () => this.flush());
  }

  /** Hands on what has gathered. */
  flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#gathered === '' || this.#broken) return;
    const batch = this.#redact(this.#gathered);
    this.#gathered = '';
    this.#send(batch);
  }

  #send(batch: string): void {
    const spare = this.#spare;
    if (spare === undefined || batch.length * BYTES_A_CHAR > spare.length) {
      this.#stream.write(Buffer.from(batch, 'utf8'), () => this.#tellDrops());
      return;
    }
    this.#spare = undefined;
    this.#stream.write(spare.subarray(0, spare.write(batch, 'utf8')), () => {
      this.#spare = spare;
      this.#tellDrops();
    });
  }

  /** Takes no more lines; resolves when all are written, or after `timeoutMs`. Further calls give the same promise. */
  close(timeoutMs: number): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#tellDropsAt = -Infinity;
    this.#tellDrops();
    this.flush();
    return (this.#closing = this.#broken ? Promise.resolve() : this.#written(timeoutMs));
  }

  #written(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(timeoutMs, resolve);
      // Callbacks come in the order of writes: this one means that all before it have left.
      this.#stream.write(new Uint8Array(), () => {
        cancel();
        resolve();
      });
    });
  }

  #tellDrops(): void {
    if (this.#dropped === this.#dropsTold || this.#closing !== undefined) return;
    // The notice must not be dropped itself, nor be repeated for every small gap.
    if (this.#broken || this.#bufferedBytes > MAX_BUFFERED_BYTES / 2 || this.#clock.now() < this.#tellDropsAt) return;
    const lines = this.#dropped - this.#dropsTold;
    this.#dropsTold = this.#dropped;
    this.#tellDropsAt = this.#clock.now() + DROP_NOTICE_EVERY_MS;
    this.#onDropped(lines);
  }

  get #bufferedBytes(): number {
    return this.#stream.writableLength + this.#gathered.length;
  }
}
