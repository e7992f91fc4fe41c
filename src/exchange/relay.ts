/**
 * Sends an upstream's response to the client through node:http: streams it, or holds it until it is known that no better one comes.
 * A response that breaks off upstream breaks off for the client as well, also with HTTP/1.0, where only a reset shows it (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http';
import { SidecarError } from '../platform/errors.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import type { AttemptResult, ResponseSink } from '../upstream/attempt-contract.ts';
import type { ClientView } from '../upstream/client-view.ts';
import { rewriteResponseHeaders, withoutContentLength } from '../upstream/headers.ts';
import { describeClientView } from './client-view.ts';
import { drainThenClose, markClosing } from './drain-then-close.ts';
import type { Exchange, ExchangeParts, RequestOutcome } from './exchange.ts';

/** Linked. A head waits until all that was received with it has been parsed, to share a packet with its first chunk. */
let pendingHeads: Relay | undefined;
const SETTLED = Promise.resolve();

/** In a microtask, without the allocations of queueMicrotask. */
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
    // A response that streams for hours must not keep the others in memory.
    const next: Relay | undefined = relay.nextHead;
    relay.nextHead = undefined;
    relay = next;
  }
}

/** A smaller body is written together with its head: a copy costs less than a second write. */
const JOINED_MAX_BYTES = 16 * 1024;
/** How much of an upload is discarded after a response that came before its end. */
const EARLY_RESPONSE_DRAIN_MAX_BYTES = 64 * 1024 * 1024;

interface UnsentHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: string[];
}

type HeldResult = Extract<AttemptResult, { kind: 'held' }>;
type RelayParts = Pick<ExchangeParts, 'upstream' | 'clientPath' | 'cookieRoot' | 'clock' | 'memory'>;

export class Relay implements ResponseSink {
  /** Body bytes given to the client. */
  sentBytes = 0;
  /** The next of `pendingHeads`. */
  nextHead: Relay | undefined;
  /** Not given to node:http yet: can be dropped. */
  #unsent: UnsentHead | undefined;
  #unsentBody: Buffer[] | undefined;
  /** As the upstream declared it; NaN when it did not. */
  #declaredBytes = NaN;
  #isEnded = false;
  readonly #exchange: Exchange;
  readonly #parts: RelayParts;
  readonly #response: ServerResponse;
  /** Its body counts as replay memory. */
  #held: HeldResult | undefined;

  constructor(parts: RelayParts, exchange: Exchange) {
    this.#exchange = exchange;
    this.#parts = parts;
    this.#response = exchange.response;
  }

  begin({ status, statusText, headers: received, contentLength }: UpstreamResponse): void {
    const { corsOrigin, tracer, lifetime } = this.#exchange;
    // An earlier response is outdated.
    if (this.#held !== undefined) this.discardHeld();
    const endToEnd = rewriteResponseHeaders(received, this.#describeView, corsOrigin);
    const headers = status === 204 ? withoutContentLength(endToEnd) : endToEnd;
    if (tracer !== undefined) headers.push(...tracer.responseHeaders());
    this.#declaredBytes = Number(contentLength ?? NaN);
    this.#unsent = { status, statusText, headers };
    lifetime.clearDeadline();
    flushSoon(this);
  }

  /** Sends what has come so far: all that was received together has been parsed. */
  flush(): void {
    if (this.#unsent === undefined) return;
    try {
      this.#sendHead();
      // In the encoding in which the head was read: flushHeaders would send bytes above 0x7f as UTF-8.
      if (this.sentBytes === 0) this.#response.write('', 'latin1');
    } catch (thrown) {
      // Node:http refuses the head. This ends the attempt, which drops what could not be sent.
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
    // A client that writes before it reads would find a closed connection, and never read the response.
    if (response.req.complete) response.end();
    else drainThenClose(response.req, response, this.#parts.clock, EARLY_RESPONSE_DRAIN_MAX_BYTES);
  }

  cut(): void {
    // Marks the connection as closed by the sidecar, not by the client.
    const error = new SidecarError('UPSTREAM_RESET', 'the response broke off');
    this.#exchange.lifetime.abort({ kind: 'failed', error });
    destroyWhenAttached(this.#response);
  }

  /** Keeps a response in place of an earlier one. */
  hold(result: HeldResult): void {
    this.discardHeld();
    this.#parts.memory.forceTake(result.body.length);
    this.#held = result;
  }

  /** Drops the held response, if there is one. */
  discardHeld(): void {
    if (this.#held !== undefined) this.#parts.memory.giveBack(this.#held.body.length);
    this.#held = undefined;
  }

  /** Sends the held response as far as it came; undefined when there is none. */
  sendHeld(): RequestOutcome | undefined {
    const held = this.#held;
    if (held === undefined) return undefined;
    const { head, body, fault } = held;
    this.begin(head);
    if (body.length > 0) this.write(body);
    if (fault === undefined) {
      this.end();
    } else {
      this.flush();
      // Node:http writes in the next turn what it gets in this one: cut at once, the client would get nothing.
      setImmediate(() => this.cut());
    }
    return { kind: 'relayed', status: head.status, fault };
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

  readonly #describeView = (): ClientView => describeClientView(this.#parts, this.#exchange);
}

/**
 * Breaks off a response, and its connection. A pipelined one waits until it has the connection: node:http would lose the connection of a
 * response that is destroyed before.
 */
export function destroyWhenAttached(response: ServerResponse): void {
  if (response.socket !== null || response.destroyed) {
    breakConnection(response);
    return;
  }
  // Node:http writes in that turn what it got before: cut at once, the client would get an empty reply, and might retry.
  response.once('socket', () => setImmediate(breakConnection, response));
}

function breakConnection(response: ServerResponse): void {
  // Where an HTTP/1.0 body ends with its connection, only a reset shows that it is not whole (RFC 9112 §8).
  if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy();
  else response.destroy();
}
