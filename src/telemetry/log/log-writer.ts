/** Writes the bytes of the log synchronously to a file descriptor. */
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

/** Node.js makes a pipe or a socket non-blocking as soon as `process.stdout` or `process.stderr` is read; files do not block. */
export function createDescriptorWriter(stream: StandardStream): LogWriter {
  const { fd } = stream;
  // Other code writes through the stream itself: a closed pipe must not end the process.
  stream.on('error', () => undefined);
  return { write: (bytes) => writeSync(fd, bytes) };
}
