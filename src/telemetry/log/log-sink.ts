/**
 * Writes log lines to a destination that may be slow, full or closed: in batches, at most 1 MiB buffered; lines that do not fit are
 * dropped and counted. Writing resumes when the destination accepts bytes again.
 * Writes are synchronous, so that the number of accepted bytes is exact: no line is torn, repeated or counted wrongly. Not
 * pino.destination: its write occupies a thread of the pool and keeps process.exit from ending.
 */
import { writeSync } from 'node:fs';
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { LogDeliveryProblem } from '../events.ts';

/** A batch is written when it has this many characters ... */
const BATCH_CHARS = 16_384;
/** ... or this long after the first of them. */
const BATCH_DELAY_MS = 250;
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** UTF-8 bytes per UTF-16 code unit, at most. */
const MAX_BYTES_PER_CHAR = 3;
/** Room for a batch of any characters and the line that filled it. */
const ENCODE_BUFFER_BYTES = (BATCH_CHARS + 4096) * MAX_BYTES_PER_CHAR;
const DROP_NOTICE_INTERVAL_MS = 5000;
const LINE_FEED = 10;
const NO_BYTES = new Uint8Array();
/** The destination works and accepts no more bytes at the moment. */
const BUSY_CODES: ReadonlySet<string> = new Set(['EAGAIN', 'EWOULDBLOCK', 'EINTR', 'ENOBUFS']);
/** The reader has closed its end: unwritten lines are lost. Only a named pipe may get another reader. */
const READER_GONE_CODES: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ENOTCONN', 'EBADF']);
/** A full pipe may be empty a moment later; a full disk is not. */
const BUSY_BACKOFF_MS = { first: 5, longest: 250 };
const REFUSED_BACKOFF_MS = { first: 250, longest: 5000 };

export interface LogWriter {
  /** Does not wait. @returns the number of bytes accepted, from 0 to all @throws Error with Node's `code` */
  write(bytes: Uint8Array): number;
}

export interface StandardStream {
  readonly fd: number;
  on(event: 'error', listener: () => void): unknown;
}

/** Node.js makes a pipe or a socket non-blocking as soon as `process.stdout` or `process.stderr` is read; files do not block. */
export function createDescriptorWriter(stream: StandardStream): LogWriter {
  const { fd } = stream;
  // Other code writes through the stream itself: a closed pipe must not end the process.
  stream.on('error', () => undefined);
  return { write: (bytes) => writeSync(fd, bytes) };
}

export interface LogSinkOptions {
  readonly writer: LogWriter;
  readonly redact?: (lines: string) => string;
  readonly clock: Clock;
  /** Called when lines are accepted again after an error or drops, at most every 5 s. `lostLines` may be 0 after an error. */
  readonly onRecovered: (problem: LogDeliveryProblem) => void;
}

/** A bounded buffer in front of one destination. Never throws; never waits for the destination. */
export class LogSink {
  readonly #options: LogSinkOptions;
  /** The wait before the last retry; 0 after a success. */
  #backoffMs = 0;
  #currentBatch = '';
  /** Redacted batches behind the one that is being written. */
  readonly #batches: string[] = [];
  #batchedChars = 0;
  /** The unwritten part of the current batch; within `#encodeBuffer` if the batch fits there. */
  #rest: Uint8Array = NO_BYTES;
  /** The rest begins within a line whose beginning has been written. */
  #isWithinLine = false;
  /** Reused for every batch: a buffer per batch adds up to 17 MB before V8 collects them. */
  readonly #encodeBuffer = Buffer.allocUnsafeSlow(ENCODE_BUFFER_BYTES);
  #cancelFlush: Cancel | undefined;
  #cancelRetry: Cancel | undefined;
  #cancelNotice: Cancel | undefined;
  #closing: Promise<void> | undefined;
  #onDone: (() => void) | undefined;
  #errorCode: string | undefined;
  /** The code of an error that has ended and is not reported yet. */
  #unreportedCode: string | undefined;
  /** Lines dropped since the start: every line that does not reach the destination as a whole. Read only. */
  droppedLines = 0;
  #reportedDrops = 0;
  #noticeAt = -Infinity;

  constructor(options: LogSinkOptions) {
    this.#options = options;
  }

  get deliveryProblem(): LogDeliveryProblem | undefined {
    const lostLines = this.droppedLines - this.#reportedDrops;
    if (this.#errorCode === undefined && (lostLines === 0 || !this.#hasUnwritten())) return undefined;
    return { code: this.#errorCode, lostLines };
  }

  /** Takes a line with its line end, or drops it when 1 MiB is unwritten. */
  write(line: string): void {
    if (this.#closing !== undefined || this.#bufferedBytes + line.length > MAX_BUFFERED_BYTES) {
      this.droppedLines++;
      return;
    }
    this.#currentBatch += line;
    if (this.#currentBatch.length >= BATCH_CHARS) this.flush();
    else this.#cancelFlush ??= this.#options.clock.after(BATCH_DELAY_MS, () => this.flush());
  }

  flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#currentBatch !== '') {
      const { redact } = this.#options;
      const batch = redact === undefined ? this.#currentBatch : redact(this.#currentBatch);
      this.#currentBatch = '';
      this.#batches.push(batch);
      this.#batchedChars += batch.length;
    }
    if (this.#cancelRetry === undefined) this.#drain();
  }

  /** Resolves when all is written, the destination fails, or after `timeoutMs`; the remaining and all later lines are dropped and counted. */
  close(timeoutMs: number): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#noticeAt = -Infinity;
    this.#reportRecovery();
    this.#stopTimers();
    this.flush();
    // Writes the recovery notice, too.
    this.flush();
    return (this.#closing = this.#untilEmpty(timeoutMs));
  }

  #untilEmpty(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        cancel();
        this.#stopTimers();
        this.#dropUnwritten(NO_BYTES);
        resolve();
      };
      const cancel = this.#options.clock.after(timeoutMs, finish);
      if (!this.#hasUnwritten() || this.#errorCode !== undefined) finish();
      else this.#onDone = finish;
    });
  }

  #stopTimers(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#cancelNotice?.();
    this.#cancelNotice = undefined;
  }

  #drain(): void {
    if (!this.#hasUnwritten()) return;
    try {
      while (this.#rest.length > 0 || this.#encodeNext()) if (!this.#writeRest()) break;
    } catch (error) {
      this.#onWriteError(error instanceof Error && 'code' in error ? String(error.code) : 'unknown');
    }
    this.#reportRecovery();
    if (!this.#hasUnwritten() || this.#errorCode !== undefined) this.#onDone?.();
  }

  /** @returns whether bytes were accepted */
  #writeRest(): boolean {
    const written = this.#options.writer.write(this.#rest);
    if (written === 0) {
      this.#retryLater(BUSY_BACKOFF_MS);
      return false;
    }
    this.#isWithinLine = this.#rest[written - 1] !== LINE_FEED;
    this.#rest = this.#rest.subarray(written);
    this.#backoffMs = 0;
    this.#unreportedCode ??= this.#errorCode;
    this.#errorCode = undefined;
    return true;
  }

  #encodeNext(): boolean {
    const batch = this.#batches.shift();
    if (batch === undefined) return false;
    this.#batchedChars -= batch.length;
    const isShort = batch.length * MAX_BYTES_PER_CHAR <= this.#encodeBuffer.length;
    this.#rest = isShort
      ? this.#encodeBuffer.subarray(0, this.#encodeBuffer.write(batch, 'utf8'))
      : Buffer.from(batch, 'utf8');
    return true;
  }

  #onWriteError(code: string): void {
    const isBusy = BUSY_CODES.has(code);
    if (!isBusy) this.#errorCode = code;
    if (READER_GONE_CODES.has(code)) this.#dropUnwritten(this.#unfinishedLine());
    this.#retryLater(isBusy ? BUSY_BACKOFF_MS : REFUSED_BACKOFF_MS);
  }

  #retryLater({ first, longest }: typeof BUSY_BACKOFF_MS): void {
    this.#backoffMs = Math.min(longest, Math.max(first, this.#backoffMs * 2));
    this.#cancelRetry = this.#options.clock.after(this.#backoffMs, () => {
      this.#cancelRetry = undefined;
      this.#drain();
    });
  }

  #unfinishedLine(): Uint8Array {
    return this.#isWithinLine ? this.#rest.subarray(0, this.#rest.indexOf(LINE_FEED) + 1) : NO_BYTES;
  }

  #dropUnwritten(keep: Uint8Array): void {
    this.droppedLines += countLines(this.#rest) - countLines(keep);
    for (const batch of this.#batches) this.droppedLines += batch.split('\n').length - 1;
    this.#rest = keep;
    this.#batches.length = this.#batchedChars = 0;
  }

  #reportRecovery(): void {
    const lostLines = this.droppedLines - this.#reportedDrops;
    const code = this.#unreportedCode;
    if (this.#closing !== undefined || this.#errorCode !== undefined || (lostLines === 0 && code === undefined)) return;
    // The notice must not be dropped itself.
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES / 2) return;
    const delayMs = this.#noticeAt - this.#options.clock.now();
    if (delayMs > 0) {
      this.#cancelNotice ??= this.#options.clock.after(delayMs, () => {
        this.#cancelNotice = undefined;
        this.#reportRecovery();
      });
      return;
    }
    this.#reportedDrops = this.droppedLines;
    this.#unreportedCode = undefined;
    this.#noticeAt = this.#options.clock.now() + DROP_NOTICE_INTERVAL_MS;
    this.#options.onRecovered({ code, lostLines });
  }

  #hasUnwritten(): boolean {
    return this.#rest.length > 0 || this.#batches.length > 0;
  }

  get #bufferedBytes(): number {
    return this.#rest.length + this.#batchedChars + this.#currentBatch.length;
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines++;
  return lines;
}
