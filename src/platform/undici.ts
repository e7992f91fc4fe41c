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
  /** Bytes of the header section, or of the trailer section, so far. */
  readonly headersSize: number;
  readonly headersMaxSize: number;
  onHeadersComplete: (this: LlhttpParser, status: number, upgrade: boolean, keepsAlive: boolean) => number;
  /** -1 without the field. */
  contentLength: number;
  /** @param result of the parser @param data from where it stopped */
  createError: (this: LlhttpParser, result: number, data: Buffer) => Error;
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
 * must accept any interim response (RFC 9110 §15.2). And it limits the bytes of fields, but not their number. All parsers share one
 * prototype, which the first connection gives access to.
 */
function patchParser(client: UndiciClient): void {
  const parser = (client as UndiciInternals)[symbols.kSocket]?.[symbols.kParser];
  if (isParserPatched || parser === undefined) return;
  const shared = Object.getPrototypeOf(parser) as LlhttpParser;
  const { onHeadersComplete, createError } = shared;
  shared.createError = function (result, data) {
    // Undici takes each error after a Content-Length for a body of another length, also an error within the head.
    if (data.length > 0) this.contentLength = -1;
    return createError.call(this, result, data);
  };
  shared.onHeadersComplete = function (status, upgrade, keepsAlive) {
    // Ends the parser's work: undici then destroys the connection with this error.
    if (this.headers.length > 2 * MAX_RESPONSE_FIELDS) throw createOverflow(this);
    return onHeadersComplete.call(
      this,
      status === STATUS_CONTINUE ? IGNORED_INTERIM_STATUS : status,
      upgrade,
      keepsAlive,
    );
  };
  isParserPatched = true;
}

function createOverflow({ headersMaxSize, headersSize, headers }: LlhttpParser): HeaderOverflow {
  return new HeaderOverflow(headersMaxSize - 1, headersSize, Math.ceil(headers.length / 2));
}

export class Client extends ClientOf {
  /** @param maxHeaderBytes of the names and values in a header section, and in a trailer section */
  constructor(origin: string | URL, maxHeaderBytes: number, options: UndiciClient.Options) {
    // Undici rejects what reaches its limit.
    super(origin, { ...options, maxHeaderSize: maxHeaderBytes + 1 });
    if (!isParserPatched) this.once('connect', () => patchParser(this));
  }

  /** Says what undici does not: the limit, and what was seen. @param error of its connection; others are returned unchanged */
  describeOverflow(error: Error): Error {
    const parser = (this as UndiciInternals)[symbols.kSocket]?.[symbols.kParser];
    return error instanceof errorsOf.HeadersOverflowError && parser !== undefined ? createOverflow(parser) : error;
  }
}

export { buildConnectorOf as buildConnector, errorsOf as errors };
