/**
 * One WebSocket handshake with the upstream (RFC 6455 §4), carried by http-proxy-3, which also joins the two connections
 * afterwards. A 401 marks the token, a 429 signals the governor; neither is replayed, and any answer but 101 is passed on.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ProxyServer } from 'http-proxy-3';
import type { Egress } from '../../platform/egress/egress.ts';
import { createTunnelAgent } from '../../platform/egress/tunnel-agent.ts';
import { SidecarError } from '../../platform/errors.ts';
import { answerOutcome, failureOutcome, faultOf, isOwnEnd } from '../../exchange/attempt-outcome.ts';
import type { ExchangeParts, Tally } from '../../exchange/exchange.ts';
import type { Lifeline } from '../../exchange/lifeline.ts';
import { nameEnd } from '../../exchange/stage.ts';
import type { Permit, Standing } from '../../throttle/throttle.ts';
import type { Trust } from '../../platform/tls.ts';
import type { Token } from '../../token/token.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  timeoutFailure,
  type UpstreamFailure,
} from '../../upstream/failure.ts';
import type { EarlyBytes } from './early-bytes.ts';
import { replyRaw } from '../local-reply.ts';
import { keepPace } from './refused-upgrade.ts';
import { endTogether } from './tunnel-end.ts';
import { requestHeaders, responseHeaders } from './upgrade-headers.ts';
import { judgeUpgradeResponse } from './upgrade-response.ts';

/** One upgrade to ask the upstream for. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sends before the upstream has accepted. */
  readonly early: EarlyBytes;
  /** Path and query on the upstream. */
  readonly path: string;
  /** Whose turn in the queue it takes. */
  readonly standing: Standing;
  readonly lifeline: Lifeline;
  readonly tally: Tally;
}

/** The upstream's response to an upgrade, which has begun to go to the client. */
export interface Handshaken {
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
export type ShakeHands = (parts: ExchangeParts, upgrade: Upgrade, permit: Permit, token: Token) => Promise<Handshaken>;

/**
 * @param trust for an `https:` upstream; undefined for `http:`
 * @param egress the way to the upstream
 */
export function createHandshake(trust: Trust | undefined, egress: Egress): ShakeHands {
  let proxy: ProxyServer | undefined;
  return async (parts, upgrade, permit, token) => {
    // Loaded by the first upgrade: most sidecars never see one.
    const { createProxyServer } = await import('http-proxy-3');
    // Unheard, it throws a client's reset, which is told of by the socket's 'close', and ends the process.
    proxy ??= createProxyServer().on('error', () => undefined);
    const { ended } = upgrade.lifeline;
    if (ended !== undefined) throw nameEnd('upstream', ended);
    return new Handshake(parts, upgrade, permit, token).run(proxy, trust, egress);
  };
}

class Handshake {
  readonly #parts: ExchangeParts;
  readonly #upgrade: Upgrade;
  readonly #permit: Permit;
  readonly #token: Token;
  readonly #sentAt: number;
  readonly #outcome = Promise.withResolvers<Handshaken>();
  readonly #opening = new AbortController();
  #proxyRequest: ClientRequest | undefined;
  #hasConnected = false;
  #isOver = false;

  constructor(parts: ExchangeParts, upgrade: Upgrade, permit: Permit, token: Token) {
    this.#parts = parts;
    this.#upgrade = upgrade;
    this.#permit = permit;
    this.#token = token;
    this.#sentAt = parts.clock.now();
  }

  async run(proxy: ProxyServer, trust: Trust | undefined, egress: Egress): Promise<Handshaken> {
    const { clock, requestTimeoutMs } = this.#parts;
    const cancelTimer = clock.after(requestTimeoutMs, () => {
      this.#fail(timeoutFailure(requestTimeoutMs));
    });
    const { lifeline } = this.#upgrade;
    const abort = (): void => this.#fail(abortedFailure());
    lifeline.onEnd(abort);
    try {
      this.#send(proxy, trust, egress);
      return await this.#outcome.promise;
    } finally {
      cancelTimer();
      lifeline.offEnd(abort);
    }
  }

  #send(proxy: ProxyServer, trust: Trust | undefined, egress: Egress): void {
    const { request, socket, path } = this.#upgrade;
    const { requiredHeader, observe, upstream } = this.#parts;
    const { baseUrl } = upstream;
    const target = request.url;
    const { headers, hadAuthorization } = requestHeaders(request, requiredHeader);
    if (hadAuthorization) observe({ kind: 'authorization-overridden' });
    request.headers = headers;
    const onProxyRequest = (proxyRequest: ClientRequest, original: IncomingMessage): void => {
      if (original === request) this.#watch(proxyRequest);
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
          ...(egressProxy && { agent: createTunnelAgent(egressProxy, baseUrl, this.#opening.signal) }),
        },
        // Also called when an upgraded connection breaks: the handshake is long over then.
        (error) => {
          this.#fail(this.#hasConnected ? describeExchangeFailure(error) : describeConnectFailure(error));
        },
      );
      if (this.#proxyRequest !== undefined) this.#judgeFirst(this.#proxyRequest);
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
    this.#isOver = true;
    this.#opening.abort();
    // http-proxy-3 does not hear it yet; unheard, its end would end the process.
    this.#proxyRequest?.on('error', () => undefined).destroy();
  }

  #watch(proxyRequest: ClientRequest): void {
    const { path } = this.#upgrade;
    this.#permit.used();
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

  #judgeFirst(proxyRequest: ClientRequest): void {
    const { request, socket, early } = this.#upgrade;
    judgeUpgradeResponse(proxyRequest, request.headers, {
      accepted: (response, upstream, join) => {
        if (this.#isOver) return void upstream.destroy();
        early.putBack();
        // Each side may end its own half and read on.
        socket.allowHalfOpen = upstream.allowHalfOpen = true;
        join();
        const whenClosed = endTogether(socket, upstream, this.#parts.clock);
        this.#finish({ status: 101, upstream, whenClosed }, response);
      },
      refused: (response, passOn) => this.#passOn(response, passOn),
      invalid: (failure) => this.#fail(failure),
    });
  }

  #passOn(response: IncomingMessage, passOn: () => void): void {
    const { socket, lifeline, early } = this.#upgrade;
    response.headers = responseHeaders(response);
    early.drop();
    const whenClosed = new Promise<void>((resolve) => socket.once('close', resolve));
    this.#finish({ status: response.statusCode ?? 502, whenClosed }, response);
    // Cut short here, it is cut short for the client, whose connection ends with its lifeline.
    const cut = (failure: UpstreamFailure): void => lifeline.end({ kind: 'failed', error: faultOf(failure) });
    keepPace(response, socket, this.#parts, cut);
    response.once('close', () => {
      // The client has left, or has it all.
      if (!socket.destroyed && !response.complete) cut(describeExchangeFailure(response.errored));
    });
    passOn();
  }

  #finish(handshaken: Handshaken, answer: IncomingMessage): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { status } = handshaken;
    const { clock, observe, route, tokens, answerSignals } = this.#parts;
    const statusText = answer.statusMessage ?? '';
    const { result, isRateLimited } = answerSignals.read({ status, statusText, fields: answer.rawHeaders });
    const outcome = status === 101 ? 'ok' : answerOutcome(status, isRateLimited);
    observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - this.#sentAt });
    this.#permit.report(result);
    if (status === 401) void tokens.unauthorized(this.#token, new AbortController().signal);
    this.#outcome.resolve(handshaken);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { clock, observe, route } = this.#parts;
    const { lifeline, socket } = this.#upgrade;
    const why = lifeline.ended?.end;
    observe({
      ...{ kind: 'attempt-ended', route, durationMs: clock.now() - this.#sentAt },
      outcome: failureOutcome(failure, why),
      isOwn: isOwnEnd(failure, why),
    });
    const fault = lifeline.ended === undefined ? faultOf(failure) : nameEnd('upstream', lifeline.ended);
    // Before http-proxy-3 hears of it, which closes the socket.
    if (fault instanceof SidecarError) replyRaw(socket, fault, clock);
    this.#outcome.reject(fault);
    this.#opening.abort();
    this.#proxyRequest?.destroy();
  }
}
