/**
 * The parts of undici that are used, without the rest of it (fetch, WebSocket, caches, mocks), which would cost each process 10 MB
 * and a third of its start. They lie in undici's own folders, so its version is exact, and test/peers/undici.test.ts watches them.
 */
import type { Dispatcher } from 'undici';
import requestOf from 'undici/lib/api/api-request.js';
import buildConnectorOf from 'undici/lib/core/connect.js';
import errorsOf from 'undici/lib/core/errors.js';
import ClientOf from 'undici/lib/dispatcher/client.js';

/** As `dispatcher.request` would, where undici is loaded whole. */
export function request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return requestOf.call(dispatcher, options);
}

export { ClientOf as Client, buildConnectorOf as buildConnector, errorsOf as errors };
