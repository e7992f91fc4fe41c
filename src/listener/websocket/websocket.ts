/** WebSocket upgrades (RFC 6455 §4) with the guard, permit and token of every other request; one permit per upgrade. */
import type { IncomingMessage } from 'node:http';
import { SidecarError } from '../../platform/errors.ts';
import { resetWhenRead } from '../../exchange/connection-end.ts';
import type { RouteContext, RequestOutcome } from '../../exchange/exchange.ts';
import {
  type RequestLifetime,
  type RequestAborted,
  awaitToken,
  throwIfAborted,
  waitInStage,
  toStageError,
} from '../../exchange/request-lifetime.ts';
import type { Permit, Ticket } from '../../throttle/throttle.ts';
import type { TokenUse } from '../../token/token.ts';
import type { ResponseCut } from '../../upstream/response-receiver.ts';
import { EarlyBytes } from './early-bytes.ts';
import { checkHandshakeRequest } from './handshake-rules.ts';
import { isWebSocketUpgrade } from '../ignored-upgrades.ts';
import { createHandshake, type PendingUpgrade, type UpgradeTarget } from './websocket-handshake.ts';

export interface UpgradeRequest extends Omit<PendingUpgrade, 'earlyBytes'> {
  readonly head: Buffer;
}

/**
 * Serves one upgrade; resolves when the upgraded connection, or the response that declined it, has ended.
 * @throws SidecarError, RequestAborted
 */
export type ServeUpgrade = (routeContext: RouteContext, upgrade: UpgradeRequest) => Promise<RequestOutcome>;

/**
 * Why an upgrade is rejected without a request to the upstream; undefined for a valid WebSocket upgrade, if those are enabled.
 * @param isPipelined earlier responses are pending on its connection
 */
export function checkUpgrade(
  request: IncomingMessage,
  { isEnabled, isPipelined }: { readonly isEnabled: boolean; readonly isPipelined: boolean },
): SidecarError | undefined {
  if (!isWebSocketUpgrade(request))
    return new SidecarError('UPGRADE_NOT_ALLOWED', 'the only upgrade that is supported is a GET to WebSocket');
  if (isEnabled) return checkHandshakeRequest(request.headers) ?? (isPipelined ? PIPELINED_UPGRADE_ERROR : undefined);
  return new SidecarError(
    'UPGRADE_NOT_ALLOWED',
    'WebSocket upgrades are off; SIDECAR_WEBSOCKET=true (upstream.websocket) allows them',
  );
}

const PIPELINED_UPGRADE_ERROR = new SidecarError(
  'UPGRADE_NOT_ALLOWED',
  'an upgrade must not follow requests whose responses are pending on its connection',
);
const TOO_MANY_EARLY_BYTES = 'the client sent too much before its upgrade was accepted (RFC 6455 §4.1)';

export function createUpgradeHandler(target: UpgradeTarget): ServeUpgrade {
  const performHandshake = createHandshake(target);
  return async (routeContext, request) => {
    const { socket, lifetime } = request;
    const earlyBytes = monitorClient(request);
    const upgrade = { ...request, earlyBytes };
    const { tokens, throttle } = routeContext;
    if (tokens.current(lifetime) === undefined) await awaitToken(tokens, lifetime);
    throwIfAborted(lifetime, 'token');
    const call = { method: 'GET', target: request.target };
    const ticket = throttle.enter(lifetime.deadlineAt, upgrade.queueClass, false, '', undefined, call);
    const leave = (reason: RequestAborted): void => {
      // The queue has the deadline itself.
      if (reason.reason.kind !== 'deadline') ticket.leave(toStageError('queue', reason));
    };
    lifetime.onAbort(leave);
    try {
      const { permit, tokenUse } = await acquirePermit(routeContext, ticket, lifetime);
      try {
        upgrade.stats.attempts = 1;
        const { status, upstream, whenClosed } = await performHandshake(routeContext, upgrade, permit, tokenUse);
        lifetime.clearDeadline();
        lifetime.onAbort(({ reason }) => {
          if (upstream === undefined && reason.kind !== 'client-left') resetWhenRead(socket, routeContext.clock);
          else socket.destroy();
          // Bytes that the client sent before it left may still be relayed.
          if (reason.kind !== 'client-left') upstream?.destroy();
        });
        await whenClosed;
        return { kind: 'relayed', status, fault: describeCut(lifetime) };
      } finally {
        permit.release();
      }
    } finally {
      earlyBytes.stopKeeping();
      lifetime.offAbort(leave);
      ticket.leave();
      upgrade.stats.queuedMs = ticket.waitedMs;
    }
  };
}

/** Why a response was cut; undefined when it is complete or the client left. */
function describeCut({ aborted }: RequestLifetime): ResponseCut | undefined {
  if (aborted === undefined || !('error' in aborted.reason)) return undefined;
  const { kind, error } = aborted.reason;
  if (kind === 'draining') return { detail: error.message, cutBy: 'sidecar', cause: undefined };
  return { detail: error.message, cutBy: 'upstream', cause: 'response_cut' };
}

/** Aborts the request when the client leaves, or sends too much before the upgrade is accepted. */
function monitorClient({ socket, head, lifetime }: UpgradeRequest): EarlyBytes {
  // A reset is handled by 'close'.
  socket.on('error', () => socket.destroy());
  socket.once('close', () => lifetime.abort({ kind: 'client-left' }));
  return new EarlyBytes(socket, head, () => {
    lifetime.abort({ kind: 'failed', error: new SidecarError('BAD_REQUEST', TOO_MANY_EARLY_BYTES) });
  });
}

/** A permit that counts as a stream, and the token held at the moment when it is granted. */
async function acquirePermit(
  routeContext: RouteContext,
  ticket: Ticket,
  lifetime: RequestLifetime,
): Promise<{ permit: Permit; tokenUse: TokenUse }> {
  const call = { arrivedAt: lifetime.arrivedAt, canReplay: false };
  await waitInStage('queue', ticket.waitForBodySlot());
  for (;;) {
    const permit = await waitInStage('queue', ticket.waitForPermit());
    const tokenUse = routeContext.tokens.current(call);
    if (tokenUse === undefined) {
      permit.cancel();
      await awaitToken(routeContext.tokens, lifetime, undefined, call);
    } else if (permit.becomeStream()) {
      return { permit, tokenUse };
    } else {
      permit.cancel();
      const detail = 'the limit of open streams is reached (throttle.maxStreams)';
      throw new SidecarError('QUEUE_FULL', detail);
    }
  }
}
