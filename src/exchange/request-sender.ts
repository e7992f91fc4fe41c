/**
 * What forward.ts does for each attempt of a request: permit and token, building and sending the upstream request, the retry. It keeps the
 * result of the last attempt that was sent, which goes to the client when no other follows.
 */
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { SidecarError } from '../platform/errors.ts';
import { isIdempotentMethod, type RetryDecision } from '../retry/policy.ts';
import type { Permit, Ticket } from '../throttle/throttle.ts';
import type { TokenCaller, TokenUse } from '../token/token.ts';
import type { UpstreamRequest } from '../upstream/client.ts';
import type { ResponseReceiver, AttemptResult } from '../upstream/response-receiver.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import { replaceField, type ForwardedRequestHeaders } from '../upstream/headers.ts';
import { toAttemptError, toSidecarError } from './attempt-outcome.ts';
import type { Exchange, ExchangeParts, RequestOutcome } from './exchange.ts';
import { Relay } from './relay.ts';
import { RequestBody } from './request-body/replay-body.ts';
import { Attempt, type AttemptContext } from './attempt.ts';
import { RetryPlanner } from './retry-planner.ts';
import { awaitToken, isClientFacing, throwIfAborted, toStageError, waitInStage } from './request-lifetime.ts';
import type { AbortTarget, RequestAborted } from './request-lifetime.ts';

type Retry = Exclude<RetryDecision, { kind: 'no-retry' }>;
/** No byte of it has gone to the client. */
export type NotRelayed = Exclude<AttemptResult, { kind: 'relayed' }>;

const STALLED_BODY_DETAIL =
  'the request body stopped coming, and other requests wait for its slot: throttle.maxInFlight (SIDECAR_MAX_IN_FLIGHT)';

export class RequestSender implements AttemptContext, TokenCaller, AbortTarget {
  readonly parts: ExchangeParts;
  readonly exchange: Exchange;
  readonly body: RequestBody;
  readonly method: string;
  readonly hasIdempotencyKey: boolean;
  readonly hasAddedKey: boolean;
  readonly idempotencyKey: string | undefined;
  readonly planner: RetryPlanner;
  readonly relay: Relay;
  /** Of the client, and the idempotency key that each attempt carries. An attempt adds to the list. */
  readonly #forwarded: ForwardedRequestHeaders;
  readonly #clientHeadersLength: number;
  #ticket: Ticket | undefined;
  /** The current one, or the last. */
  #sent: ResponseReceiver | undefined;
  #retry: Retry | undefined;
  /** Of the last attempt that was sent, if it brought no response. */
  #sentError: Error | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange) {
    this.parts = parts;
    this.exchange = exchange;
    this.body = new RequestBody(exchange.request, parts, parts.clock);
    this.method = exchange.request.method ?? 'GET';
    const keyHeader = parts.retry.idempotencyKey.header ?? undefined;
    this.#forwarded = parts.ownHeaders.filter(exchange.request.rawHeaders, keyHeader);
    let key = this.#forwarded.idempotencyKey;
    this.hasAddedKey = keyHeader !== undefined && key === undefined && !isIdempotentMethod(this.method);
    if (keyHeader !== undefined && this.hasAddedKey) {
      key = randomUUID();
      // Replaced and not added: a server may read the blank one of two fields.
      if (this.#forwarded.hasBlankKey) replaceField(this.#forwarded.headers, keyHeader, key);
      else this.#forwarded.headers.push(keyHeader, key);
    }
    this.idempotencyKey = key;
    this.hasIdempotencyKey = key !== undefined && key !== '';
    this.#clientHeadersLength = this.#forwarded.headers.length;
    this.planner = new RetryPlanner(this);
    this.relay = new Relay(parts, exchange);
  }

  /** The request has its ticket: attempts may follow. */
  begin(ticket: Ticket): void {
    this.#ticket = ticket;
    if (this.#forwarded.hadAuthorization) this.parts.observe({ kind: 'authorization-overridden' });
  }

  get hasTicket(): boolean {
    return this.#ticket !== undefined;
  }

  /** @throws Error before `begin` */
  get ticket(): Ticket {
    if (this.#ticket === undefined) throw new Error('the request has no ticket yet');
    return this.#ticket;
  }

  /** The request has ended: so do its wait and its attempt. */
  onAborted(aborted: RequestAborted): void {
    // The queue ends the wait of a request whose deadline passes, and counts it as a time-out.
    if (aborted.reason.kind !== 'deadline') this.#ticket?.leave(toStageError('queue', aborted));
    this.#sent?.abort();
  }

  get arrivedAt(): number {
    return this.exchange.lifetime.arrivedAt;
  }

  get canReplay(): boolean {
    const { planner, body, parts } = this;
    return parts.retry.on401 && !planner.hasReplayedAfter401 && (body.isInMemory || body.tryReadReceived());
  }

  /**
   * Takes a permit that is available at once, with the current token; undefined where one of them has to be waited for.
   * @param now what the clock has just given
   * @param current the token in this turn for a call that can be repeated, as one without an unread body can; undefined: it is asked for
   */
  tryTakePermit(now: number, current: TokenUse | undefined): Attempt | undefined {
    if (this.exchange.lifetime.aborted !== undefined) return undefined;
    const isRepeatable = this.body.isInMemory && this.parts.retry.on401;
    const use = current !== undefined && isRepeatable ? current : this.parts.tokens.current(this, now);
    const permit = use && this.#ticket?.tryTakePermit(now);
    return permit && new Attempt(this, permit, use);
  }

  /**
   * Waits until there is a token and a permit. The current token is read the moment the permit is granted.
   * @throws SidecarError; RequestAborted when the client has left
   */
  async waitForPermit(): Promise<Attempt> {
    const { tokens } = this.parts;
    const { lifetime, tracer } = this.exchange;
    for (;;) {
      if (tokens.current(this) === undefined) await awaitToken(tokens, lifetime, tracer, this);
      // An aborted request must not start a wait.
      throwIfAborted(lifetime, 'queue');
      const permit = await waitInStage('queue', this.ticket.waitForPermit(), tracer);
      const use = lifetime.aborted === undefined ? tokens.current(this) : undefined;
      if (use !== undefined) return new Attempt(this, permit, use);
      // The token expired or was refused while the request waited: the permit is not spent until there is one again.
      permit.cancel();
    }
  }

  /** Resolves with the result of the attempt; never rejects. @throws SidecarError BAD_REQUEST when the body has a wrong length */
  send(attempt: Attempt): Promise<AttemptResult> {
    const { upstream, observe, route } = this.parts;
    const { stats } = this.exchange;
    const reason = this.#retry?.reason;
    try {
      if (reason !== undefined) {
        // A retry counts when there is a permit and a token for it.
        observe({ kind: 'retry', route, reason });
        this.planner.commit();
      }
      stats.attempts++;
      const request = this.#buildRequest(attempt, reason === 'reset' || reason === 'connect');
      stats.pending = attempt;
      this.#sent = upstream.send(request, attempt, attempt.permit.grantedAt);
      return this.#sent.ended;
    } catch (error) {
      stats.pending = undefined;
      attempt.permit.release();
      throw error;
    }
  }

  /**
   * The headers are valid until the next call.
   * @throws SidecarError BAD_REQUEST when the body is not as long as declared
   */
  #buildRequest({ use, permit }: Attempt, needsNewConnection: boolean): UpstreamRequest {
    const { method, body } = this;
    const { path } = this.exchange;
    const isInMemory = body.isInMemory || body.tryReadReceived();
    const headers = this.#buildHeaders(use.token.value);
    return {
      method,
      path,
      headers,
      body: isInMemory ? body.bytes : this.#streamBody(permit),
      contentLength: isInMemory ? undefined : body.declaredBytes,
      needsNewConnection,
    };
  }

  #buildHeaders(token: string): string[] {
    const { headers, hasContentType } = this.#forwarded;
    const { method, body, parts } = this;
    const { tracer, path } = this.exchange;
    // Drops what an earlier attempt added.
    headers.length = this.#clientHeadersLength;
    const hasBody = body.receivedBytes > 0 || !body.isInMemory;
    if (hasBody && !hasContentType) headers.push('Content-Type', 'application/json');
    headers.push(...parts.ownHeaders.list(token));
    return tracer?.startAttempt({ method, baseUrl: parts.baseUrl, path, headers }) ?? headers;
  }

  #streamBody(permit: Permit): Readable {
    const { lifetime } = this.exchange;
    const fail = (error: SidecarError): void => lifetime.abort({ kind: 'failed', error });
    return this.body.stream(fail, () => {
      if (!permit.reportStalledUpload()) fail(new SidecarError('REQUEST_TIMEOUT', STALLED_BODY_DETAIL));
    });
  }

  /**
   * Keeps a result that was not relayed, for the client if no later attempt brings a response, and returns which retry follows.
   * @throws the reason why none follows
   */
  keepResult(attempt: Attempt, result: NotRelayed): Retry {
    if (result.kind === 'failed') this.#recordFailure(attempt, result.failure);
    else if (!attempt.isMisleading) this.relay.hold(result);
    const decision = attempt.retryDecision(result);
    if (decision.kind !== 'no-retry') return (this.#retry = decision);
    if (result.kind === 'failed') throw toSidecarError(result.failure);
    throw new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the response was held and not forwarded');
  }

  /**
   * After a 401 of `attempt`: waits for the refresh that all callers share. A request is replayed once.
   * @throws SidecarError TOKEN_UNAVAILABLE: the 401 goes to the client
   */
  async waitForNewerToken({ use }: Attempt): Promise<void> {
    const { lifetime, tracer } = this.exchange;
    const wait = lifetime.withAbortSignal((signal) => this.parts.tokens.waitForReplacement(use, signal));
    const hasReplacement = await waitInStage('token', wait, tracer);
    this.planner.hasReplayedAfter401 = true;
    if (!hasReplacement) throw new SidecarError('TOKEN_UNAVAILABLE', 'no newer access token is available');
  }

  /**
   * Gives the client the result of the last attempt that was sent, and not the reason why none follows it: the reason may say that the call
   * was not carried out.
   * @returns undefined when no attempt was sent, or the client has left
   * @throws the error of that attempt, when it brought no response
   */
  relayLastResult(reason: unknown): RequestOutcome | undefined {
    if (!isClientFacing(reason)) return undefined;
    const outcome = this.relay.sendHeld();
    if (outcome !== undefined || this.#sentError === undefined) return outcome;
    // A head that came and was dropped is no response to the client.
    this.exchange.stats.lacksResponse = true;
    throw this.#sentError;
  }

  /** Nothing more follows: leaves the throttle, gives everything back, and completes the statistics. */
  dispose(): void {
    const { stats } = this.exchange;
    if (this.#ticket !== undefined) {
      this.#ticket.leave();
      stats.queuedMs = this.#ticket.waitedMs;
    }
    stats.requestBytes = this.body.receivedBytes;
    stats.responseBytes = this.relay.sentBytes;
    this.planner.cancel();
    this.relay.discardHeld();
    this.body.dispose();
  }

  /** @throws the error of the attempt, when its request has been aborted */
  #recordFailure({ wasSent }: Attempt, failure: UpstreamFailure): void {
    const { aborted } = this.exchange.lifetime;
    const error = toAttemptError(failure, aborted, wasSent);
    if (wasSent) {
      // An earlier response says nothing about this attempt.
      this.relay.discardHeld();
      this.#sentError = error;
    }
    if (aborted !== undefined) throw error;
  }
}
