/**
 * Stops the reading of a client's connection, and the parsing of what has been read. node:http resumes a paused connection by itself, and
 * makes a request of everything in a packet; the fields that prevent both are undocumented: see test/peers/connection-reading.test.ts.
 */
import type { Duplex } from 'node:stream';

type HttpConnection = Duplex & {
  /** While it is set, node:http does not resume the connection at the end of a message. */
  _paused?: boolean;
  readonly parser?: {
    /** Called with each request head. A negative result is an error of the parser. */
    onIncoming?: ((...head: never) => number) | null;
    /** node:http pauses the parser of a paused connection as well. */
    readonly resume?: () => void;
  } | null;
};

/** Reads nothing more until `resumeReading`, or until node:http has sent a response that waited behind another one. */
export function pauseReading(connection: HttpConnection): void {
  connection._paused = true;
  connection.pause();
}

export function resumeReading(connection: HttpConnection): void {
  // Before: node:http asserts that a connection with data is not paused.
  connection._paused = false;
  connection.parser?.resume?.();
  connection.resume();
}

/** To be called within a request event: everything that follows the request, also in its packet, is invalid input (`clientError`). */
export function stopParsing(connection: HttpConnection): void {
  const { parser } = connection;
  if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => -1;
  // Another Node.js: without its connection it makes no further request.
  else connection.destroy();
}
