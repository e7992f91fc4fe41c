/** The admin port over real sockets, with states of the test's own. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { createActivity } from '../../src/admin/history/activity.ts';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import type { AdminHandler } from '../../src/admin/admin-server.ts';
import { Sampler } from '../../src/admin/samples/sampler.ts';
import { createAdminHandler } from '../../src/admin/server.ts';
import type { AdminOptions } from '../../src/admin/server.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { ConnectionSlots } from '../../src/platform/connection-slots.ts';
import { unpaced, validToken } from './states.ts';

export interface AdminResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
}

const NO_SERIES = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };
const NO_LISTENER = { connections: 0, connectionsLimit: 10_000, requests: 0, requestsLimit: Infinity };

/** Of a sidecar that holds a token and has seen nothing, unless given otherwise. */
export function createHandler(given: Partial<AdminOptions> = {}): AdminHandler {
  const { clock = systemClock } = given;
  return createAdminHandler({
    version: '1.2.3',
    allowedHosts: [{ host: 'localhost', port: undefined }],
    ...{ exposeAll: false, isOnSocketFile: false, clock },
    ...{ tokens: () => [validToken], throttles: () => [unpaced], listener: () => NO_LISTENER },
    ...{ pendingAttempts: () => [], fleet: () => undefined, configuration: () => undefined },
    ...{ logTrouble: () => undefined, settings: () => undefined, draining: () => false },
    activity: createActivity(clock),
    sampler: new Sampler({ clock, source: NO_SERIES }),
    ...{ onNotReady: () => undefined, onFault: () => undefined },
    metrics: { render: () => Promise.resolve('up 1\n'), contentType: 'text/plain; version=0.0.4; charset=utf-8' },
    ...given,
  });
}

/** Has the server see its peers at this address. Undefined: at none, as on a socket file. */
export function placePeers(server: Server, address: string | undefined): void {
  server.on('connection', (socket) => Object.defineProperty(socket, 'remoteAddress', { value: address }));
}

interface PortSetup extends Partial<AdminOptions> {
  readonly maxConnections?: number;
  /** Default: loopback. */
  readonly peerAddress?: string;
}

/** On a port of its own; ends with the test. */
export async function start({ maxConnections = 64, peerAddress, ...options }: PortSetup = {}) {
  const server = createAdminServer(createHandler(options), new ConnectionSlots(maxConnections, 0, systemClock));
  if (peerAddress !== undefined) placePeers(server, peerAddress);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (
    path: string,
    { method = 'GET', ...headers }: Record<string, string> = {},
  ): Promise<AdminResponse> => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const bytes = await buffer(response);
    return { status: response.statusCode, headers: response.headers, body: bytes.toString(), bytes };
  };
  return { port, ask };
}
