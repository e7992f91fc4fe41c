/** Builds the upstream request of each attempt: the client's end-to-end headers with the sidecar's own, and its body. */
import type { Readable } from 'node:stream';
import { SidecarError } from '../platform/errors.ts';
import type { Permit } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import type { UpstreamRequest } from '../upstream/client.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import type { RequestBody } from './request-body/replay-body.ts';

const STALLED_BODY_DETAIL =
  'the request body stopped coming, and other requests wait for its slot: throttle.maxInFlight (SIDECAR_MAX_IN_FLIGHT)';

export class RequestBuilder {
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #body: RequestBody;
  readonly #headers: string[];
  /** Length of the list before an attempt adds to it. */
  readonly #clientHeadersLength: number;
  readonly #hasContentType: boolean;

  constructor(parts: ExchangeParts, exchange: Exchange, body: RequestBody) {
    const { rawHeaders, method = 'GET' } = exchange.request;
    const { headers, hasContentType, hasIdempotencyKey, hadAuthorization } = parts.ownHeaders.filter(rawHeaders);
    this.method = method;
    this.hasIdempotencyKey = hasIdempotencyKey;
    this.#parts = parts;
    this.#exchange = exchange;
    this.#body = body;
    this.#headers = headers;
    this.#clientHeadersLength = headers.length;
    this.#hasContentType = hasContentType;
    if (hadAuthorization) parts.observe({ kind: 'authorization-overridden' });
  }

  /**
   * The request of one attempt. Its headers are valid until the next call.
   * @throws SidecarError BAD_REQUEST when the body is not as long as declared
   */
  build(token: Token, permit: Permit, needsNewConnection: boolean): UpstreamRequest {
    const { method } = this;
    const { path } = this.#exchange;
    const body = this.#body;
    const isWhole = body.isWhole || body.tryReadReceived();
    const headers = this.#buildHeaders(token);
    return {
      method,
      path,
      headers,
      body: isWhole ? body.bytes : this.#stream(permit),
      contentLength: isWhole ? undefined : body.declaredBytes,
      needsNewConnection,
    };
  }

  #buildHeaders(token: Token): string[] {
    const headers = this.#headers;
    // Drops what an earlier attempt added.
    headers.length = this.#clientHeadersLength;
    const hasBody = this.#body.receivedBytes > 0 || !this.#body.isWhole;
    if (hasBody && !this.#hasContentType) headers.push('Content-Type', 'application/json');
    headers.push(...this.#parts.ownHeaders.list(token.value));
    const { tracer, path } = this.#exchange;
    if (tracer === undefined) return headers;
    return tracer.startAttempt({ method: this.method, baseUrl: this.#parts.baseUrl, path, headers });
  }

  #stream(permit: Permit): Readable {
    const { lifetime } = this.#exchange;
    const fail = (error: SidecarError): void => lifetime.abort({ kind: 'failed', error });
    return this.#body.stream(fail, () => {
      if (!permit.reportStalledUpload()) fail(new SidecarError('REQUEST_TIMEOUT', STALLED_BODY_DETAIL));
    });
  }
}
