/**
 * Connections on which no further request is processed (RFC 9112 §9.6), and the rejection that ends each of them: of input that node:http
 * cannot parse, or of a request that it hands over with its connection (CONNECT, upgrades). It follows the pending responses (§9.3.2).
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SidecarError } from '../platform/errors.ts';
import { closingSockets } from '../exchange/connection-end.ts';
import type { ActiveRequests } from './active-requests.ts';
import { createRequestStats, describeRequest } from './correlation.ts';
import { readRequestHead } from './request-head.ts';
import { recordOutcome, type OutcomeRecorder } from './request-outcome.ts';
import { HTTP2_PREFACE, toParserError, type ParserFault } from './listener-errors.ts';
import { pauseReading } from './connection-reading.ts';
import { MAX_DISCARDED_BYTES, sendHttp2LocalReply, sendRawLocalReply } from './local-reply.ts';

interface Rejection {
  readonly error: SidecarError;
  /** Undefined when the parser found none. */
  readonly request: IncomingMessage | undefined;
  readonly recorder: OutcomeRecorder;
  /** What the client has sent, if that is HTTP/2. Default: it is not. */
  readonly http2?: Uint8Array | undefined;
}

export class ClosingConnections {
  readonly #activeRequests: ActiveRequests;
  readonly #unrouted: OutcomeRecorder;
  readonly #allowHalfClose: boolean;
  /** With the rejection that is still to be sent and recorded. */
  readonly #closing = new WeakMap<Duplex, Rejection | undefined>();
  readonly #discardedBytes = new WeakMap<Duplex, number>();

  /** @param allowHalfClose a client that has sent FIN still gets its responses */
  constructor(activeRequests: ActiveRequests, unrouted: OutcomeRecorder, allowHalfClose: boolean) {
    this.#activeRequests = activeRequests;
    this.#unrouted = unrouted;
    this.#allowHalfClose = allowHalfClose;
  }

  has(socket: Duplex): boolean {
    return this.#closing.has(socket) || closingSockets.has(socket);
  }

  /** A response that has been started closes the connection. */
  add(socket: Duplex): void {
    if (!this.#closing.has(socket)) this.#closing.set(socket, undefined);
  }

  rejectConnection(socket: Duplex, error: SidecarError): void {
    this.#reject(socket, { request: undefined, error, recorder: this.#unrouted }, false);
  }

  /**
   * Rejects a request that node:http has handed over with its connection.
   * @param stream as handed over: not the connection itself while the request has an unfinished body
   */
  rejectHandedOver(request: IncomingMessage, stream: Duplex, error: SidecarError, recorder = this.#unrouted): void {
    // Without a listener, a reset would end the process.
    stream.on('error', () => stream.destroy());
    const { socket } = request;
    // An unread body would keep the connection from being read to its end.
    request.resume();
    const isPending = this.#activeRequests.superviseHandedOver(socket, this.#allowHalfClose);
    if (!this.has(socket)) this.#reject(socket, { request, error, recorder }, isPending);
    else if (!isPending) socket.on('error', () => socket.destroy()).end();
  }

  /**
   * Rejects input that node:http's parser cannot read: instead of a request, within a request's body, or behind complete requests, which
   * get their responses first.
   */
  rejectUnparsable(error: Error & ParserFault, socket: Duplex): void {
    // The parser reports an error for every further packet.
    if (this.has(socket)) {
      this.#discard(socket, error.rawPacket?.length ?? 0);
      return;
    }
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const parserError = toParserError(error);
    // A FIN within a body means that the client has left, unless half-closed connections are allowed.
    const hasLeft = error.code === 'HPE_INVALID_EOF_STATE' && !this.#allowHalfClose;
    const pending = this.#activeRequests.listBySocket(socket);
    const broken = pending.filter(({ request }) => !request.complete);
    // A request with a broken body is under way, and is recorded when it ends.
    if (broken.length > 0) this.add(socket);
    else {
      const http2 = error.code === HTTP2_PREFACE && pending.length === 0 ? error.rawPacket : undefined;
      this.#reject(
        socket,
        { request: undefined, error: parserError, recorder: this.#unrouted, http2 },
        pending.length > 0,
      );
    }
    for (const { lifetime } of broken)
      lifetime.abort(hasLeft ? { kind: 'client-left' } : { kind: 'failed', error: parserError });
    if (hasLeft && pending.length > 0) socket.destroy();
  }

  /** To be called when a request of the connection has ended. After the last one, sends the rejection and closes the connection. */
  onRequestEvent(socket: Duplex & { destroySoon(): void }): void {
    if (!this.#closing.has(socket) || this.#activeRequests.listBySocket(socket).length > 0) return;
    const rejection = this.#closing.get(socket);
    if (rejection === undefined) socket.destroySoon();
    else this.#reject(socket, rejection, false);
  }

  /** A connection that closes with unread input would be reset before its client has read the responses; one that floods is not read on. */
  #discard(socket: Duplex, bytes: number): void {
    const discardedBytes = (this.#discardedBytes.get(socket) ?? 0) + bytes;
    this.#discardedBytes.set(socket, discardedBytes);
    if (discardedBytes > MAX_DISCARDED_BYTES) pauseReading(socket);
  }

  #reject(socket: Duplex, rejection: Rejection, isPending: boolean): void {
    this.#closing.set(socket, isPending ? rejection : undefined);
    if (isPending) return;
    const { request, error, recorder, http2 } = rejection;
    const stats = createRequestStats(request && readRequestHead(request.rawHeaders));
    const facts = describeRequest(request, stats, recorder.maskSecrets);
    recordOutcome(recorder, request, { kind: 'replied', error }, stats, 0);
    if (http2 === undefined) sendRawLocalReply(socket, error, facts);
    else sendHttp2LocalReply(socket, error, facts, http2);
  }
}
