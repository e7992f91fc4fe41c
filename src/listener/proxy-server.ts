/**
 * The proxy port: accepts, lets admit.ts judge the head, hands each request to the exchange, turns faults into local
 * replies and has each request told of once. Binding is bind.ts's, the story of a request exchange/handle's.
 */
import type http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { SidecarError } from '../platform/errors.ts';
import type { Exchange, ExchangeParts } from '../exchange/exchange.ts';
import { handle } from '../exchange/handle.ts';
import { destroyInTurn } from '../exchange/relay.ts';
import { LifelineEnded } from '../exchange/lifeline.ts';
import { withAnswerFields, type StartWatch } from '../exchange/watch.ts';
import { corsFields } from '../upstream/fields.ts';
import { ActiveRequest, ActiveRequests } from './active-requests.ts';
import { admit, type AdmitOptions } from './admit.ts';
import { Carried, type CarryingPort } from './carried.ts';
import { ClosingConnections } from './closing-connections.ts';
import { CLIENT_LEFT, emptyTally, tellEnding, type Ending } from './ending.ts';
import { replyLocally, replyRaw } from './local-reply.ts';
import { asFault, drainingFault, TOO_MANY_PIPELINED } from './faults.ts';
import { createHttpServer, type HttpServerOptions } from './http-server.ts';
import { OpenConnections, type PortLimits } from './open-connections.ts';
import { answerPreflight } from './preflight.ts';
import { refuseUpgrade } from './websocket/websocket.ts';

export interface ProxyServerOptions extends AdmitOptions, HttpServerOptions {
  readonly limits: PortLimits;
  /** Tells of what reaches no route, by this route's name. */
  readonly unrouted: Pick<ExchangeParts, 'observe' | 'route'>;
  /** Follows each request from its arrival on. Default: nobody does. */
  readonly watch?: StartWatch | undefined;
}

export class ProxyServer {
  readonly active = new ActiveRequests();
  readonly #options: ProxyServerOptions;
  readonly #servers: http.Server[] = [];
  readonly connections: OpenConnections;
  readonly #closing: ClosingConnections;
  readonly #port: CarryingPort = {
    answerFailed: (exchange, reason) => this.#answerFailed(exchange, reason),
    conclude: (carried, ending) => this.#conclude(carried, ending),
  };
  readonly #asFault = (thrown: unknown): SidecarError => asFault(thrown, this.#options.unrouted.observe);
  #phase: 'open' | 'closing' | 'refusing' = 'open';

  constructor(options: ProxyServerOptions) {
    this.#options = options;
    const { clock, unrouted, limits, allowHalfClose } = options;
    this.#closing = new ClosingConnections({ active: this.active, unrouted, allowHalfClose });
    const refuse = (socket: net.Socket, error: SidecarError): void => this.#closing.refuseConnection(socket, error);
    this.connections = new OpenConnections({ limits, clock, observe: unrouted.observe, refuse });
  }

  /** Makes one http.Server per address family; all share this port's state. */
  createServer(): http.Server {
    const server = createHttpServer(this.#options, (socket) => this.connections.accept(socket));
    const serve = this.#serve.bind(this);
    server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    server.on('clientError', (error, socket) => {
      this.#closing.refuseBroken(error, socket);
    });
    server.on('connect', (request: IncomingMessage, stream: Duplex) => {
      this.connections.requestBegins(request.socket, 0);
      this.#closing.refuseHandedOver(
        request,
        stream,
        new SidecarError('METHOD_NOT_ALLOWED', 'CONNECT is not forwarded'),
      );
    });
    server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      this.connections.requestBegins(request.socket, 0);
      void this.#upgrade(request, stream, head);
    });
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
    const { socket } = request;
    // Behind an answer that closes the connection nothing is processed (RFC 9112 §9.6), and nothing more is read.
    if (this.#closing.has(socket)) return void socket.pause();
    const fault = this.connections.requestBegins(socket, this.active.count);
    const { clock, unrouted } = this.#options;
    const tally = emptyTally();
    const startedAt = clock.now();
    const watch = this.#options.watch?.(request);
    if (this.#phase !== 'open' || fault === TOO_MANY_PIPELINED) this.active.closeAfter(response);
    const admission = admit(this.#options, request, startedAt, fault);
    if (admission.kind !== 'admitted') response.once('close', () => this.connections.requestEnds(socket));
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
      this.connections.requestEnds(request.socket);
      this.#closing.requestEnded(request.socket);
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
    const sentBytes = replyLocally(request, response, error, cors, this.#closing.has(socket));
    if (!response.shouldKeepAlive) this.#closing.add(socket);
    return sentBytes;
  }

  async #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const { socket } = request;
    const { clock, unrouted } = this.#options;
    const startedAt = clock.now();
    const admission = admit(this.#options, request, startedAt);
    const route = admission.kind === 'preflight' ? undefined : admission.route;
    const serveUpgrade = route?.serveUpgrade;
    const isPipelined = this.#closing.has(socket) || this.active.on(socket).length > 0;
    const refusal =
      admission.kind === 'refused'
        ? admission.error
        : refuseUpgrade(request, { isEnabled: serveUpgrade !== undefined, isPipelined });
    if (refusal !== undefined || admission.kind !== 'admitted' || serveUpgrade === undefined) {
      if (admission.kind === 'admitted') admission.lifeline.meetDeadline();
      this.#closing.refuseHandedOver(request, stream, refusal ?? drainingFault(), route?.parts ?? unrouted);
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
      ending = {
        kind: 'relayed',
        relayed: await serveUpgrade(parts, { ...admission, request, socket, head, tally }),
      };
    } catch (thrown) {
      ending =
        thrown instanceof LifelineEnded ? { kind: 'client-left' } : { kind: 'replied', error: this.#asFault(thrown) };
      if (ending.kind === 'replied') replyRaw(socket, ending.error);
    }
    tellEnding(parts, request, ending, tally, clock.now() - startedAt);
    lifeline.meetDeadline();
    this.active.remove(active);
  }
}
