/**
 * Server-sent events (HTML Living Standard §9.2) to the pages that are open: a few streams, each told everything at first and then
 * what has changed. What is said is the caller's.
 */
import type { ServerResponse } from 'node:http';
import type { Cancel } from '../platform/clock.ts';
import { createProblemResponse } from './admin-response.ts';
import type { AdminResponse } from './admin-response.ts';
import type { PlotRow } from './history/history.ts';

/** Probes and scrapes must find a free connection however many pages are open. */
const MAX_STREAMS = 8;
/** Who reads so slowly that this much waits has gone, as far as anyone can tell. */
const MAX_BUFFERED_BYTES = 256 * 1024;
/** How long a browser waits before it connects anew, milliseconds. */
const RECONNECT_MS = 1000;

export interface EventStreamOptions {
  /** Calls back once a second, until cancelled. */
  readonly subscribe: (hear: (row: PlotRow) => void) => Cancel;
  /** Everything, for a page that has just come. */
  readonly createSnapshot: () => object;
  /** What is new. */
  readonly createUpdate: (row: PlotRow) => object;
}

export interface EventStreams {
  /** One more stream, or a refusal while there are too many. */
  respond(): AdminResponse;
}

/** No stream is open; while none is, nothing is read or drawn. */
export function createEventStreams({ subscribe, createSnapshot, createUpdate }: EventStreamOptions): EventStreams {
  const open = new Set<ServerResponse>();
  let unfollow: Cancel = () => undefined;
  const leave = (response: ServerResponse): void => {
    open.delete(response);
    if (open.size === 0) unfollow();
  };
  const broadcast = (row: PlotRow): void => {
    try {
      const message = formatEvent('tick', createUpdate(row));
      for (const response of open) {
        if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy();
        else response.write(message);
      }
    } catch {
      // The page says that the connection is lost, and comes again; the process that serves calls must not end for it.
      for (const response of open) response.destroy();
    }
  };
  return {
    respond() {
      if (open.size >= MAX_STREAMS)
        return createProblemResponse(503, 'TOO_MANY_STREAMS', `${MAX_STREAMS} status pages are open already.`, {
          'Retry-After': '5',
        });
      const hello = formatEvent('hello', createSnapshot());
      const stream = (response: ServerResponse): void => {
        if (response.destroyed || response.socket === null) return;
        // Between the promise and now others have come; a browser tries again by itself.
        if (open.size >= MAX_STREAMS) return void response.destroy();
        if (open.size === 0) unfollow = subscribe(broadcast);
        open.add(response);
        response.once('close', () => leave(response));
        response.write(`retry: ${RECONNECT_MS}\n\n${hello}`);
      };
      return { status: 200, headers: { 'Content-Type': 'text/event-stream' }, body: '', stream };
    },
  };
}

/** One event on the wire. JSON holds no line end, so that its data is one line. */
export function formatEvent(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
