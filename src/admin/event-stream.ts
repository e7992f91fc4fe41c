/** Server-sent events (HTML Living Standard §9.2) for open status pages: a snapshot first, then the changes. */
import type { ServerResponse } from 'node:http';
import type { Cancel } from '../platform/clock.ts';
import { createProblemResponse, type AdminResponse } from './admin-response.ts';

/** Keeps connections free for health probes and scrapes. */
const MAX_STREAMS = 8;
/** A client with more unread data than this is disconnected. */
const MAX_BUFFERED_BYTES = 256 * 1024;
const RECONNECT_MS = 1000;

export interface EventStreamOptions {
  /** Calls back once a second, until cancelled. */
  readonly subscribe: (listener: () => void) => Cancel;
  readonly createSnapshot: () => object;
  readonly createUpdate: () => object;
}

/** Subscribes only while a stream is open: nothing is rendered without one. @returns opens a stream, or responds 503 with too many */
export function createEventStreams({ subscribe, createSnapshot, createUpdate }: EventStreamOptions) {
  const open = new Set<ServerResponse>();
  let unsubscribe: Cancel = () => undefined;
  const remove = (response: ServerResponse): void => {
    open.delete(response);
    if (open.size === 0) unsubscribe();
  };
  const broadcast = (): void => {
    try {
      const message = formatEvent('tick', createUpdate());
      for (const response of open) {
        if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy();
        else response.write(message);
      }
    } catch {
      // A fault in rendering must not end the process; the pages reconnect.
      for (const response of open) response.destroy();
    }
  };
  return (): AdminResponse => {
    if (open.size >= MAX_STREAMS)
      return createProblemResponse({
        status: 503,
        code: 'TOO_MANY_STREAMS',
        detail: `${MAX_STREAMS} status pages are already open.`,
        headers: { 'Retry-After': '5' },
      });
    const hello = formatEvent('hello', createSnapshot());
    const stream = (response: ServerResponse): void => {
      if (response.destroyed || response.socket === null) return;
      // Other streams may have opened since the check above; the browser retries.
      if (open.size >= MAX_STREAMS) return void response.destroy();
      if (open.size === 0) unsubscribe = subscribe(broadcast);
      open.add(response);
      response.once('close', () => remove(response));
      response.write(`retry: ${RECONNECT_MS}\n\n${hello}`);
    };
    return { status: 200, headers: { 'Content-Type': 'text/event-stream' }, body: '', stream };
  };
}

/** One event as text. JSON has no line end, so its data is one line. */
export function formatEvent(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
