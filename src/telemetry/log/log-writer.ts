/**
 * Where the bytes of the log go: a file descriptor, written to synchronously. What its refusals mean, and how long a destination
 * that refuses is left alone. What to do with the lines meanwhile is the sink's business.
 */
import { writeSync } from 'node:fs';

export interface LogWriter {
  /**
   * Writes what the destination takes without waiting.
   * @returns the number of bytes taken, which may be fewer than given; 0 when it takes none at the moment
   * @throws Error with Node's `code` when the destination refuses them
   */
  write(bytes: Uint8Array): number;
}

/** Standard output or standard error. */
export interface StandardStream {
  readonly fd: number;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * Writes past the stream to its descriptor. Node.js makes that non-blocking where it is a pipe or a socket, as soon as
 * `process.stdout` or `process.stderr` is touched; files do not block.
 */
export function createDescriptorWriter(stream: StandardStream): LogWriter {
  const { fd } = stream;
  // Others write through the stream itself: a reader that is gone must not end the process for that.
  stream.on('error', () => undefined);
  return { write: (bytes) => writeSync(fd, bytes) };
}

const BUSY_CODES: ReadonlySet<string> = new Set(['EAGAIN', 'EWOULDBLOCK', 'EINTR', 'ENOBUFS']);
const READER_GONE_CODES: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET', 'ENOTCONN', 'EBADF']);

/** The destination is well and takes no more at the moment. */
export function isBusy(code: string): boolean {
  return BUSY_CODES.has(code);
}

/** What was given is lost, and most likely what will be given: a named pipe alone may find another reader. */
export function isReaderGone(code: string): boolean {
  return READER_GONE_CODES.has(code);
}

export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** A pipe that is full may be empty a moment later; a disk that is full is not. */
const BUSY_BACKOFF_MS = { first: 5, longest: 250 };
const REFUSED_BACKOFF_MS = { first: 250, longest: 5000 };

/** Growing pauses between attempts that came to nothing. */
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
