/**
 * One WebSocket handshake with the upstream (RFC 6455 §4), sent by http-proxy-3, which then joins the two connections. A 401 invalidates
 * the token and a rate-limit refusal is reported to the throttle; neither is retried, and every response but a 101 is relayed.
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ProxyServer } from 'http-proxy-3';
import { createEgressAgent } from '../../platform/egress/egress-agent.ts';
import { SidecarError } from '../../platform/errors.ts';
import {
  labelResponse,
  showsAcceptedToken,
  classifyFailure,
  toSidecarError,
  toAttemptError,
} from '../../exchange/attempt-outcome.ts';
import { describeClientView } from '../../exchange/relay.ts';
import type { Exchange, RouteContext } from '../../exchange/exchange.ts';
import { toStageError } from '../../exchange/request-lifetime.ts';
import type { Permit } from '../../throttle/throttle.ts';
import type { TokenUse } from '../../token/token.ts';
import type { UpstreamOptions } from '../../upstream/client.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  timeoutFailure,
  type UpstreamFailure,
} from '../../upstream/failure.ts';
import { findUpstreamRequestId } from '../../upstream/upstream-response.ts';
import { describeRequest } from '../correlation.ts';
import type { EarlyBytes } from './early-bytes.ts';
import { sendRawLocalReply } from '../local-reply.ts';
import {
  limitBodyToClientPace,
  buildUpgradeRequestHeaders,
  buildUpgradeResponseHeaders,
  interceptUpgradeResponse,
  limitHead,
  toHeaderOverflow,
} from './http-proxy-adapter.ts';
import { closeTogether } from './tunnel-teardown.ts';

/** An upgrade that the upstream has not accepted yet. */
export interface PendingUpgrade extends Omit<Exchange, 'response' | 'corsOrigin' | 'tracer'> {
  readonly socket: Socket;
  readonly earlyBytes: EarlyBytes;
}

/** The upstream's response to an upgrade; its relay to the client has begun. */
interface HandshakeResult {
  readonly status: number;
  /** The upgraded connection; undefined when the upstream declined. */
  readonly upstream?: Socket;
  /** Resolves when all connections that belong to the response are closed. */
  readonly whenClosed: Promise<void>;
}

/** Where the upgrades of a route go. */
export type UpgradeTarget = Pick<UpstreamOptions, 'trust' | 'egress' | 'connectTimeoutMs' | 'maxHeaderBytes'>;

/**
 * Returns what sends an upgrade, and resolves when the upstream has responded.
 * @throws RequestAborted; SidecarError, whose local reply has been sent
 */
export function createHandshake(target: UpgradeTarget) {
  let proxy: ProxyServer | undefined;
  return async (
    routeContext: RouteContext,
    upgrade: PendingUpgrade,
    permit: Permit,
    tokenUse: TokenUse,
  ): Promise<HandshakeResult> => {
    // Loaded for the first upgrade: most sidecars have none.
    const { createProxyServer } = await import('http-proxy-3');
    // Without a listener, a client's reset would end the process; the socket's 'close' handles it.
    proxy ??= createProxyServer().on('error', () => undefined);
    const { aborted } = upgrade.lifetime;
    if (aborted !== undefined) throw toStageError('upstream', aborted);
    return new Handshake(routeContext, upgrade, permit, tokenUse).run(proxy, target);
  };
}

class Handshake {
  readonly #routeContext: RouteContext;
  readonly #upgrade: PendingUpgrade;
  readonly #permit: Permit;
  readonly #tokenUse: TokenUse;
  readonly #sentAt: number;
  readonly #result = Promise.withResolvers<HandshakeResult>();
  readonly #connectAborter = new AbortController();
  #proxyRequest: ClientRequest | undefined;
  #hasConnected = false;
  #isSettled = false;

  constructor(routeContext: RouteContext, upgrade: PendingUpgrade, permit: Permit, tokenUse: TokenUse) {
    this.#routeContext = routeContext;
    this.#upgrade = upgrade;
    this.#permit = permit;
    this.#tokenUse = tokenUse;
    this.#sentAt = routeContext.clock.now();
  }

  async run(proxy: ProxyServer, target: UpgradeTarget): Promise<HandshakeResult> {
    const { clock, timeouts } = this.#routeContext;
    const cancelTimer = clock.after(timeouts.requestTimeoutMs, () => {
      this.#fail(timeoutFailure(timeouts.requestTimeoutMs));
    });
    const { lifetime } = this.#upgrade;
    const abort = (): void => this.#fail(abortedFailure());
    lifetime.onAbort(abort);
    try {
      this.#send(proxy, target);
      return await this.#result.promise;
    } finally {
      cancelTimer();
      lifetime.offAbort(abort);
    }
  }

  #send(proxy: ProxyServer, target: UpgradeTarget): void {
    const { request, socket, path } = this.#upgrade;
    const { maxHeaderBytes } = target;
    const { addedHeaders, observe, baseUrl } = this.#routeContext;
    const clientTarget = request.url;
    const { headers, hadAuthorization } = buildUpgradeRequestHeaders(request, addedHeaders.filter);
    if (hadAuthorization) observe({ kind: 'authorization-overridden' });
    request.headers = headers;
    const onProxyRequest = (proxyRequest: ClientRequest, original: IncomingMessage): void => {
      if (original === request) this.#prepareRequest(proxyRequest);
    };
    proxy.on('proxyReqWs', onProxyRequest);
    try {
      // http-proxy-3 parses the target, and throws when an absolute one is no valid URL.
      request.url = path;
      proxy.ws(
        request,
        socket,
        Buffer.alloc(0),
        {
          target: baseUrl.origin,
          changeOrigin: true,
          // All of it is given to the request.
          ssl: limitHead(maxHeaderBytes),
          agent: this.#createAgent(target),
        },
        // Also called when an upgraded connection breaks, after the handshake.
        (error) => this.#fail(this.#classify(error, maxHeaderBytes)),
      );
      if (this.#proxyRequest !== undefined) this.#interceptResponse(this.#proxyRequest, maxHeaderBytes);
    } catch (thrown) {
      this.#abandon();
      throw thrown;
    } finally {
      proxy.off('proxyReqWs', onProxyRequest);
      // The recorded outcome has the client's own path.
      request.url = clientTarget;
    }
  }

  #createAgent({ trust, egress, connectTimeoutMs: timeoutMs }: UpgradeTarget): Agent {
    const { baseUrl: destination, clock } = this.#routeContext;
    const { signal } = this.#connectAborter;
    return createEgressAgent({ destination, egress, secureContext: trust?.(), timeoutMs, clock, signal });
  }

  #classify(error: Error, maxHeaderBytes: number): UpstreamFailure {
    if (!this.#hasConnected) return classifyConnectError(error);
    return classifyExchangeError(toHeaderOverflow(error, maxHeaderBytes));
  }

  #abandon(): void {
    this.#isSettled = true;
    this.#connectAborter.abort();
    // http-proxy-3 has no error listener on it yet; without one, an error would end the process.
    this.#proxyRequest?.on('error', () => undefined).destroy();
  }

  #prepareRequest(proxyRequest: ClientRequest): void {
    const { path } = this.#upgrade;
    const { list, query } = this.#routeContext.addedHeaders;
    this.#permit.markSent();
    this.#proxyRequest = proxyRequest;
    // http-proxy-3 would normalise the path.
    proxyRequest.path = query === undefined ? path : query.addTo(path);
    // Not in http-proxy-3's options: NODE_DEBUG=net prints the options of a connection.
    const own = list(this.#tokenUse.token.value);
    for (let at = 0; at + 1 < own.length; at += 2) proxyRequest.setHeader(own[at] ?? '', own[at + 1] ?? '');
    proxyRequest.once('socket', () => {
      this.#hasConnected = true;
    });
  }

  #interceptResponse(proxyRequest: ClientRequest, maxHeaderBytes: number): void {
    const { request, socket, earlyBytes } = this.#upgrade;
    interceptUpgradeResponse(proxyRequest, request.headers, maxHeaderBytes, {
      onAccepted: (response, upstream, join) => {
        if (this.#isSettled) return void upstream.destroy();
        earlyBytes.unshift();
        // Each side may end its half and go on reading.
        socket.allowHalfOpen = upstream.allowHalfOpen = true;
        this.#rewriteHeaders(response);
        join();
        const whenClosed = closeTogether(socket, upstream, this.#routeContext.clock);
        this.#complete({ status: 101, upstream, whenClosed }, response);
      },
      onDeclined: (response, relay) => this.#relayDecline(response, relay),
      onInvalid: (failure) => this.#fail(failure),
    });
  }

  #relayDecline(response: IncomingMessage, relay: () => void): void {
    const { socket, lifetime, earlyBytes } = this.#upgrade;
    this.#rewriteHeaders(response);
    earlyBytes.stopKeeping();
    const whenClosed = new Promise<void>((resolve) => {
      socket.once('close', resolve);
      lifetime.onAbort(() => void response.destroy());
      lifetime.onAbort(() => resolve());
    });
    this.#complete({ status: response.statusCode ?? 502, whenClosed }, response);
    // A response that is cut is cut for the client: aborting the request resets its connection.
    const cut = (failure: UpstreamFailure): void => lifetime.abort({ kind: 'failed', error: toSidecarError(failure) });
    limitBodyToClientPace(response, socket, this.#routeContext, cut);
    response.once('close', () => {
      // Otherwise the client has left, or has the whole response.
      if (!socket.destroyed && !response.complete) cut(classifyExchangeError(response.errored));
    });
    relay();
  }

  /** To be called before http-proxy-3 writes the head to the client's socket, which it does from these headers. */
  #rewriteHeaders(response: IncomingMessage): void {
    // The encoding in which node:http read the head.
    this.#upgrade.socket.setDefaultEncoding('latin1');
    response.headers = buildUpgradeResponseHeaders(response, () =>
      describeClientView(this.#routeContext, this.#upgrade),
    );
  }

  #complete(result: HandshakeResult, response: IncomingMessage): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#upgrade.stats.upstreamRequestId = findUpstreamRequestId(response.rawHeaders);
    const { status } = result;
    const { clock, counters, tokens, responseClassifier, refusals } = this.#routeContext;
    const statusText = response.statusMessage ?? '';
    const head = { status, statusText, headers: response.rawHeaders };
    // The body of a declined upgrade is not read.
    const isConfiguredRefusal = refusals?.(head) === true;
    const { permitReport, isRateLimited } = responseClassifier.classify(head, isConfiguredRefusal);
    const outcome = status === 101 ? 'ok' : labelResponse(status, isRateLimited);
    counters.recordAttempt(outcome, clock.now() - this.#sentAt, false);
    this.#permit.report(permitReport);
    if (status === 401) tokens.recordRejected(this.#tokenUse);
    else if (showsAcceptedToken(status)) tokens.recordAccepted(this.#tokenUse, false);
    this.#result.resolve(result);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { clock, counters, observe, route, maskSecrets } = this.#routeContext;
    const { lifetime, request, socket, stats } = this.#upgrade;
    const end = classifyFailure(failure, lifetime.aborted?.reason, this.#hasConnected);
    counters.recordAttempt(end.outcome, clock.now() - this.#sentAt, end.isOwn);
    const { outcome, cause, detail, advice } = end;
    if (detail !== undefined) observe({ kind: 'attempt-failed', route, outcome, cause, detail, advice });
    const error = toAttemptError(failure, lifetime.aborted, this.#hasConnected);
    // Before the request is destroyed: http-proxy-3 then closes the client's socket.
    if (error instanceof SidecarError)
      sendRawLocalReply(socket, error, describeRequest(request, stats, maskSecrets), clock);
    this.#result.reject(error);
    this.#connectAborter.abort();
    this.#proxyRequest?.destroy();
  }
}
