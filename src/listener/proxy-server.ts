/**
 * The proxy port: accepts, lets admit.ts judge the head, hands each request to the exchange, turns faults into local
 * replies and has each request told of once. Binding is bind.ts's, the story of a request exchange/handle's.
 */
import type http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { SidecarError } from '../errors.ts';
import type { Exchange, ExchangeParts } from '../exchange/exchange.ts';
import { handle } from '../exchange/handle.ts';
import { destroyInTurn } from '../exchange/relay.ts';
import { LifelineEnded } from '../exchange/lifeline.ts';
import { withAnswerFields, type StartWatch } from '../exchange/watch.ts';
import { corsFields } from '../upstream/fields.ts';
import { ActiveRequest, ActiveRequests } from './active-requests.ts';
import { admit, type AdmitOptions, type Route } from './admit.ts';
import { Carried, type CarryingPort } from './carried.ts';
import { emptyTally, tellEnding, type Ending } from './ending.ts';
import { replyLocally, replyRaw } from './local-reply.ts';
import { asFault, drainingFault, parserFault } from './faults.ts';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';
import { OpenConnections } from './open-connections.ts';
import { answerPreflight } from './preflight.ts';
import { refuseUpgrade } from './websocket.ts';

export interface ProxyServerOptions extends AdmitOptions, HttpServerOptions {
  readonly maxConnections: number;
  /** Tells of what reaches no route, by this route's name. */
  readonly unrouted: Pick<ExchangeParts, 'observe' | 'route'>;
  /** Follows each request from its arrival on. Default: nobody does. */
  readonly watch?: StartWatch | undefined;
}

const CLIENT_LEFT: Ending = { kind: 'client-left' };

export class ProxyServer {
  readonly active = new ActiveRequests();
  readonly #options: ProxyServerOptions;
  readonly #servers: http.Server[] = [];
  readonly connections: OpenConnections;
  readonly #brokenSockets = new WeakSet<Duplex>();
  readonly #port: CarryingPort = {
    answerFailed: (exchange, reason) => this.#answerFailed(exchange, reason),
    conclude: (carried, ending) => this.#conclude(carried, ending),
  };
  #phase: 'open' | 'closing' | 'refusing' = 'open';

  constructor(options: ProxyServerOptions) {
    this.#options = options;
    const { clock, unrouted, maxConnections } = options;
    this.connections = new OpenConnections({ clock, ...unrouted, max: maxConnections });
  }

  /** Makes one http.Server per address family; all share this port's state. */
  createServer(): http.Server {
    const server = createHttpServer(this.#options);
    const serve = this.#serve.bind(this);
    server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    server.on('clientError', (error, socket) => {
      this.#refuseBroken(error, socket);
    });
    server.on('connect', (request: IncomingMessage, socket: Duplex) => {
      if (this.#wouldOvertake(request)) return;
      this.#refuseRaw(request, socket, new SidecarError('METHOD_NOT_ALLOWED', 'CONNECT is not forwarded'));
    });
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!this.#wouldOvertake(request)) void this.#upgrade(request, socket, head);
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

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // Behind an answer that closes the connection nothing is processed (RFC 9112 §9.6).
    if (this.#brokenSockets.has(request.socket)) return;
    const { clock, unrouted } = this.#options;
    const tally = emptyTally();
    const startedAt = clock.now();
    const watch = this.#options.watch?.(request);
    if (this.#phase !== 'open') this.active.closeAfter(response);
    const admission = admit(this.#options, request, startedAt);
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
    const { lifeline, path, corsOrigin, standing } = admission;
    const exchange = { request, response, path, corsOrigin, standing, lifeline, tally, watch };
    this.#carry(admission.route.parts, exchange);
  }

  #carry(parts: ExchangeParts, exchange: Exchange): void {
    const carried = new Carried(this.#port, parts, exchange);
    this.active.add(carried);
    // By the next microtask it is known whether the rest of a request is here.
    if (this.#phase === 'refusing') queueMicrotask(() => carried.failed(drainingFault()));
    else handle(parts, exchange, carried);
  }

  #conclude(carried: Carried, ending: Ending): void {
    const { request, lifeline, parts } = carried;
    const { tally, watch } = carried.exchange;
    const told: Ending = lifeline.ended?.end.kind === 'client-left' ? CLIENT_LEFT : ending;
    try {
      tellEnding(parts, request, told, tally, this.#options.clock.now() - lifeline.arrivedAt, watch);
    } catch (thrown) {
      this.#asFault(thrown);
      request.socket.destroy();
    } finally {
      lifeline.meetDeadline();
      this.active.remove(carried);
      this.#closeBroken(request.socket);
    }
  }

  #answerFailed({ request, response, corsOrigin, tally, watch }: Exchange, thrown: unknown): Ending {
    if (thrown instanceof LifelineEnded) return CLIENT_LEFT;
    const error = this.#asFault(thrown);
    try {
      const cors = corsOrigin === undefined ? [] : corsFields(corsOrigin);
      if (response.headersSent || response.destroyed) destroyInTurn(response);
      else tally.responseBytes = this.#reply(request, response, error, withAnswerFields(cors, watch));
    } catch (fault) {
      this.#asFault(fault);
      request.socket.destroy();
    }
    return { kind: 'replied', error };
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

  /** Whether it would be answered in the stead of requests before it: then its connection ends behind their answers (RFC 9112 §9.3.2). */
  #wouldOvertake({ socket }: IncomingMessage): boolean {
    if (!this.active.takeOver(socket, this.#options.allowHalfClose)) return false;
    this.#brokenSockets.add(socket);
    return true;
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (this.#brokenSockets.has(socket)) return void socket.on('error', () => socket.destroy()).end();
    const { clock } = this.#options;
    const startedAt = clock.now();
    const admission = admit(this.#options, request, startedAt);
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
    const tally = emptyTally();
    const active = new ActiveRequest(lifeline, request);
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
