/** An agent that sends requests of node:http through a forward proxy: WebSocket upgrades, which undici does not send. */
import { Agent as PlainAgent } from '../http.ts';
import type { Agent, ClientRequestArgs } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { getHostAndPort, type EgressProxy } from './proxy-selector.ts';
import { openTunnel } from './tunnel.ts';

type ConnectionCallback = (error: Error | null, stream: Duplex) => void;

/** @param signal aborts tunnels that are being opened */
export function createTunnelAgent(proxy: EgressProxy, destination: URL, signal: AbortSignal): Agent {
  const isSecure = destination.protocol === 'https:';
  const agent = isSecure ? new SecureAgent() : new PlainAgent();
  agent.createConnection = (options: ClientRequestArgs, callback?: ConnectionCallback) => {
    openTunnel(proxy, getHostAndPort(destination), signal).then(
      // The options have the TLS context; the sender of the request waits for the handshake.
      (socket) =>
        callback?.(null, isSecure ? connect({ ...options, socket, rejectUnauthorized: true } as object) : socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
