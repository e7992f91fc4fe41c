/**
 * One WebSocket handshake with the upstream (RFC 6455 §4), carried by http-proxy-3, which also joins the two connections
 * afterwards. A 401 marks the token, a 429 signals the governor; neither is replayed, and any answer but 101 is passed on.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ProxyServer } from 'http-proxy-3';
import type { Egress } from '../egress/egress.ts';
import { createTunnelAgent } from '../egress/tunnel-agent.ts';
import { SidecarError } from '../errors.ts';
import { answerOutcome, failureOutcome, faultOf, isOwnEnd } from '../exchange/attempt-outcome.ts';
import type { ExchangeParts, Tally } from '../exchange/exchange.ts';
import type { Lifeline } from '../exchange/lifeline.ts';
import { nameEnd } from '../exchange/stage.ts';
import type { Permit, Standing } from '../throttle/throttle.ts';
import type { Trust } from '../tls.ts';
import type { Token } from '../token/token.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  timeoutFailure,
  type UpstreamFailure,
} from '../upstream/failure.ts';
import { endToEndRequestFields, endToEndResponseFields } from '../upstream/fields.ts';
import { replyRaw } from './local-reply.ts';
import { keepPace } from './refused-upgrade.ts';

/** One upgrade that passed the guard. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came behind the request's head. */
  readonly head: Buffer;
  /** Path and query on the upstream. */
  readonly path: string;
  /** Whose turn in the queue it takes. */
  readonly standing: Standing;
  readonly lifeline: Lifeline;
  readonly tally: Tally;
}

/**
 * Sends the upgrade; resolves with the status that the upstream answered.
 * @throws SidecarError, LifelineEnded; a SidecarError has been answered already
 */
export type ShakeHands = (parts: ExchangeParts, upgrade: Upgrade, permit: Permit, token: Token) => Promise<number>;

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
  readonly #outcome = Promise.withResolvers<number>();
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

  async run(proxy: ProxyServer, trust: Trust | undefined, egress: Egress): Promise<number> {
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
    const { request, socket, head, path } = this.#upgrade;
    const { baseUrl } = this.#parts.upstream;
    const target = request.url;
    request.headers = this.#headers();
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
        head,
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
    const { path, socket, lifeline } = this.#upgrade;
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
    proxyRequest.once('upgrade', (answer) => {
      // From here on the two connections read from each other.
      socket.removeAllListeners('readable');
      this.#finish(101, answer);
    });
    proxyRequest.once('response', (answer) => {
      answer.headers = endToEndHeaders(answer);
      this.#finish(answer.statusCode ?? 502, answer);
      // Cut short here, it is cut short for the client, whose connection ends with its lifeline.
      const cut = (failure: UpstreamFailure): void => lifeline.end({ kind: 'failed', error: faultOf(failure) });
      keepPace(answer, socket, this.#parts, cut);
      answer.once('close', () => {
        // The client has left, or has it all.
        if (!socket.destroyed && !answer.complete) cut(describeExchangeFailure(answer.errored));
      });
    });
  }

  #finish(status: number, answer: IncomingMessage): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { clock, observe, route, tokens, answerSignals } = this.#parts;
    const statusText = answer.statusMessage ?? '';
    const { result, isRateLimited } = answerSignals.read({ status, statusText, fields: answer.rawHeaders });
    const outcome = status === 101 ? 'ok' : answerOutcome(status, isRateLimited);
    observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - this.#sentAt });
    this.#permit.report(result);
    if (status === 401) void tokens.unauthorized(this.#token, new AbortController().signal);
    this.#outcome.resolve(status);
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { clock, observe, route } = this.#parts;
    const { lifeline, socket } = this.#upgrade;
    const isPastDeadline = lifeline.leftMs <= 0;
    observe({
      ...{ kind: 'attempt-ended', route, durationMs: clock.now() - this.#sentAt },
      outcome: failureOutcome(failure, isPastDeadline),
      isOwn: isOwnEnd(failure, isPastDeadline),
    });
    const fault = lifeline.ended === undefined ? faultOf(failure) : nameEnd('upstream', lifeline.ended);
    // Before http-proxy-3 hears of it, which closes the socket.
    if (fault instanceof SidecarError) replyRaw(socket, fault, clock);
    this.#outcome.reject(fault);
    this.#opening.abort();
    this.#proxyRequest?.destroy();
  }

  /** The end-to-end fields, and of the connection-specific ones those that make the upgrade. */
  #headers(): Record<string, string> {
    const { observe, requiredHeader } = this.#parts;
    const { fields, hadAuthorization } = endToEndRequestFields(this.#upgrade.request.rawHeaders, requiredHeader);
    if (hadAuthorization) observe({ kind: 'authorization-overridden' });
    const headers = Object.create(null) as Record<string, string>;
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const name = (fields[at] ?? '').toLowerCase();
      const before = headers[name];
      headers[name] = before === undefined ? (fields[at + 1] ?? '') : `${before}, ${fields[at + 1] ?? ''}`;
    }
    return Object.assign(headers, { connection: 'Upgrade', upgrade: 'websocket' });
  }
}

/** What http-proxy-3 passes on of an answer that is no upgrade; the connection is closed after it. */
function endToEndHeaders({ headers, rawHeaders }: IncomingMessage): IncomingHttpHeaders {
  const kept = new Set(
    endToEndResponseFields(rawHeaders, (location) => location, undefined)
      .filter((_, at) => at % 2 === 0)
      .map((name) => name.toLowerCase()),
  );
  return { ...Object.fromEntries(Object.entries(headers).filter(([name]) => kept.has(name))), connection: 'close' };
}
