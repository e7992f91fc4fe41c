/** What of a client's request is sent upstream: its end-to-end fields with the bearer, and its body. */
import { SidecarError } from '../platform/errors.ts';
import { rememberLast } from '../platform/remembered.ts';
import type { Permit } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import type { UpstreamRequest } from '../upstream/client.ts';
import { endToEndRequestFields, type RequestFields } from '../upstream/fields.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';
import type { RequestBody } from './request-body/replay-body.ts';

/** As text made once for each token, and not for each request. */
const bearerOf = rememberLast((token: Token) => `Bearer ${token.value}`);

/** What an attempt is made with. */
export interface AttemptInputs {
  readonly permit: Permit;
  readonly token: Token;
}

const STALLED = 'the request body stopped coming, and other requests wait for its slot';

export class Outgoing {
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #body: RequestBody;
  readonly #received: RequestFields;
  /** How long its list was before anything was added. */
  readonly #ownLength: number;

  constructor(parts: ExchangeParts, exchange: Exchange, body: RequestBody) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#body = body;
    this.#received = endToEndRequestFields(exchange.request.rawHeaders, parts.requiredHeader);
    this.#ownLength = this.#received.fields.length;
    if (this.#received.hadAuthorization) parts.observe({ kind: 'authorization-overridden' });
  }

  get method(): string {
    return this.#exchange.request.method ?? 'GET';
  }

  get hasIdempotencyKey(): boolean {
    return this.#received.hasIdempotencyKey;
  }

  /**
   * One attempt's request. Its fields are good until the next is made.
   * @throws SidecarError BAD_REQUEST when the body is not as long as declared
   */
  with({ token, permit }: AttemptInputs, needsNewConnection: boolean): UpstreamRequest {
    const { path } = this.#exchange;
    const isWhole = this.#body.takeWhole();
    const fields = this.#fieldsWith(token);
    if (isWhole) {
      const body = this.#body.bytes;
      return { method: this.method, path, fields, body, contentLength: undefined, needsNewConnection };
    }
    const { lifeline } = this.#exchange;
    const fail = (error: SidecarError): void => lifeline.end({ kind: 'failed', error });
    const body = this.#body.stream(fail, () => {
      if (!permit.stalled()) fail(new SidecarError('REQUEST_TIMEOUT', STALLED));
    });
    return { method: this.method, path, fields, body, contentLength: this.#body.declaredBytes, needsNewConnection };
  }

  #fieldsWith(token: Token): string[] {
    const { fields, hasContentType } = this.#received;
    // Behind the client's own; those of the attempt before give way.
    fields.length = this.#ownLength;
    const hasBody = this.#body.receivedBytes > 0 || !this.#body.isWhole;
    if (hasBody && !hasContentType) fields.push('Content-Type', 'application/json');
    fields.push('Authorization', bearerOf(token));
    const { watch, path } = this.#exchange;
    const { baseUrl } = this.#parts.upstream;
    return watch?.attemptBegins({ method: this.method, baseUrl, path, fields }) ?? fields;
  }
}
