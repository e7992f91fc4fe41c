/**
 * Streams an upstream's answer to the client through node:http. An answer that breaks off upstream breaks off for the
 * client as well: it is never ended cleanly, not even towards HTTP/1.0, where only a reset tells (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http';
import { SidecarError } from '../platform/errors.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import type { ResponseSink, BufferedResponse } from '../upstream/attempt-contract.ts';
import { rewriteResponseHeaders, findHeader, withoutContentLength } from '../upstream/headers.ts';
import { rewriteLocation } from '../upstream/location.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import { drainThenClose, markClosing } from './drain-then-close.ts';
import { withTracerHeaders } from './request-tracer.ts';

/** A first chunk that is at hand shares a packet with the head; heads that wait for their bodies go when all that is at hand has been read. */
let pendingHeads: Relay | undefined;
const SETTLED = Promise.resolve();

/** In a microtask, without what queueMicrotask makes for each. */
function flushSoon(relay: Relay): void {
  if (pendingHeads === undefined) void SETTLED.then(flushHeads);
  relay.nextHead = pendingHeads;
  pendingHeads = relay;
}

function flushHeads(): void {
  let relay = pendingHeads;
  pendingHeads = undefined;
  while (relay !== undefined) {
    relay.flush();
    // One that streams for hours must not keep the others.
    const next: Relay | undefined = relay.nextHead;
    relay.nextHead = undefined;
    relay = next;
  }
}

/** A body up to this goes out in one piece with its head: to copy it costs less than a second buffer to write. */
const JOINED_MAX_BYTES = 16 * 1024;
/** How much is read away of an upload that the upstream has answered before its end. */
const EARLY_RESPONSE_DRAIN_MAX_BYTES = 64 * 1024 * 1024;

interface UnsentHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: string[];
}

type RelayParts = Pick<ExchangeParts, 'upstream' | 'clientPath' | 'clock'>;

export class Relay implements ResponseSink {
  /** Body bytes given to the client. */
  sentBytes = 0;
  /** Whose head waits, too. */
  nextHead: Relay | undefined;
  /** What has not been given to node:http yet, and can be taken back. */
  #unsent: UnsentHead | undefined;
  #unsentBody: Buffer[] | undefined;
  /** As the upstream declared it; NaN when it did not. */
  #declaredBytes = NaN;
  #isEnded = false;
  readonly #exchange: Exchange;
  readonly #parts: RelayParts;
  readonly #response: ServerResponse;

  constructor(exchange: Exchange, parts: RelayParts) {
    this.#exchange = exchange;
    this.#parts = parts;
    this.#response = exchange.response;
  }

  begin({ status, statusText, headers: received }: UpstreamResponse): void {
    const { corsOrigin, tracer, lifetime } = this.#exchange;
    const kept = rewriteResponseHeaders(received, (value) => this.#rewriteLocation(value), corsOrigin);
    const fields = withTracerHeaders(status === 204 ? withoutContentLength(kept) : kept, tracer);
    this.#declaredBytes = Number(findHeader(fields, 'content-length') ?? NaN);
    this.#unsent = { status, statusText, headers: fields };
    lifetime.clearDeadline();
    flushSoon(this);
  }

  /** Sends what has come so far: all that was received in one piece has been parsed by now, and is valid. */
  flush(): void {
    if (this.#unsent === undefined) return;
    try {
      this.#sendHead();
      // In the encoding in which the head was read: flushHeaders would send bytes above 0x7f as UTF-8.
      if (this.sentBytes === 0) this.#response.write('', 'latin1');
    } catch (thrown) {
      // Node:http refuses to write what it was given. This ends the attempt, which takes back what could not be sent.
      const why = thrown instanceof Error ? thrown.message : 'unknown fault';
      const error = new SidecarError('UPSTREAM_PROTOCOL_ERROR', `the upstream's response cannot be forwarded: ${why}`);
      this.#exchange.lifetime.abort({ kind: 'failed', error });
    }
  }

  discardUnsent(): boolean {
    if (this.#unsent === undefined) return false;
    this.#unsent = undefined;
    this.#unsentBody = undefined;
    this.sentBytes = 0;
    return true;
  }

  write(chunk: Buffer): boolean {
    this.sentBytes += chunk.length;
    if (this.sentBytes !== this.#declaredBytes) {
      if (this.#unsent === undefined) return this.#response.write(chunk);
      (this.#unsentBody ??= []).push(chunk);
      return true;
    }
    this.#sendHead();
    if (!this.#response.req.complete) {
      this.#response.write(chunk);
      this.end();
      return true;
    }
    // The last of it. Node:http joins a head that has not gone with a text, and only with that.
    if (chunk.length <= JOINED_MAX_BYTES) this.#response.end(chunk.toString('latin1'), 'latin1');
    else this.#response.end(chunk);
    return true;
  }

  onDrain(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  end(): void {
    const response = this.#response;
    if (response.writableEnded || this.#isEnded) return;
    this.#sendHead();
    this.#isEnded = true;
    // A client that writes before it reads would meet a closed connection, and never see what it was told.
    if (response.req.complete) response.end();
    else drainThenClose(response.req, response, this.#parts.clock, EARLY_RESPONSE_DRAIN_MAX_BYTES);
  }

  cut(): void {
    // The connection that is closed now is not one that the client has left.
    const error = new SidecarError('UPSTREAM_RESET', 'the answer broke off');
    this.#exchange.lifetime.abort({ kind: 'failed', error });
    destroyWhenAttached(this.#response);
  }

  #sendHead(): void {
    const unsent = this.#unsent;
    if (unsent === undefined) return;
    const response = this.#response;
    const { status, statusText, headers } = unsent;
    // The rest of an unread upload would be parsed as the next request.
    if (!response.req.complete) {
      response.shouldKeepAlive = false;
      markClosing(response.req.socket);
    }
    if (statusText !== '') response.writeHead(status, statusText, headers);
    else response.writeHead(status, headers);
    this.#unsent = undefined;
    for (const chunk of this.#unsentBody ?? []) response.write(chunk);
    this.#unsentBody = undefined;
  }

  #rewriteLocation(location: string): string {
    const { upstream, clientPath } = this.#parts;
    return rewriteLocation(upstream.baseUrl, this.#exchange.path, location, clientPath);
  }
}

/**
 * Ends a response, and its connection, where it stands. One that is behind another of its connection waits for its turn: node:http would
 * forget the connection of a response that is destroyed without having one.
 */
export function destroyWhenAttached(response: ServerResponse): void {
  if (response.socket !== null || response.destroyed) {
    breakConnection(response);
    return;
  }
  // Node:http writes in that turn what it was given before: cut at once, the client would get an empty reply, and might send again.
  response.once('socket', () => setImmediate(breakConnection, response));
}

function breakConnection(response: ServerResponse): void {
  // Where an HTTP/1.0 body ends with its connection, only a reset tells that it is not whole (RFC 9112 §8).
  if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy();
  else response.destroy();
}

/** Gives the client an answer that was held back; one that broke off breaks off. */
export function relayBuffered({ head, body, fault }: BufferedResponse, target: Relay): void {
  target.begin(head);
  if (body.length > 0) target.write(body);
  if (fault === undefined) {
    target.end();
    return;
  }
  target.flush();
  // Node:http writes in the next turn what it was given in this one: cut at once, the client would get nothing.
  setImmediate(() => target.cut());
}
