/** Writes the bytes of the log synchronously to a file descriptor, classifies its errors, and computes the delay before a retry. */
import { writeSync } from 'node:fs';

export interface LogWriter {
  /**
   * Writes as much as the destination accepts without waiting.
   * @returns the number of bytes accepted, from 0 to all
   * @throws Error with Node's `code` when the write fails
   */
  write(bytes: Uint8Array): number;
}

export interface StandardStream {
  readonly fd: number;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * Writes to the descriptor of the stream. Node.js makes a pipe or a socket non-blocking as soon as `process.stdout` or
 * `process.stderr` is read; files do not block.
 */
export function createDescriptorWriter(stream: StandardStream): LogWriter {
  const { fd } = stream;
  // Other code writes through the stream itself: a closed pipe must not end the process.
  stream.on('error', () => undefined);
  return { write: (bytes) => writeSync(fd, bytes) };
}

const BUSY_CODES: ReadonlySet<string> = new Set(['EAGAIN', 'EWOULDBLOCK', 'EINTR', 'ENOBUFS']);
const READER_GONE_CODES: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ENOTCONN', 'EBADF']);

/** The destination works and accepts no more bytes at the moment. */
export function isBusy(code: string): boolean {
  return BUSY_CODES.has(code);
}

/** The reader has closed its end: unwritten lines are lost. Only a named pipe may get another reader. */
export function isReaderGone(code: string): boolean {
  return READER_GONE_CODES.has(code);
}

export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** A full pipe may be empty a moment later; a full disk is not. */
const BUSY_BACKOFF_MS = { first: 5, longest: 250 };
const REFUSED_BACKOFF_MS = { first: 250, longest: 5000 };

export class LogWriteBackoff {
  #lastMs = 0;

  /** Milliseconds to wait after another failed attempt. */
  nextDelayMs(isBusy: boolean): number {
    const { first, longest } = isBusy ? BUSY_BACKOFF_MS : REFUSED_BACKOFF_MS;
    return (this.#lastMs = Math.min(longest, Math.max(first, this.#lastMs * 2)));
  }

  reset(): void {
    this.#lastMs = 0;
  }
}
