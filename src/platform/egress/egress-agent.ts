/** An agent for requests of node:http, directly or through a forward proxy: WebSocket upgrades, which undici does not send. */
import { Agent as PlainAgent } from '../http.ts';
import type { Agent, ClientRequestArgs } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { openConnection } from '../open-connection.ts';
import { getHostAndPort, type ProxySelector } from './proxy-selector.ts';
import { openTunnel } from './tunnel.ts';

type ConnectionCallback = (error: Error | null, stream: Duplex) => void;

/** @param signal aborts connections that are being opened */
export function createEgressAgent(egress: ProxySelector, destination: URL, signal: AbortSignal): Agent {
  const proxy = egress(destination);
  const target = getHostAndPort(destination);
  const isSecure = destination.protocol === 'https:';
  const agent = isSecure ? new SecureAgent() : new PlainAgent();
  agent.createConnection = (options: ClientRequestArgs, callback?: ConnectionCallback) => {
    const opening = proxy === undefined ? openConnection({ ...target, signal }) : openTunnel(proxy, target, signal);
    opening.then(
      // The options have the TLS context; the sender of the request waits for the handshake.
      (socket) =>
        callback?.(null, isSecure ? connect({ ...options, socket, rejectUnauthorized: true } as object) : socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
