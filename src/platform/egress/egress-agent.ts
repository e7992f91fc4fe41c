/** An agent for requests of node:http, directly or through a forward proxy: WebSocket upgrades, which undici does not send. */
import type { Agent, ClientRequestArgs } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import { Agent as PlainAgent } from '../http.ts';
import { buildEgressConnector, type EgressConnectorOptions } from './connector.ts';
import { getHostAndPort } from './proxy-selector.ts';

/** Requests of this agent get a connection that is ready: TLS is over. */
export function createEgressAgent(options: EgressConnectorOptions): Agent {
  const { host, protocol, port } = options.destination;
  const target = { hostname: getHostAndPort(options.destination).host, host, protocol, port };
  const connect = buildEgressConnector(options);
  const agent = protocol === 'https:' ? new SecureAgent() : new PlainAgent();
  agent.createConnection = (_: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void) => {
    connect(target, (error, socket) => callback?.(error, socket as Duplex));
    return undefined;
  };
  return agent;
}
