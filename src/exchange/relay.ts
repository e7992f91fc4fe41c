/**
 * Sends an upstream's response to the client through node:http: streams it, or holds it until it is known that no better one comes.
 * A response that breaks off upstream breaks off for the client as well: connection-end.ts.
 */
import type { ServerResponse } from 'node:http';
import { SidecarError } from '../platform/errors.ts';
import { GrowableBuffer } from '../platform/growable-buffer.ts';
import type { ClientView } from '../upstream/client-view.ts';
import { rewriteResponseHeaders, withoutContentLength } from '../upstream/headers.ts';
import type { AttemptResult, ResponseSink } from '../upstream/response-receiver.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import type { Permit, ResponseClient } from '../throttle/throttle.ts';
import { breakOff, closingSockets, drainThenClose } from './connection-end.ts';
import type { Exchange, RouteContext, RequestOutcome } from './exchange.ts';

/** Linked. A head or a small chunk waits until all that was received with it has been parsed, to share a packet and a write. */
let pendingRelays: Relay | undefined;
const SETTLED = Promise.resolve();

/** In a microtask, without the allocations of queueMicrotask. */
function flushSoon(relay: Relay): void {
  if (relay.isPending) return;
  relay.isPending = true;
  if (pendingRelays === undefined) void SETTLED.then(flushRelays);
  relay.nextPending = pendingRelays;
  pendingRelays = relay;
}

function flushRelays(): void {
  let relay = pendingRelays;
  pendingRelays = undefined;
  while (relay !== undefined) {
    relay.isPending = false;
    relay.flush();
    // A response that streams for hours must not keep the others in memory.
    const next: Relay | undefined = relay.nextPending;
    relay.nextPending = undefined;
    relay = next;
  }
}

/** A smaller body is written together with its head, and smaller chunks are joined: a copy costs less than a second write. */
const JOINED_MAX_BYTES = 16 * 1024;
const EARLY_RESPONSE_DRAIN_MAX_BYTES = 64 * 1024 * 1024;

type HeldResult = Extract<AttemptResult, { kind: 'held' }>;

export class Relay implements ResponseSink, ResponseClient {
  sentBytes = 0;
  /** Belongs to the attempt whose response is relayed. */
  permit: Permit | undefined;
  isPending = false;
  nextPending: Relay | undefined;
  /** Not given to node:http yet: can be dropped. */
  #unsent: Pick<UpstreamResponse, 'status' | 'statusText' | 'headers'> | undefined;
  /** Small chunks, and all that came with an unsent head. For node:http each of them would be several objects and writes. */
  #joined: GrowableBuffer | undefined;
  #isAwaitingWrite = false;
  /** As the upstream declared it; NaN when it did not. */
  #declaredBytes = NaN;
  #isEnded = false;
  readonly #exchange: Exchange;
  readonly #routeContext: RouteContext;
  readonly #response: ServerResponse;
  /** The body of a held response counts as replay memory. */
  #held: HeldResult | undefined;

  constructor(routeContext: RouteContext, exchange: Exchange) {
    this.#exchange = exchange;
    this.#routeContext = routeContext;
    this.#response = exchange.response;
  }

  begin({ status, statusText, headers: received, isRewritten, contentLength }: UpstreamResponse): void {
    const { corsOrigin, lifetime } = this.#exchange;
    // An earlier response is outdated.
    if (this.#held !== undefined) this.discardHeld();
    const endToEnd =
      isRewritten || corsOrigin !== undefined
        ? rewriteResponseHeaders(received, () => describeClientView(this.#routeContext, this.#exchange), corsOrigin)
        : received;
    const headers = status === 204 ? withoutContentLength(endToEnd) : endToEnd;
    this.#declaredBytes = contentLength === undefined ? NaN : Number(contentLength);
    this.#unsent = { status, statusText, headers };
    lifetime.clearDeadline();
    flushSoon(this);
  }

  /** Sends what has come so far: all that was received together has been parsed. */
  flush(): void {
    if (this.#unsent === undefined) {
      if (this.#joined !== undefined) this.#flushJoined();
      return;
    }
    try {
      this.#writeUnsent();
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
    this.#joined = undefined;
    this.sentBytes = 0;
    return true;
  }

  write(chunk: Buffer): boolean {
    const response = this.#response;
    this.sentBytes += chunk.length;
    if (this.sentBytes === this.#declaredBytes) {
      this.#writeUnsent();
      if (!response.req.complete) {
        response.write(chunk);
        this.end();
      }
      // The last of it. Node:http joins a head that has not gone with a text, and only with that.
      else if (chunk.length <= JOINED_MAX_BYTES) response.end(chunk.toString('latin1'), 'latin1');
      else response.end(chunk);
      return true;
    }
    const isUnsent = this.#unsent !== undefined;
    if (!isUnsent && chunk.length >= JOINED_MAX_BYTES) {
      this.#writeUnsent();
      return response.write(chunk);
    }
    const joined = (this.#joined ??= new GrowableBuffer());
    joined.append(chunk);
    if (!isUnsent && joined.length >= JOINED_MAX_BYTES) return this.#writeUnsent();
    flushSoon(this);
    return true;
  }

  onDrain(resume: () => void): void {
    this.permit?.recordStall(this);
    this.#response.once('drain', () => {
      this.permit?.recordStallEnd();
      resume();
    });
  }

  /** As the kernel takes them; a write that it has taken in part counts when all of it has gone. */
  get takenBytes(): number {
    // The connection's, also while an earlier pipelined response has it.
    const { bytesWritten, writableLength } = this.#response.req.socket;
    return bytesWritten - writableLength;
  }

  breakOff(stalledMs: number): void {
    this.#routeContext.observe({ kind: 'response-broken-off', route: this.#routeContext.route, stalledMs });
    this.#exchange.lifetime.abort({ kind: 'client-left' });
  }

  end(): void {
    const response = this.#response;
    if (response.writableEnded || this.#isEnded) return;
    this.#writeUnsent();
    this.#isEnded = true;
    // A client that writes before it reads would find a closed connection, and never read the response.
    if (response.req.complete) response.end();
    else drainThenClose(response.req, response, this.#routeContext.clock, EARLY_RESPONSE_DRAIN_MAX_BYTES);
  }

  cut(): void {
    // Marks the connection as closed by the sidecar, not by the client.
    const error = new SidecarError('UPSTREAM_RESET', 'the response broke off');
    this.#exchange.lifetime.abort({ kind: 'failed', error });
    // A response that has been ended is whole.
    if (this.#response.writableEnded || this.#isEnded) return;
    if (!this.#response.destroyed) this.#writeUnsent();
    breakOff(this.#response, this.#routeContext.clock);
  }

  hold(result: HeldResult): void {
    this.discardHeld();
    this.#routeContext.memory.forceTake(sizeOf(result));
    this.#held = result;
  }

  discardHeld(): void {
    if (this.#held !== undefined) this.#routeContext.memory.giveBack(sizeOf(this.#held));
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
      this.cut();
    }
    return { kind: 'relayed', status: head.status, fault };
  }

  /** Joins further while the client takes nothing, so that each write but the last is a large one. */
  #flushJoined(): void {
    const response = this.#response;
    if (this.#joined === undefined || this.#isAwaitingWrite || response.destroyed) return;
    if (response.writableLength === 0) {
      this.#writeUnsent();
      return;
    }
    this.#isAwaitingWrite = true;
    // Called back when all before it has been written.
    response.write('', 'latin1', (error) => {
      this.#isAwaitingWrite = false;
      if (!error) this.#flushJoined();
    });
  }

  /** Writes the head and what was joined, where there are such. @returns false: no more until `onDrain` calls back */
  #writeUnsent(): boolean {
    const response = this.#response;
    if (this.#unsent !== undefined) {
      const { status, statusText, headers } = this.#unsent;
      // The rest of an unread upload would be parsed as the next request.
      if (!response.req.complete) {
        response.shouldKeepAlive = false;
        closingSockets.add(response.req.socket);
      }
      if (statusText !== '') response.writeHead(status, statusText, headers);
      else response.writeHead(status, headers);
      this.#unsent = undefined;
    }
    const joined = this.#joined;
    if (joined === undefined) return true;
    this.#joined = undefined;
    return response.write(joined.bytes);
  }
}

/** How the client of a request sees its route's upstream; what follows from it for header values is upstream/headers.ts's. */
export function describeClientView(
  {
    baseUrl,
    clientPath,
    cookieRoot,
    addedHeaders,
  }: Pick<RouteContext, 'baseUrl' | 'clientPath' | 'cookieRoot' | 'addedHeaders'>,
  request: Pick<Exchange, 'path' | 'clientPath'>,
): ClientView {
  return {
    baseUrl,
    requestPath: request.path,
    clientPath: request.clientPath ?? clientPath,
    cookieRoot,
    addedQuery: addedHeaders.query,
  };
}

/** Bytes from the memory that requests share. A small head counts as none: it belongs to what each request has. */
function sizeOf({ head, body }: HeldResult): number {
  return body.length + head.memoryBytes;
}
