/**
 * The proxy port: accepts, lets admit.ts judge the head, hands each request to the exchange, turns faults into local
 * replies and has each request told of once. Binding is bind.ts's, the story of a request exchange/handle's.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { SidecarError } from '../errors.ts';
import type { Exchange, ExchangeParts } from '../exchange/exchange.ts';
import { handle } from '../exchange/handle.ts';
import { LifelineEnded } from '../exchange/lifeline.ts';
import { withAnswerFields, type StartWatch } from '../exchange/watch.ts';
import { corsFields } from '../upstream/fields.ts';
import { ActiveRequests } from './active-requests.ts';
import { admit, type AdmitOptions, type Route } from './admit.ts';
import { emptyTally, isCut, tellEnding, whenClosed, type Ending } from './ending.ts';
import { replyLocally, replyRaw } from './local-reply.ts';
import { asFault, drainingFault, parserFault } from './faults.ts';
import { OpenConnections } from './open-connections.ts';
import { answerPreflight } from './preflight.ts';
import { refuseUpgrade } from './websocket.ts';

export interface ProxyServerOptions extends AdmitOptions {
  readonly keepAliveMs: number;
  readonly maxConnections: number;
  /** A client that does not finish its field section within this time is answered 408. Default 60000. */
  readonly headersTimeoutMs?: number;
  /** A client that has sent FIN still waits for its answer. */
  readonly allowHalfClose: boolean;
  /** Tells of what reaches no route, by this route's name. */
  readonly unrouted: Pick<ExchangeParts, 'observe' | 'route'>;
  /** Follows each request from its arrival on. Default: nobody does. */
  readonly watch?: StartWatch | undefined;
}

const HEADERS_TIMEOUT_MS = 60_000;

export class ProxyServer {
  readonly active = new ActiveRequests();
  readonly #options: ProxyServerOptions;
  readonly #servers: http.Server[] = [];
  readonly connections: OpenConnections;
  readonly #brokenSockets = new WeakSet<Duplex>();
  #phase: 'open' | 'closing' | 'refusing' = 'open';

  constructor(options: ProxyServerOptions) {
    this.#options = options;
    const { clock, unrouted, maxConnections } = options;
    this.connections = new OpenConnections({ clock, ...unrouted, max: maxConnections });
  }

  /** Makes one http.Server per address family; all share this port's state. */
  createServer(): http.Server {
    const { keepAliveMs, headersTimeoutMs = HEADERS_TIMEOUT_MS, allowHalfClose } = this.#options;
    const server = http.createServer({
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: headersTimeoutMs / 4,
      // A queued request's body may stay unread for long; silence within a body is timed where it is read.
      requestTimeout: 0,
      noDelay: true,
      // Node's own refusal would be neither a problem document nor told of; the guard counts the Host fields.
      requireHostHeader: false,
    });
    // The guard has to see every field; the size of the field section bounds their number.
    Object.assign(server, { httpAllowHalfOpen: allowHalfClose, maxHeadersCount: 0 });
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      this.#serve(request, response).catch((thrown: unknown) => {
        this.#asFault(thrown);
        request.socket.destroy();
      });
    };
    server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    server.on('clientError', (error, socket) => {
      this.#refuseBroken(error, socket);
    });
    server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      this.#refuseRaw(request, socket, new SidecarError('METHOD_NOT_ALLOWED', 'CONNECT is not forwarded'));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.#upgrade(request, socket, head);
    });
    server.on('connection', (socket) => this.connections.add(socket));
    this.#servers.push(server);
    return server;
  }

  /** From now on every answer closes its connection. */
  startClosing(): void {
    this.#phase = 'closing';
    this.active.closeAfterAnswers();
  }

  /** Accepts no more connections, and refuses new requests on those that are open with DRAINING. */
  stopAccepting(): void {
    this.#phase = 'refusing';
    // http.Server's own close would reset idle connections, on which a pooled client may just be sending.
    for (const server of this.#servers) net.Server.prototype.close.call(server);
  }

  /** Ends every request under way: with DRAINING, or by cutting an answer that has begun. @returns how many */
  cutAll(): number {
    return this.active.endAll({ kind: 'failed', error: drainingFault() });
  }

  /** Closes every connection that is left. */
  closeConnections(): void {
    this.connections.closeAll();
    for (const server of this.#servers) server.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Behind an answer that closes the connection nothing is processed (RFC 9112 §9.6).
    if (this.#brokenSockets.has(request.socket)) return;
    const { clock, unrouted } = this.#options;
    const tally = emptyTally();
    const startedAt = clock.now();
    const watch = this.#options.watch?.(request);
    if (this.#phase !== 'open') this.active.closeAfter(response);
    const admission = admit(this.#options, request);
    if (admission.kind === 'preflight') {
      answerPreflight(request, response, admission.corsOrigin);
      tellEnding(unrouted, request, { kind: 'preflight' }, tally, clock.now() - startedAt, watch);
      return;
    }
    if (admission.kind === 'refused') {
      const { error, route = { parts: unrouted } } = admission;
      tally.responseBytes = this.#reply(request, response, error);
      tellEnding(route.parts, request, { kind: 'replied', error }, tally, clock.now() - startedAt, watch);
      return;
    }
    const { lifeline, route } = admission;
    const active = { lifeline, request, response };
    this.active.add(active);
    const story: { ending?: Ending } = {};
    const closed = whenClosed(response, () => {
      if (!response.writableFinished && !isCut(story.ending)) lifeline.end({ kind: 'client-left' });
    });
    try {
      const ending = await this.#run(route, { ...admission, request, response, tally, watch });
      story.ending = ending;
      await closed;
      const told: Ending = lifeline.ended?.end.kind === 'client-left' ? { kind: 'client-left' } : ending;
      tellEnding(route.parts, request, told, tally, clock.now() - startedAt, watch);
    } finally {
      lifeline.meetDeadline();
      this.active.remove(active);
      this.#closeBroken(request.socket);
    }
  }

  async #run({ parts }: Route, exchange: Exchange): Promise<Ending> {
    const { request, response, corsOrigin, tally, watch } = exchange;
    try {
      if (this.#phase === 'refusing') throw drainingFault();
      return { kind: 'relayed', relayed: await handle(parts, exchange) };
    } catch (thrown) {
      if (thrown instanceof LifelineEnded) return { kind: 'client-left' };
      const error = this.#asFault(thrown);
      if (response.headersSent || response.destroyed) {
        response.destroy();
      } else {
        const cors = corsOrigin === undefined ? [] : corsFields(corsOrigin);
        tally.responseBytes = this.#reply(request, response, error, withAnswerFields(cors, watch));
      }
      return { kind: 'replied', error };
    }
  }

  #reply(
    request: IncomingMessage,
    response: ServerResponse,
    error: SidecarError,
    cors: readonly string[] = [],
  ): number {
    const { socket } = request;
    const sentBytes = replyLocally(request, response, error, cors, this.#brokenSockets.has(socket));
    if (!response.shouldKeepAlive) this.#brokenSockets.add(socket);
    return sentBytes;
  }

  #asFault(thrown: unknown): SidecarError {
    return asFault(thrown, this.#options.unrouted.observe);
  }

  /**
   * What node:http's parser refused: before a request, which nobody knows of yet, within a request's body, or behind
   * requests that are whole: those are answered, and their connection closed then.
   */
  #refuseBroken(error: Error & { code?: string }, socket: Duplex): void {
    // The parser complains of every further packet.
    if (this.#brokenSockets.has(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    this.#brokenSockets.add(socket);
    const fault = parserFault(error.code ?? '');
    // A FIN within a body: unless half-closed connections are allowed, whoever sent it has gone.
    const hasLeft = error.code === 'HPE_INVALID_EOF_STATE' && !this.#options.allowHalfClose;
    const underWay = this.active.on(socket);
    for (const { lifeline, request } of underWay) {
      if (!request.complete) lifeline.end(hasLeft ? { kind: 'client-left' } : { kind: 'failed', error: fault });
    }
    if (hasLeft && underWay.length > 0) socket.destroy();
    if (underWay.length === 0) this.#refuseRaw(undefined, socket, fault);
  }

  #closeBroken(socket: net.Socket): void {
    if (this.#brokenSockets.has(socket) && this.active.on(socket).length === 0) socket.destroySoon();
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (this.#brokenSockets.has(socket)) return void socket.on('error', () => socket.destroy()).end();
    const { clock } = this.#options;
    const admission = admit(this.#options, request);
    const route = admission.kind === 'preflight' ? undefined : admission.route;
    const serveUpgrade = route?.serveUpgrade;
    const refusal = admission.kind === 'refused' ? admission.error : refuseUpgrade(request, serveUpgrade !== undefined);
    if (refusal !== undefined || admission.kind !== 'admitted' || serveUpgrade === undefined) {
      if (admission.kind === 'admitted') admission.lifeline.meetDeadline();
      this.#refuseRaw(request, socket, refusal ?? drainingFault(), route);
      return;
    }
    const { lifeline } = admission;
    const { parts } = admission.route;
    const startedAt = clock.now();
    const tally = emptyTally();
    const active = { lifeline, request, response: undefined };
    this.active.add(active);
    let ending: Ending;
    try {
      if (this.#phase === 'refusing') throw drainingFault();
      ending = { kind: 'relayed', relayed: await serveUpgrade(parts, { ...admission, request, socket, head, tally }) };
    } catch (thrown) {
      ending =
        thrown instanceof LifelineEnded ? { kind: 'client-left' } : { kind: 'replied', error: this.#asFault(thrown) };
      if (ending.kind === 'replied') replyRaw(socket, ending.error);
    }
    tellEnding(parts, request, ending, tally, clock.now() - startedAt);
    lifeline.meetDeadline();
    this.active.remove(active);
  }

  #refuseRaw(request: IncomingMessage | undefined, socket: Duplex, error: SidecarError, route?: Route): void {
    tellEnding(route?.parts ?? this.#options.unrouted, request, { kind: 'replied', error }, emptyTally(), 0);
    replyRaw(socket, error);
  }
}
