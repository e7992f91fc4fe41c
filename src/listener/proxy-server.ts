/** The proxy port: checks each request, forwards it, turns errors into local replies and records each outcome once. */
import type http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { SidecarError } from '../platform/errors.ts';
import type { RouteContext, RequestOutcome, RequestStats } from '../exchange/exchange.ts';
import { acceptExpectation } from '../exchange/expect-continue.ts';
import { breakOff } from '../exchange/connection-end.ts';
import { forwardRequest } from '../exchange/forward.ts';
import { RequestAborted } from '../exchange/request-lifetime.ts';
import type { RequestTracer, StartTracer } from '../exchange/request-tracer.ts';
import { corsHeaders } from '../upstream/headers.ts';
import { ActiveRequests, type ActiveExchange, type ActiveRequest } from './active-requests.ts';
import { checkRequest, type CheckedRequest, type RequestCheckOptions } from './request-check.ts';
import { createRequestStats, describeRequest } from './correlation.ts';
import { ClosingConnections } from './closing-connections.ts';
import { stopParsing } from './connection-reading.ts';
import { CLIENT_LEFT, explainUnknown, recordOutcome, type OutcomeRecorder } from './request-outcome.ts';
import { sendLocalReply, sendRawLocalReply, type ReplyFacts, replyToPreflight } from './local-reply.ts';
import { toSidecarError, createDrainingError, TOO_MANY_PIPELINED } from './listener-errors.ts';
import { createProxyHttpServer, type ProxyHttpServerOptions } from './http-server.ts';
import { OpenConnections, type PortLimits } from './open-connections.ts';
import { checkUpgrade } from './websocket/websocket.ts';

export interface ProxyServerOptions extends RequestCheckOptions, ProxyHttpServerOptions {
  readonly limits: PortLimits;
  readonly unrouted: OutcomeRecorder & Pick<RouteContext, 'observe'>;
  readonly startTracer?: StartTracer | undefined;
}

export class ProxyServer {
  readonly activeRequests = new ActiveRequests();
  readonly #options: ProxyServerOptions;
  readonly #servers: http.Server[] = [];
  readonly connections: OpenConnections;
  readonly #closingConnections: ClosingConnections;
  readonly #toSidecarError = (thrown: unknown): SidecarError => toSidecarError(thrown, this.#options.unrouted.observe);
  #phase: 'open' | 'closing' | 'rejecting' = 'open';

  constructor(options: ProxyServerOptions) {
    this.#options = options;
    const { clock, unrouted, limits, allowHalfClose } = options;
    this.#closingConnections = new ClosingConnections(this.activeRequests, unrouted, allowHalfClose);
    const reject = (socket: net.Socket, error: SidecarError): void =>
      this.#closingConnections.rejectConnection(socket, error);
    const onLost = (socket: net.Socket): void => this.activeRequests.endConnection(socket);
    this.connections = new OpenConnections({ limits, clock, observe: unrouted.observe, reject, onLost });
  }

  /** Makes one http.Server per address family; all share this port's state. */
  createServer(): http.Server {
    const server = createProxyHttpServer(this.#options, (socket) => this.connections.accept(socket));
    const serve = this.#handleRequest.bind(this);
    server.on('checkContinue', acceptExpectation);
    server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    server.on('clientError', (error, socket) => this.#closingConnections.rejectUnparsable(error, socket));
    server.on('connect', (request: IncomingMessage, stream: Duplex) => {
      this.connections.handOver(request.socket);
      this.#closingConnections.rejectHandedOver(
        request,
        stream,
        new SidecarError(
          'METHOD_NOT_ALLOWED',
          'CONNECT is not forwarded: a client that uses the sidecar as its proxy sends it for an https: URL; call an http: URL',
        ),
      );
    });
    server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      this.connections.handOver(request.socket);
      void this.#handleUpgrade(request, stream, head);
    });
    this.#servers.push(server);
    return server;
  }

  /** From now on every response closes its connection. */
  startClosing(): void {
    this.#phase = 'closing';
    this.activeRequests.closeAfterResponses();
  }

  /** Accepts no more connections, and rejects new requests on open ones with DRAINING. */
  stopAccepting(): void {
    this.#phase = 'rejecting';
    // http.Server's own close would reset idle connections, on which a pooled client may just be sending.
    for (const server of this.#servers) net.Server.prototype.close.call(server);
  }

  /** Ends every request in progress: DRAINING if it was not sent; responses that have begun are cut. @returns how many */
  abortAll(): number {
    return this.activeRequests.abortAll({ kind: 'draining', error: createDrainingError() });
  }

  closeConnections(): void {
    this.connections.closeAll();
    for (const server of this.#servers) server.close();
  }

  #handleRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // Behind a response that closes the connection no request is processed (RFC 9112 §9.6).
    if (this.#closingConnections.has(socket)) {
      stopParsing(socket);
      return;
    }
    const { clock, unrouted, guard, startTracer } = this.#options;
    const startedAt = clock.now();
    const head = guard.readHead(request.rawHeaders);
    const fault = this.connections.beginRequest(socket, head.bytes, this.activeRequests.count);
    const tracer = startTracer?.(request);
    const stats = createRequestStats(head, tracer);
    if (this.#phase !== 'open' || fault === TOO_MANY_PIPELINED) this.activeRequests.closeConnectionAfter(response);
    const checked: CheckedRequest =
      fault === undefined
        ? checkRequest(this.#options, request, head, startedAt)
        : { kind: 'rejected', error: fault, route: undefined };
    if (checked.kind !== 'passed') response.once('close', () => this.connections.endRequest(socket));
    if (checked.kind === 'preflight') {
      replyToPreflight(request, response, checked.corsOrigin);
      recordOutcome(unrouted, request, { kind: 'preflight' }, stats, clock.now() - startedAt, tracer);
      return;
    }
    if (checked.kind === 'rejected') {
      const { error, route = { context: unrouted } } = checked;
      stats.responseBytes = this.#reply(
        request,
        response,
        error,
        describeRequest(request, stats, route.context.maskSecrets),
      );
      recordOutcome(route.context, request, { kind: 'replied', error }, stats, clock.now() - startedAt, tracer);
      return;
    }
    this.#forward(checked, response, stats, tracer);
  }

  #forward(
    checked: Extract<CheckedRequest, { kind: 'passed' }>,
    response: ServerResponse,
    stats: RequestStats,
    tracer: RequestTracer | undefined,
  ): void {
    const active: ActiveExchange = {
      ...checked,
      routeContext: checked.route.context,
      request: response.req,
      response,
      stats,
      tracer,
      outcome: undefined,
      isBroken: false,
      isClosed: false,
      onConnectionClosed: () => this.#onConnectionClosed(active),
    };
    this.activeRequests.add(active);
    response.on('close', active.onConnectionClosed);
    const isRejected = this.#phase === 'rejecting';
    const forwarding = isRejected ? Promise.reject(createDrainingError()) : forwardRequest(active.routeContext, active);
    forwarding.then(
      (outcome) => this.#onOutcome(active, outcome),
      (thrown: unknown) => this.#onOutcome(active, this.#replyToFailure(active, thrown)),
    );
  }

  #onOutcome(active: ActiveExchange, outcome: RequestOutcome): void {
    active.outcome = outcome;
    active.isBroken = outcome.kind === 'relayed' && outcome.fault !== undefined;
    if (active.isClosed) this.#completeExchange(active, this.#recordExchange(active, outcome));
    // The connection stays open until the client has had time to read what came.
    else if (active.isBroken) this.#recordExchange(active, outcome);
  }

  /** Called by the response's `close`. Node.js 22 and 24.9 emit none for a response that waits behind another one. */
  #onConnectionClosed(active: ActiveExchange): void {
    if (active.response.writableFinished) this.#closeExchange(active);
    // By the next turn a response that the sidecar has broken off has its outcome.
    else
      setImmediate(() => {
        if (!active.isBroken) active.lifetime.abort({ kind: 'client-left' });
        this.#closeExchange(active);
      });
  }

  #closeExchange(active: ActiveExchange): void {
    const { outcome, isBroken, isClosed } = active;
    active.isClosed = true;
    if (isClosed || outcome === undefined) return;
    this.#completeExchange(active, isBroken ? undefined : this.#recordExchange(active, outcome));
  }

  /** Called once, when the response has gone or has broken off. @returns the instant */
  #recordExchange(active: ActiveExchange, outcome: RequestOutcome): number {
    const { request, response, lifetime, routeContext, stats, tracer } = active;
    const now = this.#options.clock.now();
    const recorded = lifetime.aborted?.reason.kind === 'client-left' ? CLIENT_LEFT : outcome;
    try {
      recordOutcome(routeContext, request, recorded, stats, now - lifetime.arrivedAt, tracer);
      if (stats.callId !== undefined) {
        const status = outcome.kind === 'relayed' ? outcome.status : undefined;
        const reason = explainUnknown(recorded, stats, response.writableFinished);
        routeContext.unknownCalls?.conclude(stats.callId, reason, status);
      }
      if (active.isBroken && this.#closingConnections.has(request.socket)) this.activeRequests.abortFollowing(active);
    } catch (thrown) {
      this.#toSidecarError(thrown);
      request.socket.destroy();
    }
    return now;
  }

  /** Called once after that, when the connection is done with the response. @param now default: the clock is read */
  #completeExchange(active: ActiveExchange, now?: number): void {
    const { request, lifetime } = active;
    lifetime.clearDeadline();
    this.activeRequests.remove(active);
    this.connections.endRequest(request.socket, now);
    if (this.#closingConnections.has(request.socket)) this.#closingConnections.onRequestEvent(request.socket);
  }

  #replyToFailure(
    { request, response, corsOrigin, stats, routeContext }: ActiveExchange,
    thrown: unknown,
  ): RequestOutcome {
    if (thrown instanceof RequestAborted) return CLIENT_LEFT;
    const error = this.#toSidecarError(thrown);
    try {
      const extraHeaders = corsOrigin === undefined ? [] : corsHeaders(corsOrigin);
      if (response.headersSent || response.destroyed) {
        breakOff(response, this.#options.clock);
      } else {
        const facts = describeRequest(request, stats, routeContext.maskSecrets);
        stats.responseBytes = this.#reply(request, response, error, facts, extraHeaders);
      }
    } catch (fault) {
      this.#toSidecarError(fault);
      request.socket.destroy();
    }
    return { kind: 'replied', error };
  }

  #reply(
    request: IncomingMessage,
    response: ServerResponse,
    error: SidecarError,
    facts: ReplyFacts,
    extraHeaders: readonly string[] = [],
  ): number {
    const { socket } = request;
    const isBroken = this.#closingConnections.has(socket);
    const sentBytes = sendLocalReply(request, response, error, facts, { extraHeaders, isBroken });
    if (!response.shouldKeepAlive) this.#closingConnections.add(socket);
    return sentBytes;
  }

  async #handleUpgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    const { socket } = request;
    const { clock, unrouted, guard } = this.#options;
    const startedAt = clock.now();
    const requestHead = guard.readHead(request.rawHeaders);
    const checked = checkRequest(this.#options, request, requestHead, startedAt);
    const route = checked.kind === 'preflight' ? undefined : checked.route;
    const serveUpgrade = route?.serveUpgrade;
    const isPipelined = this.#closingConnections.has(socket) || this.activeRequests.listBySocket(socket).length > 0;
    const rejection =
      checked.kind === 'rejected'
        ? checked.error
        : checkUpgrade(request, { isEnabled: serveUpgrade !== undefined, isPipelined });
    if (rejection !== undefined || checked.kind !== 'passed' || serveUpgrade === undefined) {
      if (checked.kind === 'passed') checked.lifetime.clearDeadline();
      const error = rejection ?? createDrainingError();
      this.#closingConnections.rejectHandedOver(request, stream, error, route?.context ?? unrouted);
      return;
    }
    const { lifetime } = checked;
    const { context: routeContext } = checked.route;
    const stats = createRequestStats(requestHead);
    const active: ActiveRequest = { lifetime, request, stats };
    this.activeRequests.add(active);
    let outcome: RequestOutcome;
    try {
      if (this.#phase === 'rejecting') throw createDrainingError();
      outcome = await serveUpgrade(routeContext, { ...checked, request, socket, head, stats });
    } catch (thrown) {
      outcome =
        thrown instanceof RequestAborted ? CLIENT_LEFT : { kind: 'replied', error: this.#toSidecarError(thrown) };
      if (outcome.kind === 'replied')
        sendRawLocalReply(socket, outcome.error, describeRequest(request, stats, routeContext.maskSecrets));
    }
    recordOutcome(routeContext, request, outcome, stats, clock.now() - startedAt);
    lifetime.clearDeadline();
    this.activeRequests.remove(active);
  }
}
