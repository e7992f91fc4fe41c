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
import { HeaderOverflow, MAX_RESPONSE_FIELDS } from './connection-faults.ts';

/** Like `dispatcher.request`, which exists only when all of undici is loaded. */
export function request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return requestOf.call(dispatcher, options);
}

interface LlhttpParser {
  /** Names and values. */
  readonly headers: readonly Buffer[];
  /** Of the header section, or of the trailer section, so far. */
  headersSize: number;
  readonly headersMaxSize: number;
  trackHeader: (this: LlhttpParser, bytes: number) => void;
  onHeadersComplete: (this: LlhttpParser, status: number, upgrade: boolean, keepsAlive: boolean) => number;
}

interface UndiciInternals {
  readonly [symbols.kSocket]?: { readonly [symbols.kParser]?: LlhttpParser };
}

const STATUS_CONTINUE = 100;
/** A status that undici skips. */
const IGNORED_INTERIM_STATUS = 102;
let isParserPatched = false;

/**
 * Undici destroys the connection on a 100 (Continue) that it did not request, although the final response is still to come; a client
 * must accept any interim response (RFC 9110 §15.2). And it counts the bytes of fields, but not the fields, and does not say what it has
 * seen. All parsers share one prototype, which the first connection gives access to.
 */
function patchParser(client: UndiciClient): void {
  const parser = (client as UndiciInternals)[symbols.kSocket]?.[symbols.kParser];
  if (isParserPatched || parser === undefined) return;
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
  shared.trackHeader = function (bytes) {
    this.headersSize += bytes;
    const fields = Math.ceil(this.headers.length / 2);
    // Ends the parser's work on the packet; undici then destroys the connection with this error.
    if (this.headersSize > this.headersMaxSize || fields > MAX_RESPONSE_FIELDS)
      throw new HeaderOverflow(this.headersMaxSize, this.headersSize, fields);
  };
  isParserPatched = true;
}

export class Client extends ClientOf {
  constructor(origin: string | URL, options: UndiciClient.Options) {
    super(origin, options);
    if (!isParserPatched) this.once('connect', () => patchParser(this));
  }
}

export { buildConnectorOf as buildConnector, errorsOf as errors };
