/**
 * Carries log lines to a destination that may be slow, full or gone: gathers them into batches, holds at most 1 MiB, drops and
 * counts what does not fit, and goes on by itself when bytes are taken again. What a line says is the log's business.
 * Writing is synchronous, so that it is known to the byte what the destination has taken: no line is torn, repeated or
 * counted wrongly. Not pino.destination: its write occupies a thread of the pool and keeps process.exit from ending.
 */
import type { Cancel, Clock } from '../../platform/clock.ts';
import type { LogDeliveryProblem } from '../events.ts';
import { LogWriteBackoff, errorCodeOf, isBusy, isReaderGone, type LogWriter } from './log-writer.ts';

/** Lines are handed on when this many characters have gathered ... */
const BATCH_CHARS = 16_384;
/** ... or this long after the first of them. */
const BATCH_DELAY_MS = 250;
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** The most that UTF-8 needs for a UTF-16 code unit. */
const MAX_BYTES_PER_CHAR = 3;
/** Room for a batch of whatever characters, and for the line that filled it. */
const ENCODE_BUFFER_BYTES = (BATCH_CHARS + 4096) * MAX_BYTES_PER_CHAR;
const DROP_NOTICE_INTERVAL_MS = 5000;
const LINE_FEED = 10;
const NO_BYTES = new Uint8Array();

export interface LogSinkOptions {
  readonly writer: LogWriter;
  /** Last transformation of complete lines; must keep their number. Default: none. */
  readonly redact?: (lines: string) => string;
  readonly clock: Clock;
  /**
   * Called when the destination takes lines again after it has refused some, or after lines were dropped; at most every 5 s.
   * @param trouble what is over; `lostLines` may be 0 after a refusal
   */
  readonly onRecovered: (trouble: LogDeliveryProblem) => void;
}

/** A bounded way to one destination. Never throws, never blocks on its own account. */
export class LogSink {
  readonly #writer: LogWriter;
  readonly #redact: (lines: string) => string;
  readonly #clock: Clock;
  readonly #onRecovered: (trouble: LogDeliveryProblem) => void;
  readonly #backoff = new LogWriteBackoff();
  #gathered = '';
  /** Redacted batches that wait behind the one that is being written. */
  readonly #batches: string[] = [];
  #batchedChars = 0;
  /** What the destination has yet to take of the batch that is being written; lies in `#spare` if that was long enough. */
  #rest: Uint8Array = NO_BYTES;
  /** The rest begins with the end of a line whose beginning was taken. */
  #isMidLine = false;
  /** Batch after batch is encoded into it. Buffers of their own add up to 17 MB before V8 collects them. */
  readonly #spare = Buffer.allocUnsafeSlow(ENCODE_BUFFER_BYTES);
  #cancelFlush: Cancel | undefined;
  #cancelRetry: Cancel | undefined;
  #cancelNotice: Cancel | undefined;
  #closing: Promise<void> | undefined;
  #onDone: (() => void) | undefined;
  /** The code of the last refusal, until bytes are taken again. */
  #refusal: string | undefined;
  /** A refusal that has ended and is not reported yet. */
  #pastRefusal: string | undefined;
  #dropped = 0;
  #reportedDrops = 0;
  #noticeAt = -Infinity;

  constructor({ writer, redact = (lines) => lines, clock, onRecovered }: LogSinkOptions) {
    this.#writer = writer;
    this.#redact = redact;
    this.#clock = clock;
    this.#onRecovered = onRecovered;
  }

  /** Lines dropped since the start: each line given that will not reach the destination as a whole, once. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** Undefined when lines reach their destination. */
  get deliveryProblem(): LogDeliveryProblem | undefined {
    const lostLines = this.#dropped - this.#reportedDrops;
    if (this.#refusal === undefined && (lostLines === 0 || !this.#hasWaiting())) return undefined;
    return { code: this.#refusal, lostLines };
  }

  /** Takes a line with its line end. Past 1 MiB unwritten the line is dropped. */
  write(line: string): void {
    if (this.#closing !== undefined || this.#bufferedBytes + line.length > MAX_BUFFERED_BYTES) {
      this.#dropped++;
      return;
    }
    this.#gathered += line;
    if (this.#gathered.length >= BATCH_CHARS) this.flush();
    else this.#cancelFlush ??= this.#clock.after(BATCH_DELAY_MS, () => this.flush());
  }

  /** Hands on what has gathered, unless the destination is given time at the moment. */
  flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#gathered !== '') {
      const batch = this.#redact(this.#gathered);
      this.#gathered = '';
      this.#batches.push(batch);
      this.#batchedChars += batch.length;
    }
    if (this.#cancelRetry === undefined) this.#drain();
  }

  /**
   * Takes no more lines; resolves when all are written, at once when the destination refuses them, or after `timeoutMs`; what is
   * left then is dropped and counted. Further calls give the same promise.
   */
  close(timeoutMs: number): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#noticeAt = -Infinity;
    this.#reportRecovery();
    this.#stopTimers();
    this.flush();
    // Includes the notice that was logged just now.
    this.flush();
    return (this.#closing = this.#emptied(timeoutMs));
  }

  #emptied(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#stopTimers();
        this.#dropWaiting(NO_BYTES);
        resolve();
      };
      const cancel = this.#clock.after(timeoutMs, end);
      if (!this.#hasWaiting() || this.#refusal !== undefined) end();
      else this.#onDone = end;
    });
  }

  #stopTimers(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#cancelNotice?.();
    this.#cancelNotice = undefined;
  }

  #drain(): void {
    if (!this.#hasWaiting()) return;
    try {
      while (this.#rest.length > 0 || this.#encodeNext()) if (!this.#writeRest()) break;
    } catch (error) {
      this.#onRefused(errorCodeOf(error));
    }
    this.#reportRecovery();
    if (!this.#hasWaiting() || this.#refusal !== undefined) this.#onDone?.();
  }

  /** @returns whether anything was taken */
  #writeRest(): boolean {
    const taken = this.#writer.write(this.#rest);
    if (taken === 0) {
      this.#retryAfter(this.#backoff.nextDelayMs(true));
      return false;
    }
    this.#isMidLine = this.#rest[taken - 1] !== LINE_FEED;
    this.#rest = this.#rest.subarray(taken);
    this.#backoff.reset();
    this.#pastRefusal ??= this.#refusal;
    this.#refusal = undefined;
    return true;
  }

  #encodeNext(): boolean {
    const batch = this.#batches.shift();
    if (batch === undefined) return false;
    this.#batchedChars -= batch.length;
    const isShort = batch.length * MAX_BYTES_PER_CHAR <= this.#spare.length;
    this.#rest = isShort ? this.#spare.subarray(0, this.#spare.write(batch, 'utf8')) : Buffer.from(batch, 'utf8');
    return true;
  }

  #onRefused(code: string): void {
    const busy = isBusy(code);
    if (!busy) this.#refusal = code;
    if (isReaderGone(code)) this.#dropWaiting(this.#tornEnd());
    this.#retryAfter(this.#backoff.nextDelayMs(busy));
  }

  #retryAfter(delayMs: number): void {
    this.#cancelRetry = this.#clock.after(delayMs, () => {
      this.#cancelRetry = undefined;
      this.#drain();
    });
  }

  /** The line whose beginning was written: its end must be written next. */
  #tornEnd(): Uint8Array {
    return this.#isMidLine ? this.#rest.subarray(0, this.#rest.indexOf(LINE_FEED) + 1) : NO_BYTES;
  }

  #dropWaiting(keep: Uint8Array): void {
    this.#dropped += countLines(this.#rest) - countLines(keep);
    for (const batch of this.#batches) this.#dropped += batch.split('\n').length - 1;
    this.#rest = keep;
    this.#batches.length = this.#batchedChars = 0;
  }

  #reportRecovery(): void {
    const lostLines = this.#dropped - this.#reportedDrops;
    const code = this.#pastRefusal;
    if (this.#closing !== undefined || this.#refusal !== undefined || (lostLines === 0 && code === undefined)) return;
    // The notice must not be dropped itself.
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES / 2) return;
    const leftMs = this.#noticeAt - this.#clock.now();
    if (leftMs > 0) {
      this.#cancelNotice ??= this.#clock.after(leftMs, () => {
        this.#cancelNotice = undefined;
        this.#reportRecovery();
      });
      return;
    }
    this.#reportedDrops = this.#dropped;
    this.#pastRefusal = undefined;
    this.#noticeAt = this.#clock.now() + DROP_NOTICE_INTERVAL_MS;
    this.#onRecovered({ code, lostLines });
  }

  #hasWaiting(): boolean {
    return this.#rest.length > 0 || this.#batches.length > 0;
  }

  get #bufferedBytes(): number {
    return this.#rest.length + this.#batchedChars + this.#gathered.length;
  }
}

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines++;
  return lines;
}
