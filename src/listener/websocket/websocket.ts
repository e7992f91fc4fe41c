/**
 * WebSocket upgrades (RFC 6455 §4): the guard, permit and bearer of every other request, one permit for one upgrade. h2c never.
 * Asking the upstream is handshake.ts's.
 */
import type { IncomingMessage } from 'node:http';
import type { Egress } from '../../platform/egress/egress.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { ExchangeParts, Relayed } from '../../exchange/exchange.ts';
import type { Lifeline, LifelineEnded } from '../../exchange/lifeline.ts';
import { awaitToken, inStage, nameEnd } from '../../exchange/stage.ts';
import type { Permit, Ticket } from '../../throttle/throttle.ts';
import type { Trust } from '../../platform/tls.ts';
import type { Token } from '../../token/token.ts';
import type { Cut } from '../../upstream/attempt-terms.ts';
import { EarlyBytes } from './early-bytes.ts';
import { refuseHandshake } from './handshake-rules.ts';
import { createHandshake, type Upgrade } from './handshake.ts';

/** One upgrade that passed the guard. */
export interface UpgradeRequest extends Omit<Upgrade, 'early'> {
  /** Bytes that came behind the request's head. */
  readonly head: Buffer;
}

/**
 * Serves one upgrade; resolves when the upgraded connection, or the answer given instead, has ended.
 * @throws SidecarError, LifelineEnded
 */
export type ServeUpgrade = (parts: ExchangeParts, upgrade: UpgradeRequest) => Promise<Relayed>;

/**
 * Why an upgrade is refused without asking anybody; undefined when it is a WebSocket's and those are allowed.
 * @param isPipelined responses to requests before it are pending on its connection
 */
export function refuseUpgrade(
  request: IncomingMessage,
  { isEnabled, isPipelined }: { readonly isEnabled: boolean; readonly isPipelined: boolean },
): SidecarError | undefined {
  const protocol = request.headers.upgrade?.toLowerCase() ?? '';
  if (protocol === 'websocket' && request.method === 'GET') {
    if (isEnabled) return refuseHandshake(request.headers) ?? (isPipelined ? PIPELINED : undefined);
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

const PIPELINED = new SidecarError(
  'UPGRADE_NOT_ALLOWED',
  'an upgrade is not served behind requests whose responses are pending on its connection',
);
const TOO_EARLY = 'the client sent too much before its upgrade was accepted (RFC 6455 §4.1)';

/**
 * @param trust for an `https:` upstream; undefined for `http:`
 * @param egress the way to the upstream
 */
export function createUpgradeServer(trust: Trust | undefined, egress: Egress): ServeUpgrade {
  const shakeHands = createHandshake(trust, egress);
  return async (parts, request) => {
    const { socket, lifeline } = request;
    const early = watchClient(request);
    const upgrade = { ...request, early };
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
        const { status, upstream, whenClosed } = await shakeHands(parts, upgrade, permit, token);
        lifeline.meetDeadline();
        lifeline.onEnd(({ end }) => {
          socket.destroy();
          // What the client sent before it left may still be on its way.
          if (end.kind !== 'client-left') upstream?.destroy();
        });
        await whenClosed;
        return { status, fault: brokenOff(lifeline) };
      } finally {
        permit.release();
      }
    } finally {
      early.drop();
      lifeline.offEnd(leave);
      ticket.leave();
      upgrade.tally.queuedMs = ticket.waitedMs;
    }
  };
}

/** Why an answer ended before its end; undefined where the client, or nobody, is to blame. */
function brokenOff({ ended }: Lifeline): Cut | undefined {
  if (ended?.end.kind !== 'failed') return undefined;
  const { code, message } = ended.end.error;
  return { detail: message, cutBy: code === 'DRAINING' ? 'sidecar' : 'upstream' };
}

/** Ends the lifeline when the client leaves or sends too much before the upgrade is decided. */
function watchClient({ socket, head, lifeline }: UpgradeRequest): EarlyBytes {
  // A client that vanishes is noticed by 'close'.
  socket.on('error', () => socket.destroy());
  socket.once('close', () => lifeline.end({ kind: 'client-left' }));
  return new EarlyBytes(socket, head, () => {
    lifeline.end({ kind: 'failed', error: new SidecarError('BAD_REQUEST', TOO_EARLY) });
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
