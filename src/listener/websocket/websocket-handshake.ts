/**
 * One WebSocket handshake with the upstream (RFC 6455 §4), carried by http-proxy-3, which also joins the two connections
 * afterwards. A 401 marks the token, a 429 signals the governor; neither is replayed, and any answer but 101 is passed on.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ProxyServer } from 'http-proxy-3';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { createTunnelAgent } from '../../platform/egress/tunnel-agent.ts';
import { SidecarError } from '../../platform/errors.ts';
import { labelResponse, labelFailure, toSidecarError, isLocalEnd } from '../../exchange/attempt-outcome.ts';
import type { ExchangeParts, RequestStats } from '../../exchange/exchange.ts';
import type { RequestLifetime } from '../../exchange/request-lifetime.ts';
import { toStageError } from '../../exchange/stage.ts';
import type { Permit, QueueClass } from '../../throttle/throttle.ts';
import type { TlsContextProvider } from '../../platform/tls.ts';
import type { Token } from '../../token/token.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  timeoutFailure,
  type UpstreamFailure,
} from '../../upstream/failure.ts';
import type { EarlyBytes } from './early-bytes.ts';
import { sendRawLocalReply } from '../local-reply.ts';
import { limitBodyToClientPace } from './refused-upgrade-body.ts';
import { closeTogether } from './tunnel-teardown.ts';
import { buildUpgradeRequestHeaders, buildRefusalHeaders } from './upgrade-headers.ts';
import { interceptUpgradeResponse } from './upgrade-response.ts';

/** One upgrade to ask the upstream for. */
export interface PendingUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sends before the upstream has accepted. */
  readonly earlyBytes: EarlyBytes;
  /** Path and query on the upstream. */
  readonly path: string;
  /** Whose turn in the queue it takes. */
  readonly queueClass: QueueClass;
  readonly lifetime: RequestLifetime;
  readonly stats: RequestStats;
}

/** The upstream's response to an upgrade, which has begun to go to the client. */
export interface HandshakeResult {
  readonly status: number;
  /** The connection that was upgraded; undefined when the upstream refused. */
  readonly upstream?: Socket;
  /** Resolves when all connections that belong to the response are closed. */
  readonly whenClosed: Promise<void>;
}

/**
 * Sends the upgrade; resolves when the upstream has responded.
 * @throws SidecarError, LifelineEnded; a SidecarError has been answered already
 */
export type PerformHandshake = (
  parts: ExchangeParts,
  upgrade: PendingUpgrade,
  permit: Permit,
  token: Token,
) => Promise<HandshakeResult>;

/**
 * @param trust for an `https:` upstream; undefined for `http:`
 * @param egress the way to the upstream
 */
export function createHandshake(trust: TlsContextProvider | undefined, egress: ProxySelector): PerformHandshake {
  let proxy: ProxyServer | undefined;
  return async (parts, upgrade, permit, token) => {
    // Loaded by the first upgrade: most sidecars never see one.
    const { createProxyServer } = await import('http-proxy-3');
    // Unheard, it throws a client's reset, which is told of by the socket's 'close', and ends the process.
    proxy ??= createProxyServer().on('error', () => undefined);
    const { aborted } = upgrade.lifetime;
    if (aborted !== undefined) throw toStageError('upstream', aborted);
    return new Handshake(parts, upgrade, permit, token).run(proxy, trust, egress);
  };
}

class Handshake {
  readonly #parts: ExchangeParts;
  readonly #upgrade: PendingUpgrade;
  readonly #permit: Permit;
  readonly #token: Token;
  readonly #sentAt: number;
  readonly #result = Promise.withResolvers<HandshakeResult>();
  readonly #connectAborter = new AbortController();
  #proxyRequest: ClientRequest | undefined;
  #hasConnected = false;
  #isSettled = false;

  constructor(parts: ExchangeParts, upgrade: PendingUpgrade, permit: Permit, token: Token) {
    this.#parts = parts;
    this.#upgrade = upgrade;
    this.#permit = permit;
    this.#token = token;
    this.#sentAt = parts.clock.now();
  }

  async run(
    proxy: ProxyServer,
    trust: TlsContextProvider | undefined,
    egress: ProxySelector,
  ): Promise<HandshakeResult> {
    const { clock, requestTimeoutMs } = this.#parts;
    const cancelTimer = clock.after(requestTimeoutMs, () => {
      this.#fail(timeoutFailure(requestTimeoutMs));
    });
    const { lifetime } = this.#upgrade;
    const abort = (): void => this.#fail(abortedFailure());
    lifetime.onAbort(abort);
    try {
      this.#send(proxy, trust, egress);
      return await this.#result.promise;
    } finally {
      cancelTimer();
      lifetime.offAbort(abort);
    }
  }

  #send(proxy: ProxyServer, trust: TlsContextProvider | undefined, egress: ProxySelector): void {
    const { request, socket, path } = this.#upgrade;
    const { requiredHeader, observe, upstream } = this.#parts;
    const { baseUrl } = upstream;
    const target = request.url;
    const { headers, hadAuthorization } = buildUpgradeRequestHeaders(request, requiredHeader);
    if (hadAuthorization) observe({ kind: 'authorization-overridden' });
    request.headers = headers;
    const onProxyRequest = (proxyRequest: ClientRequest, original: IncomingMessage): void => {
      if (original === request) this.#prepareRequest(proxyRequest);
    };
    proxy.on('proxyReqWs', onProxyRequest);
    try {
      const egressProxy = egress(baseUrl);
      // http-proxy-3 takes the target apart, and throws where an absolute one is no URL.
      request.url = path;
      proxy.ws(
        request,
        socket,
        Buffer.alloc(0),
        {
          target: baseUrl.origin,
          changeOrigin: true,
          ...(trust === undefined ? {} : { ssl: { secureContext: trust() } }),
          ...(egressProxy && { agent: createTunnelAgent(egressProxy, baseUrl, this.#connectAborter.signal) }),
        },
        // Also called when an upgraded connection breaks: the handshake is long over then.
        (error) => {
          this.#fail(this.#hasConnected ? classifyExchangeError(error) : classifyConnectError(error));
        },
      );
      if (this.#proxyRequest !== undefined) this.#interceptResponse(this.#proxyRequest);
    } catch (thrown) {
      this.#abandon();
      throw thrown;
    } finally {
      proxy.off('proxyReqWs', onProxyRequest);
      // What the client asked for is told of when it has ended.
      request.url = target;
    }
  }

  /** Of what could not be sent nothing is left. */
  #abandon(): void {
    this.#isSettled = true;
    this.#connectAborter.abort();
    // http-proxy-3 does not hear it yet; unheard, its end would end the process.
    this.#proxyRequest?.on('error', () => undefined).destroy();
  }

  #prepareRequest(proxyRequest: ClientRequest): void {
    const { path } = this.#upgrade;
    this.#permit.markSent();
    const isSecure = this.#parts.upstream.baseUrl.protocol === 'https:';
    this.#proxyRequest = proxyRequest;
    // The joined path, byte for byte: http-proxy-3 would normalise it.
    proxyRequest.path = path;
    // Not among http-proxy-3's options: NODE_DEBUG=net prints those with which a connection is opened.
    proxyRequest.setHeader('Authorization', `Bearer ${this.#token.value}`);
    proxyRequest.once('socket', (upstreamSocket) => {
      // A tunnel is there before the request is.
      this.#hasConnected = !isSecure && !upstreamSocket.connecting;
      upstreamSocket.once(isSecure ? 'secureConnect' : 'connect', () => {
        this.#hasConnected = true;
      });
    });
  }

  #interceptResponse(proxyRequest: ClientRequest): void {
    const { request, socket, earlyBytes } = this.#upgrade;
    interceptUpgradeResponse(proxyRequest, request.headers, {
      onAccepted: (response, upstream, join) => {
        if (this.#isSettled) return void upstream.destroy();
        earlyBytes.unshift();
        // Each side may end its own half and read on.
        socket.allowHalfOpen = upstream.allowHalfOpen = true;
        join();
        const whenClosed = closeTogether(socket, upstream, this.#parts.clock);
        this.#complete({ status: 101, upstream, whenClosed }, response);
      },
      onRefused: (response, passOn) => this.#relayRefusal(response, passOn),
      onInvalid: (failure) => this.#fail(failure),
    });
  }

  #relayRefusal(response: IncomingMessage, passOn: () => void): void {
    const { socket, lifetime, earlyBytes } = this.#upgrade;
    response.headers = buildRefusalHeaders(response);
    earlyBytes.stopKeeping();
    const whenClosed = new Promise<void>((resolve) => socket.once('close', resolve));
    this.#complete({ status: response.statusCode ?? 502, whenClosed }, response);
    // Cut short here, it is cut short for the client, whose connection ends with its lifeline.
    const cut = (failure: UpstreamFailure): void => lifetime.abort({ kind: 'failed', error: toSidecarError(failure) });
    limitBodyToClientPace(response, socket, this.#parts, cut);
    response.once('close', () => {
      // The client has left, or has it all.
      if (!socket.destroyed && !response.complete) cut(classifyExchangeError(response.errored));
    });
    passOn();
  }

  #complete(handshaken: HandshakeResult, answer: IncomingMessage): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { status } = handshaken;
    const { clock, observe, route, tokens, responseClassifier } = this.#parts;
    const statusText = answer.statusMessage ?? '';
    const { permitReport, isRateLimited } = responseClassifier.classify({
      status,
      statusText,
      headers: answer.rawHeaders,
    });
    const outcome = status === 101 ? 'ok' : labelResponse(status, isRateLimited);
    observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - this.#sentAt });
    this.#permit.report(permitReport);
    if (status === 401) void tokens.handleUnauthorized(this.#token, new AbortController().signal);
    this.#result.resolve(handshaken);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    const { clock, observe, route } = this.#parts;
    const { lifetime, socket } = this.#upgrade;
    const why = lifetime.aborted?.reason;
    observe({
      ...{ kind: 'attempt-ended', route, durationMs: clock.now() - this.#sentAt },
      outcome: labelFailure(failure, why),
      isOwn: isLocalEnd(failure, why),
    });
    const fault = lifetime.aborted === undefined ? toSidecarError(failure) : toStageError('upstream', lifetime.aborted);
    // Before http-proxy-3 hears of it, which closes the socket.
    if (fault instanceof SidecarError) sendRawLocalReply(socket, fault, clock);
    this.#result.reject(fault);
    this.#connectAborter.abort();
    this.#proxyRequest?.destroy();
  }
}
