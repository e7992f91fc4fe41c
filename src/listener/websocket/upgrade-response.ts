/**
 * Judges the response to an upgrade before http-proxy-3 acts on it, which joins the two connections on any 101 and passes on everything
 * else.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { UpstreamFailure } from '../../upstream/failure.ts';
import { checkHandshakeResponse, createMismatchFailure } from './handshake-rules.ts';

/** One of these is called, once, unless the request fails first. */
export interface UpgradeResponseHandler {
  /** @param join has http-proxy-3 send the 101 and join the connections */
  onAccepted(response: IncomingMessage, upstream: Socket, join: () => void): void;
  /** @param passOn has http-proxy-3 send the response to the client */
  onRefused(response: IncomingMessage, passOn: () => void): void;
  /** A 101 that does not agree to this request; the upstream connection is closed. */
  onInvalid(failure: UpstreamFailure): void;
}

/**
 * To be called when http-proxy-3 has added its listeners.
 * @param sent the header fields of the request, as sent
 */
export function interceptUpgradeResponse(
  proxyRequest: ClientRequest,
  sent: IncomingHttpHeaders,
  judgement: UpgradeResponseHandler,
): void {
  const joins = proxyRequest.listeners('upgrade');
  const passesOn = proxyRequest.listeners('response');
  proxyRequest.removeAllListeners('upgrade').removeAllListeners('response');
  proxyRequest.once('upgrade', (response, upstream, head) => {
    const failure = checkHandshakeResponse(sent, response.headers);
    if (failure === undefined) {
      judgement.onAccepted(response, upstream, () => {
        for (const join of joins) join.call(proxyRequest, response, upstream, head);
      });
    } else {
      upstream.on('error', () => undefined).destroy();
      judgement.onInvalid(failure);
    }
  });
  proxyRequest.once('response', (response) => {
    // node:http takes a 101 for an upgrade only if it has Connection and Upgrade.
    if (response.statusCode === 101)
      judgement.onInvalid(checkHandshakeResponse(sent, response.headers) ?? MISSING_UPGRADE_FAILURE);
    else {
      judgement.onRefused(response, () => {
        for (const passOn of passesOn) passOn.call(proxyRequest, response);
      });
    }
  });
}

const MISSING_UPGRADE_FAILURE = createMismatchFailure('Upgrade');
