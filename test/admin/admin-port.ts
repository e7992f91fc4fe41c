/** The admin port over real sockets, with states of the test's own. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { createAdminServer } from '../../src/admin/http-server.ts';
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

/** On a port of its own; ends with the test. */
export async function start(options: Partial<AdminOptions> & { readonly maxConnections?: number } = {}) {
  const server = createAdminServer(
    createAdminHandler({
      version: '1.2.3',
      allowedHosts: [{ host: 'localhost', port: undefined }],
      exposeAll: false,
      tokens: () => [validToken],
      throttles: () => [unpaced],
      draining: () => false,
      metrics: { render: () => Promise.resolve('up 1\n'), contentType: 'text/plain; version=0.0.4; charset=utf-8' },
      ...options,
    }),
    new ConnectionSlots(options.maxConnections ?? 64, 0, systemClock),
  );
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
