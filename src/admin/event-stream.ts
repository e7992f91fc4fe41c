/**
 * Server-sent events (HTML Living Standard §9.2) to the pages that are open: a few streams, each told everything at first and then
 * what has changed. What is said is the caller's.
 */
import type { ServerResponse } from 'node:http';
import type { Cancel } from '../platform/clock.ts';
import { refuse } from './answers.ts';
import type { Answer } from './answers.ts';
import type { Row } from './history/history.ts';

/** Probes and scrapes must find a free connection however many pages are open. */
const MOST_STREAMS = 8;
/** Who reads so slowly that this much waits has gone, as far as anyone can tell. */
const MOST_WAITING_BYTES = 256 * 1024;
/** How long a browser waits before it connects anew, milliseconds. */
const RECONNECT_MS = 1000;

export interface StreamOptions {
  /** Calls back once a second, until cancelled. */
  readonly follow: (hear: (row: Row) => void) => Cancel;
  /** Everything, for a page that has just come. */
  readonly greet: () => object;
  /** What is new. */
  readonly tell: (row: Row) => object;
}

export interface EventStreams {
  /** One more stream, or a refusal while there are too many. */
  answer(): Answer;
}

/** No stream is open; while none is, nothing is read or drawn. */
export function createEventStreams({ follow, greet, tell }: StreamOptions): EventStreams {
  const open = new Set<ServerResponse>();
  let unfollow: Cancel = () => undefined;
  const leave = (response: ServerResponse): void => {
    open.delete(response);
    if (open.size === 0) unfollow();
  };
  const broadcast = (row: Row): void => {
    try {
      const message = frame('tick', tell(row));
      for (const response of open) {
        if (response.writableLength > MOST_WAITING_BYTES) response.destroy();
        else response.write(message);
      }
    } catch {
      // The page says that the connection is lost, and comes again; the process that serves calls must not end for it.
      for (const response of open) response.destroy();
    }
  };
  return {
    answer() {
      if (open.size >= MOST_STREAMS)
        return refuse(503, 'TOO_MANY_STREAMS', `${MOST_STREAMS} status pages are open already.`, {
          'Retry-After': '5',
        });
      const hello = frame('hello', greet());
      const stream = (response: ServerResponse): void => {
        if (response.destroyed || response.socket === null) return;
        // Between the promise and now others have come; a browser tries again by itself.
        if (open.size >= MOST_STREAMS) return void response.destroy();
        if (open.size === 0) unfollow = follow(broadcast);
        open.add(response);
        response.once('close', () => leave(response));
        response.write(`retry: ${RECONNECT_MS}\n\n${hello}`);
      };
      return { status: 200, headers: { 'Content-Type': 'text/event-stream' }, body: '', stream };
    },
  };
}

/** One event on the wire. JSON holds no line end, so that its data is one line. */
export function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
