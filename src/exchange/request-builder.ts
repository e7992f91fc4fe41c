/** What of a client's request is sent upstream: its end-to-end fields with the bearer, and its body. */
import { SidecarError } from '../platform/errors.ts';
import { memoizeLast } from '../platform/memoize.ts';
import type { Permit } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import type { UpstreamRequest } from '../upstream/client.ts';
import { filterRequestHeaders, type ForwardedRequestHeaders } from '../upstream/headers.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import type { RequestBody } from './request-body/replay-body.ts';

/** As text made once for each token, and not for each request. */
const formatBearer = memoizeLast((token: Token) => `Bearer ${token.value}`);

/** What an attempt is made with. */
export interface AttemptInputs {
  readonly permit: Permit;
  readonly token: Token;
}

const STALLED_BODY_DETAIL = 'the request body stopped coming, and other requests wait for its slot';

export class RequestBuilder {
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #body: RequestBody;
  readonly #clientHeaders: ForwardedRequestHeaders;
  /** How long its list was before anything was added. */
  readonly #clientHeadersLength: number;

  constructor(parts: ExchangeParts, exchange: Exchange, body: RequestBody) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#body = body;
    this.#clientHeaders = filterRequestHeaders(exchange.request.rawHeaders, parts.requiredHeader);
    this.#clientHeadersLength = this.#clientHeaders.headers.length;
    if (this.#clientHeaders.hadAuthorization) parts.observe({ kind: 'authorization-overridden' });
  }

  get method(): string {
    return this.#exchange.request.method ?? 'GET';
  }

  get hasIdempotencyKey(): boolean {
    return this.#clientHeaders.hasIdempotencyKey;
  }

  /**
   * One attempt's request. Its fields are good until the next is made.
   * @throws SidecarError BAD_REQUEST when the body is not as long as declared
   */
  build({ token, permit }: AttemptInputs, needsNewConnection: boolean): UpstreamRequest {
    const { path } = this.#exchange;
    const isWhole = this.#body.tryReadReceived();
    const fields = this.#buildHeaders(token);
    if (isWhole) {
      const body = this.#body.bytes;
      return { method: this.method, path, headers: fields, body, contentLength: undefined, needsNewConnection };
    }
    const { lifetime } = this.#exchange;
    const fail = (error: SidecarError): void => lifetime.abort({ kind: 'failed', error });
    const body = this.#body.stream(fail, () => {
      if (!permit.reportStalledUpload()) fail(new SidecarError('REQUEST_TIMEOUT', STALLED_BODY_DETAIL));
    });
    return {
      method: this.method,
      path,
      headers: fields,
      body,
      contentLength: this.#body.declaredBytes,
      needsNewConnection,
    };
  }

  #buildHeaders(token: Token): string[] {
    const { headers, hasContentType } = this.#clientHeaders;
    // Behind the client's own; those of the attempt before give way.
    headers.length = this.#clientHeadersLength;
    const hasBody = this.#body.receivedBytes > 0 || !this.#body.isWhole;
    if (hasBody && !hasContentType) headers.push('Content-Type', 'application/json');
    headers.push('Authorization', formatBearer(token));
    const { tracer, path } = this.#exchange;
    const { baseUrl } = this.#parts.upstream;
    return tracer?.startAttempt({ method: this.method, baseUrl, path, headers }) ?? headers;
  }
}
