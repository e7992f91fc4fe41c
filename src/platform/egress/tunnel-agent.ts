/**
 * Node's HTTP clients through a forward proxy, for the one request that undici does not carry: a WebSocket upgrade.
 */
import { Agent as PlainAgent } from '../http.ts';
import type { Agent, ClientRequestArgs } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { getHostAndPort } from './proxy-selector.ts';
import type { ForwardProxy } from './proxy-selector.ts';
import { openTunnel } from './tunnel.ts';

type ConnectionCallback = (error: Error | null, stream: Duplex) => void;

/**
 * An agent whose connections go through the proxy to this destination, whatever host a request names.
 * @param signal ends tunnels that are being opened
 */
export function createTunnelAgent(proxy: ForwardProxy, destination: URL, signal: AbortSignal): Agent {
  const isSecure = destination.protocol === 'https:';
  const agent = isSecure ? new SecureAgent() : new PlainAgent();
  agent.createConnection = (options: ClientRequestArgs, opened?: ConnectionCallback) => {
    openTunnel(proxy, getHostAndPort(destination), signal).then(
      // Whoever sends the request waits for the handshake: it has set what to trust among the options.
      (socket) =>
        opened?.(null, isSecure ? connect({ ...options, socket, rejectUnauthorized: true } as object) : socket),
      (error: unknown) => opened?.(error as Error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
