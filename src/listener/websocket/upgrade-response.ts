/**
 * Checks the response to an upgrade before http-proxy-3 acts on it: that library joins the two connections on any 101, and relays every
 * other response.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { UpstreamFailure } from '../../upstream/failure.ts';
import { checkHandshakeResponse, createMismatchFailure } from './handshake-rules.ts';

/** Exactly one of these is called, once, unless the request fails first. */
export interface UpgradeResponseHandler {
  /** @param join has http-proxy-3 send the 101 and join the connections */
  onAccepted(response: IncomingMessage, upstream: Socket, join: () => void): void;
  /** @param relay has http-proxy-3 send the response to the client */
  onDeclined(response: IncomingMessage, relay: () => void): void;
  /** A 101 that does not accept this request; the upstream connection is closed. */
  onInvalid(failure: UpstreamFailure): void;
}

/**
 * To be called when http-proxy-3 has added its listeners.
 * @param sent the header fields of the request, as sent
 */
export function interceptUpgradeResponse(
  proxyRequest: ClientRequest,
  sent: IncomingHttpHeaders,
  handler: UpgradeResponseHandler,
): void {
  const joinListeners = proxyRequest.listeners('upgrade');
  const relayListeners = proxyRequest.listeners('response');
  proxyRequest.removeAllListeners('upgrade').removeAllListeners('response');
  proxyRequest.once('upgrade', (response, upstream, head) => {
    const failure = checkHandshakeResponse(sent, response.headers);
    if (failure === undefined) {
      handler.onAccepted(response, upstream, () => {
        for (const join of joinListeners) join.call(proxyRequest, response, upstream, head);
      });
    } else {
      upstream.on('error', () => undefined).destroy();
      handler.onInvalid(failure);
    }
  });
  proxyRequest.once('response', (response) => {
    // node:http reports a 101 without Connection or Upgrade as an ordinary response.
    if (response.statusCode === 101)
      handler.onInvalid(checkHandshakeResponse(sent, response.headers) ?? MISSING_UPGRADE_FAILURE);
    else {
      handler.onDeclined(response, () => {
        for (const relay of relayListeners) relay.call(proxyRequest, response);
      });
    }
  });
}

const MISSING_UPGRADE_FAILURE = createMismatchFailure('Upgrade');
