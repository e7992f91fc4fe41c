/**
 * The used parts of undici without the rest (fetch, WebSocket, caches, mocks), which would cost each process 10 MB and a third of its
 * start time. They are internal files of undici, so its version is pinned, and test/peers/undici.test.ts tests them.
 */
import type { Client as UndiciClient, Dispatcher } from 'undici';
import requestOf from 'undici/lib/api/api-request.js';
import buildConnectorOf from 'undici/lib/core/connect.js';
import errorsOf from 'undici/lib/core/errors.js';
import symbols from 'undici/lib/core/symbols.js';
import ClientOf from 'undici/lib/dispatcher/client.js';

/** Like `dispatcher.request`, which exists only when all of undici is loaded. */
export function request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return requestOf.call(dispatcher, options);
}

interface LlhttpParser {
  onHeadersComplete: (this: LlhttpParser, status: number, upgrade: boolean, keepsAlive: boolean) => number;
}

interface UndiciInternals {
  readonly [symbols.kSocket]?: { readonly [symbols.kParser]?: LlhttpParser };
}

const STATUS_CONTINUE = 100;
/** A status that undici skips. */
const IGNORED_INTERIM_STATUS = 102;
let isContinuePatched = false;

/**
 * Undici destroys the connection on a 100 (Continue) that it did not request, although the final response is still to come; a client
 * must accept any interim response (RFC 9110 §15.2). All parsers share one prototype, which the first connection gives access to.
 */
function patchContinueHandling(client: UndiciClient): void {
  const parser = (client as UndiciInternals)[symbols.kSocket]?.[symbols.kParser];
  if (isContinuePatched || parser === undefined) return;
  const shared = Object.getPrototypeOf(parser) as LlhttpParser;
  const { onHeadersComplete } = shared;
  shared.onHeadersComplete = function (status, upgrade, keepsAlive) {
    return onHeadersComplete.call(
      this,
      status === STATUS_CONTINUE ? IGNORED_INTERIM_STATUS : status,
      upgrade,
      keepsAlive,
    );
  };
  isContinuePatched = true;
}

export class Client extends ClientOf {
  constructor(origin: string | URL, options: UndiciClient.Options) {
    super(origin, options);
    if (!isContinuePatched) this.once('connect', () => patchContinueHandling(this));
  }
}

export { buildConnectorOf as buildConnector, errorsOf as errors };
