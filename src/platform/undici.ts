/**
 * The parts of undici that are used, without the rest of it (fetch, WebSocket, caches, mocks), which would cost each process 10 MB
 * and a third of its start. They lie in undici's own folders, so its version is exact, and test/peers/undici.test.ts watches them.
 */
import type { Client as UndiciClient, Dispatcher } from 'undici';
import requestOf from 'undici/lib/api/api-request.js';
import buildConnectorOf from 'undici/lib/core/connect.js';
import errorsOf from 'undici/lib/core/errors.js';
import symbols from 'undici/lib/core/symbols.js';
import ClientOf from 'undici/lib/dispatcher/client.js';

/** As `dispatcher.request` would, where undici is loaded whole. */
export function request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return requestOf.call(dispatcher, options);
}

/** As llhttp tells of a head. */
interface LlhttpParser {
  onHeadersComplete: (this: LlhttpParser, status: number, upgrade: boolean, keepsAlive: boolean) => number;
}

interface UndiciInternals {
  readonly [symbols.kSocket]?: { readonly [symbols.kParser]?: LlhttpParser };
}

const STATUS_CONTINUE = 100;
/** Any that undici passes over. */
const IGNORED_INTERIM_STATUS = 102;
let isContinuePatched = false;

/**
 * Undici breaks the connection off over a 100 (Continue) that it has not asked for, although the answer is still to come and the
 * request may have been carried out. A client must take any interim answer (RFC 9110 §15.2). All parsers are of one class,
 * of which the first connection has one.
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

/** @throws as undici's own */
export class Client extends ClientOf {
  constructor(origin: string | URL, options: UndiciClient.Options) {
    super(origin, options);
    if (!isContinuePatched) this.once('connect', () => patchContinueHandling(this));
  }
}

export { buildConnectorOf as buildConnector, errorsOf as errors };
