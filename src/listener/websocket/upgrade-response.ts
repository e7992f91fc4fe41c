/**
 * Judges the response to an upgrade before http-proxy-3 acts on it, which joins the two connections on any 101 and passes on everything
 * else.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { UpstreamFailure } from '../../upstream/failure.ts';
import { findHandshakeFault, handshakeMismatch } from './handshake-rules.ts';

/** One of these is called, once, unless the request fails first. */
export interface UpgradeJudgement {
  /** @param join has http-proxy-3 send the 101 and join the connections */
  accepted(response: IncomingMessage, upstream: Socket, join: () => void): void;
  /** @param passOn has http-proxy-3 send the response to the client */
  refused(response: IncomingMessage, passOn: () => void): void;
  /** A 101 that does not agree to this request; the upstream connection is closed. */
  invalid(failure: UpstreamFailure): void;
}

/**
 * To be called when http-proxy-3 has added its listeners.
 * @param sent the header fields of the request, as sent
 */
export function judgeUpgradeResponse(
  proxyRequest: ClientRequest,
  sent: IncomingHttpHeaders,
  judgement: UpgradeJudgement,
): void {
  const joins = proxyRequest.listeners('upgrade');
  const passesOn = proxyRequest.listeners('response');
  proxyRequest.removeAllListeners('upgrade').removeAllListeners('response');
  proxyRequest.once('upgrade', (response, upstream, head) => {
    const failure = findHandshakeFault(sent, response.headers);
    if (failure === undefined) {
      judgement.accepted(response, upstream, () => {
        for (const join of joins) join.call(proxyRequest, response, upstream, head);
      });
    } else {
      upstream.on('error', () => undefined).destroy();
      judgement.invalid(failure);
    }
  });
  proxyRequest.once('response', (response) => {
    // node:http takes a 101 for an upgrade only if it has Connection and Upgrade.
    if (response.statusCode === 101) judgement.invalid(findHandshakeFault(sent, response.headers) ?? NO_UPGRADE);
    else {
      judgement.refused(response, () => {
        for (const passOn of passesOn) passOn.call(proxyRequest, response);
      });
    }
  });
}

const NO_UPGRADE = handshakeMismatch('Upgrade');
