/**
 * WebSocket upgrades (RFC 6455 §4), carried by http-proxy-3: same guard, permit and bearer as any request. One upgrade
 * is one permit; a 401 marks the token, a 429 signals the governor, and neither is replayed. h2c never.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';
import type { ProxyServer } from 'http-proxy-3';
import { SidecarError } from '../errors.ts';
import { answerOutcome, faultOf } from '../exchange/attempt-outcome.ts';
import type { ExchangeParts, Relayed, Tally } from '../exchange/exchange.ts';
import type { Lifeline } from '../exchange/lifeline.ts';
import { inStage, nameEnd } from '../exchange/stage.ts';
import { readRateLimitSignal } from '../throttle/rate-limit-signal.ts';
import type { Permit, Ticket } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import { describeConnectFailure, timeoutFailure } from '../upstream/failure.ts';
import { endToEndRequestFields } from '../upstream/fields.ts';
import { replyRaw } from './local-reply.ts';

/** One upgrade that passed the guard. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came behind the request's head. */
  readonly head: Buffer;
  /** Path and query on the upstream. */
  readonly path: string;
  readonly lifeline: Lifeline;
  readonly tally: Tally;
}

/**
 * Serves one upgrade; resolves when the upgraded connection, or the answer given instead, has ended.
 * @throws SidecarError, LifelineEnded
 */
export type ServeUpgrade = (parts: ExchangeParts, upgrade: Upgrade) => Promise<Relayed>;

/** Why an upgrade is refused without asking anybody; undefined when it is a WebSocket's and those are allowed. */
export function refuseUpgrade(request: IncomingMessage, isEnabled: boolean): SidecarError | undefined {
  const protocol = request.headers.upgrade?.toLowerCase() ?? '';
  if (protocol === 'websocket' && request.method === 'GET') {
    if (isEnabled) return undefined;
    return new SidecarError('UPGRADE_NOT_ALLOWED', 'WebSocket upgrades are off; SIDECAR_WEBSOCKET=true allows them');
  }
  const isHttp2 = protocol.split(',').some((name) => name.trim().startsWith('h2c'));
  return new SidecarError(
    'UPGRADE_NOT_ALLOWED',
    isHttp2
      ? 'HTTP/2 is not spoken here: set the client to HTTP/1.1 (in Java: HttpClient.Version.HTTP_1_1)'
      : 'only a GET may upgrade, and only to WebSocket',
  );
}

/** @param secureContext trust for an `https:` upstream */
export function createUpgradeServer(secureContext: SecureContext | undefined): ServeUpgrade {
  let proxy: ProxyServer | undefined;
  return async (parts, upgrade) => {
    const { socket, lifeline } = upgrade;
    const hasClosed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        lifeline.end({ kind: 'client-left' });
        resolve();
      });
    });
    // A client that vanishes is told of by 'close'.
    socket.on('error', () => socket.destroy());
    // Loaded by the first upgrade: most sidecars never see one.
    proxy ??= (await import('http-proxy-3')).createProxyServer();
    const { tokens, throttle } = parts;
    if (tokens.current() === undefined)
      await inStage(
        'token',
        lifeline.during((signal) => tokens.usable(signal)),
      );
    const ticket = throttle.enter(lifeline.deadlineAt);
    const letGo = lifeline.onEnd((reason) => {
      ticket.leave(reason);
      socket.destroy();
    });
    try {
      const { permit, token } = await takePermit(parts, ticket, lifeline);
      try {
        upgrade.tally.attempts = 1;
        const status = await shakeHands(proxy, parts, upgrade, { permit, token, secureContext });
        lifeline.meetDeadline();
        await hasClosed;
        return { status, fault: undefined };
      } finally {
        permit.release();
      }
    } finally {
      letGo();
      ticket.leave();
      upgrade.tally.queuedMs = ticket.waitedMs;
    }
  };
}

/** A permit that counts against the streams, and the token read the moment it was spent. */
async function takePermit(
  parts: ExchangeParts,
  ticket: Ticket,
  lifeline: Lifeline,
): Promise<{ permit: Permit; token: Token }> {
  await inStage('queue', ticket.admitted());
  for (;;) {
    const permit = await inStage('queue', ticket.permit());
    const token = parts.tokens.current();
    if (token === undefined) {
      permit.cancel();
      await inStage(
        'token',
        lifeline.during((signal) => parts.tokens.usable(signal)),
      );
    } else if (permit.becomeStream()) {
      return { permit, token };
    } else {
      permit.cancel();
      const detail = 'as many streams are open as throttle.maxStreams allows';
      throw new SidecarError('QUEUE_FULL', detail, { retryAfterMs: 1000 });
    }
  }
}

interface Handshake {
  readonly permit: Permit;
  readonly token: Token;
  readonly secureContext: SecureContext | undefined;
}

/** Sends the upgrade; resolves with the status that the upstream answered. */
function shakeHands(proxy: ProxyServer, parts: ExchangeParts, upgrade: Upgrade, handshake: Handshake): Promise<number> {
  const { request, socket, head, path, lifeline } = upgrade;
  const { permit, token, secureContext } = handshake;
  const { clock, observe, route, tokens, requestTimeoutMs } = parts;
  const sentAt = clock.now();
  request.headers = upgradeHeaders(request, parts.requiredHeader);
  let isAnswered = false;
  return new Promise((resolve, reject) => {
    const finish = (status: number, field: (name: string) => string | undefined): void => {
      cancelTimer();
      isAnswered = true;
      const outcome = status === 101 ? 'ok' : answerOutcome(status);
      observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - sentAt });
      const signal = readRateLimitSignal(status, field, clock.wallNow());
      permit.report(status === 429 ? { kind: 'rate-limited', signal } : { kind: 'accepted' });
      if (status === 401) void tokens.unauthorized(token, new AbortController().signal);
      resolve(status);
    };
    const onProxyRequest = (proxyRequest: ClientRequest, original: IncomingMessage): void => {
      if (original !== request) return;
      proxy.off('proxyReqWs', onProxyRequest);
      // The joined path, byte for byte: http-proxy-3 would normalise it.
      proxyRequest.path = path;
      proxyRequest.on('upgrade', (answer) => {
        finish(101, (name) => textOf(answer.headers[name]));
      });
      proxyRequest.on('response', (answer) => {
        finish(answer.statusCode ?? 502, (name) => textOf(answer.headers[name]));
      });
      lifeline.onEnd(() => proxyRequest.destroy());
    };
    const cancelTimer = clock.after(requestTimeoutMs, () => {
      reject(faultOf(timeoutFailure(requestTimeoutMs)));
    });
    proxy.on('proxyReqWs', onProxyRequest);
    proxy.ws(
      request,
      socket,
      head,
      {
        target: parts.upstream.baseUrl.origin,
        changeOrigin: true,
        headers: { authorization: `Bearer ${token.value}` },
        ...(secureContext === undefined ? {} : { ssl: { secureContext } }),
      },
      (error) => {
        cancelTimer();
        // Also called when an upgraded connection breaks: the handshake is long told of.
        if (isAnswered) return;
        observe({ kind: 'attempt-ended', route, outcome: 'unreachable', durationMs: clock.now() - sentAt });
        const fault =
          lifeline.ended === undefined ? faultOf(describeConnectFailure(error)) : nameEnd('upstream', lifeline.ended);
        // http-proxy-3 closes the socket as soon as this returns.
        if (fault instanceof SidecarError) replyRaw(socket, fault);
        reject(fault);
      },
    );
  });
}

/** The end-to-end fields, and of the connection-specific ones those that make the upgrade. */
function upgradeHeaders(request: IncomingMessage, requiredHeader: string | undefined): Record<string, string> {
  const { fields } = endToEndRequestFields(request.rawHeaders, requiredHeader);
  const headers = Object.create(null) as Record<string, string>;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    const before = headers[name];
    headers[name] = before === undefined ? (fields[at + 1] ?? '') : `${before}, ${fields[at + 1] ?? ''}`;
  }
  return Object.assign(headers, { connection: 'Upgrade', upgrade: 'websocket' });
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
