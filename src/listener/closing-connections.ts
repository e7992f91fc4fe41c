/**
 * Connections on which no further request is processed (RFC 9112 §9.6), and the refusal that ends each: of what node:http cannot parse, or
 * hands over with its connection (CONNECT, upgrades). It is sent behind the responses that are pending there (§9.3.2).
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SidecarError } from '../platform/errors.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { isMarkedClosing } from '../exchange/drain-then-close.ts';
import type { ActiveRequests } from './active-requests.ts';
import { createRequestStats, recordOutcome } from './request-outcome.ts';
import { toParserError } from './listener-errors.ts';
import { sendRawLocalReply } from './local-reply.ts';

/** What is needed to record a refusal. */
type OutcomeRecorder = Pick<ExchangeParts, 'observe' | 'route'>;

interface Refusal {
  readonly error: SidecarError;
  /** Undefined when the parser never got as far as one. */
  readonly request: IncomingMessage | undefined;
  readonly recorder: OutcomeRecorder;
}

export interface ClosingConnectionsOptions {
  readonly activeRequests: ActiveRequests;
  /** Records what reached no route. */
  readonly unrouted: OutcomeRecorder;
  /** A client that has sent FIN still waits for its responses. */
  readonly allowHalfClose: boolean;
}

export class ClosingConnections {
  readonly #options: ClosingConnectionsOptions;
  /** With the refusal that is still to be sent and recorded, if there is one. */
  readonly #closing = new WeakMap<Duplex, Refusal | undefined>();

  constructor(options: ClosingConnectionsOptions) {
    this.#options = options;
  }

  has(socket: Duplex): boolean {
    return this.#closing.has(socket) || isMarkedClosing(socket);
  }

  /** The connection is closed by a response that is on its way. */
  add(socket: Duplex): void {
    if (!this.#closing.has(socket)) this.#closing.set(socket, undefined);
  }

  /** Refuses a connection from which no request is read. */
  refuseConnection(socket: Duplex, error: SidecarError): void {
    this.#refuse(socket, { request: undefined, error, recorder: this.#options.unrouted }, false);
  }

  /**
   * Refuses a request that node:http has handed over with its connection.
   * @param stream as handed over: not the connection itself while the request has an unfinished body
   */
  refuseHandedOver(
    request: IncomingMessage,
    stream: Duplex,
    error: SidecarError,
    recorder = this.#options.unrouted,
  ): void {
    // Without a listener, a reset would end the process.
    stream.on('error', () => stream.destroy());
    const { activeRequests, allowHalfClose } = this.#options;
    const { socket } = request;
    // An unread body would keep the connection from being read to its end.
    request.resume();
    const isPending = activeRequests.superviseHandedOver(socket, allowHalfClose);
    if (!this.has(socket)) this.#refuse(socket, { request, error, recorder }, isPending);
    else if (!isPending) socket.on('error', () => socket.destroy()).end();
  }

  /**
   * Refuses what node:http's parser cannot read: before a request has been parsed, within a request's body, or behind
   * requests that are whole: those get their responses first.
   */
  refuseUnparsable(error: Error & { code?: string }, socket: Duplex): void {
    // The parser complains of every further packet.
    if (this.has(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const { activeRequests, unrouted, allowHalfClose } = this.#options;
    const fault = toParserError(error.code ?? '');
    // A FIN within a body: unless half-closed connections are allowed, the client has left.
    const hasLeft = error.code === 'HPE_INVALID_EOF_STATE' && !allowHalfClose;
    const pending = activeRequests.listBySocket(socket);
    const broken = pending.filter(({ request }) => !request.complete);
    // A request whose body is broken is recorded itself.
    if (broken.length > 0) this.add(socket);
    else this.#refuse(socket, { request: undefined, error: fault, recorder: unrouted }, pending.length > 0);
    for (const { lifetime } of broken) {
      lifetime.abort(hasLeft ? { kind: 'client-left' } : { kind: 'failed', error: fault });
    }
    if (hasLeft && pending.length > 0) socket.destroy();
  }

  /** To be called when a request of the connection has ended: behind the last one the connection is refused and closed, if it is to be. */
  onRequestEnded(socket: Duplex & { destroySoon(): void }): void {
    if (!this.#closing.has(socket) || this.#options.activeRequests.listBySocket(socket).length > 0) return;
    const refusal = this.#closing.get(socket);
    if (refusal === undefined) socket.destroySoon();
    else this.#refuse(socket, refusal, false);
  }

  #refuse(socket: Duplex, refusal: Refusal, isPending: boolean): void {
    this.#closing.set(socket, isPending ? refusal : undefined);
    if (isPending) return;
    const { request, error, recorder } = refusal;
    recordOutcome(recorder, request, { kind: 'replied', error }, createRequestStats(), 0);
    sendRawLocalReply(socket, error);
  }
}
