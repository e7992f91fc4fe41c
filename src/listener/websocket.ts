/**
 * WebSocket upgrades (RFC 6455 §4): the guard, permit and bearer of every other request, one permit for one upgrade. h2c never.
 * Asking the upstream is handshake.ts's.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Egress } from '../egress/egress.ts';
import { SidecarError } from '../errors.ts';
import type { ExchangeParts, Relayed } from '../exchange/exchange.ts';
import type { Lifeline, LifelineEnded } from '../exchange/lifeline.ts';
import { awaitToken, inStage, nameEnd } from '../exchange/stage.ts';
import type { Permit, Ticket } from '../throttle/throttle.ts';
import type { Trust } from '../tls.ts';
import type { Token } from '../token/token.ts';
import { createHandshake, type Upgrade } from './handshake.ts';

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

/**
 * @param trust for an `https:` upstream; undefined for `http:`
 * @param egress the way to the upstream
 */
export function createUpgradeServer(trust: Trust | undefined, egress: Egress): ServeUpgrade {
  const shakeHands = createHandshake(trust, egress);
  return async (parts, upgrade) => {
    const { socket, lifeline } = upgrade;
    const left = whenLeft(socket);
    void left.then(() => {
      lifeline.end({ kind: 'client-left' });
    });
    const { tokens, throttle } = parts;
    if (tokens.current() === undefined) await awaitToken(tokens, lifeline);
    if (lifeline.ended !== undefined) throw lifeline.ended;
    const ticket = throttle.enter(lifeline.deadlineAt, upgrade.standing, false);
    const leave = (reason: LifelineEnded): void => {
      // The queue keeps the deadline itself.
      if (reason.end.kind !== 'deadline') ticket.leave(nameEnd('queue', reason));
    };
    lifeline.onEnd(leave);
    try {
      const { permit, token } = await takePermit(parts, ticket, lifeline);
      try {
        upgrade.tally.attempts = 1;
        const status = await shakeHands(parts, upgrade, permit, token);
        lifeline.meetDeadline();
        lifeline.onEnd(() => socket.destroy());
        await left;
        return { status, fault: brokenOff(lifeline) };
      } finally {
        permit.release();
      }
    } finally {
      lifeline.offEnd(leave);
      ticket.leave();
      upgrade.tally.queuedMs = ticket.waitedMs;
    }
  };
}

/** Why an answer ended before its end; undefined where the client, or nobody, is to blame. */
function brokenOff({ ended }: Lifeline): string | undefined {
  return ended?.end.kind === 'failed' ? ended.end.error.message : undefined;
}

/** Resolves when the client has closed its connection: seen at once, although nothing is read from it yet. */
function whenLeft(socket: Duplex): Promise<void> {
  // A client that vanishes is told of by 'close'.
  socket.on('error', () => socket.destroy());
  socket.once('end', () => {
    // An upgraded connection is half-closed by those who speak on it.
    if (socket.listenerCount('readable') > 0) socket.destroy();
  });
  // Without a reader the end of a connection is not noticed; what comes early stays in the socket's buffer.
  socket.on('readable', () => {
    if (socket.readableLength === 0) socket.read();
  });
  return new Promise((resolve) => {
    socket.once('close', resolve);
  });
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
      await awaitToken(parts.tokens, lifeline);
    } else if (permit.becomeStream()) {
      return { permit, token };
    } else {
      permit.cancel();
      const detail = 'as many streams are open as throttle.maxStreams allows';
      throw new SidecarError('QUEUE_FULL', detail, { retryAfterMs: 1000 });
    }
  }
}
