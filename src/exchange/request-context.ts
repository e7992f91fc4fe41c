/**
 * What a request has while it is forwarded: its route, its body, its ticket, the way back to its client, the retries that are left to it, and
 * the result of the last attempt that was sent. forward.ts owns it, from the first step to `dispose`; attempts read it.
 */
import { randomUUID } from 'node:crypto';
import type { Random } from '../platform/clock.ts';
import {
  decideAfterFailure,
  decideAfterResponse,
  isIdempotentMethod,
  NO_RETRY,
  type RetryDecision,
  type RetryFacts,
} from '../retry/policy.ts';
import type { ReceivedCall } from '../throttle/declared/call-match.ts';
import { describeEndpoint } from '../throttle/endpoint.ts';
import type { Ticket } from '../throttle/throttle.ts';
import type { TokenCaller } from '../token/token.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import { replaceField, type ForwardedRequestHeaders } from '../upstream/headers.ts';
import type { AttemptResult, ResponseReceiver } from '../upstream/response-receiver.ts';
import { toAttemptError } from './attempt-outcome.ts';
import type { Exchange, RouteContext, RequestOutcome } from './exchange.ts';
import { Relay } from './relay.ts';
import { RequestBody } from './request-body/replay-body.ts';
import { isClientFacing, toStageError, type RequestAborted } from './request-lifetime.ts';
import type { ResponseClassification } from './response-classifier.ts';

/** Why another attempt follows, and what it waits for. */
export type Retry = Exclude<RetryDecision, { kind: 'no-retry' }>;
/** The result of an attempt, of whose response no byte has gone to the client. */
export type NotRelayed = Exclude<AttemptResult, { kind: 'relayed' }>;

export class RequestContext implements RetryFacts, TokenCaller, ReceivedCall {
  readonly routeContext: RouteContext;
  readonly exchange: Exchange;
  readonly method: string;
  /** As `describeEndpoint` names it. */
  readonly operation: string;
  readonly body: RequestBody;
  readonly relay: Relay;
  /** As each attempt carries it; the empty text where it is no key that every server reads. */
  readonly idempotencyKey: string | undefined;
  readonly hasIdempotencyKey: boolean;
  /** The client sent an Authorization of its own, which is replaced. */
  readonly hadAuthorization: boolean;
  /** The sidecar has added the idempotency key: the application does not know it. */
  readonly hasAddedKey: boolean;
  readonly arrivedAt: number;
  readonly random: Random;
  ticket: Ticket | undefined;
  /** The attempt that is on its way to the upstream, or the last one that was. */
  sent: ResponseReceiver | undefined;
  /** What the next attempt follows; undefined before the second one. */
  retry: Retry | undefined;
  hasReplayedAfter401 = false;
  hasUnknownAttempt = false;
  countedAttempts = 0;
  /** The client's fields, and the idempotency key that each attempt carries. */
  readonly #forwarded: ForwardedRequestHeaders;
  readonly #forwardedLength: number;
  /** When the planned retry was taken out of the budget. */
  #takenAt: number | undefined;
  /** Why the last attempt that was sent brought no response. */
  #sentError: Error | undefined;

  constructor(routeContext: RouteContext, exchange: Exchange) {
    this.routeContext = routeContext;
    this.exchange = exchange;
    this.method = exchange.request.method ?? 'GET';
    this.operation = describeEndpoint(this.method, exchange.path);
    this.body = new RequestBody(exchange.request, routeContext, routeContext.clock);
    this.relay = new Relay(routeContext, exchange);
    this.arrivedAt = exchange.lifetime.arrivedAt;
    this.random = routeContext.random;
    const keyHeader = routeContext.retry.idempotencyKey.header ?? undefined;
    this.#forwarded = routeContext.addedHeaders.filter(exchange.request.rawHeaders, keyHeader);
    let key = this.#forwarded.idempotencyKey;
    this.hasAddedKey = keyHeader !== undefined && key === undefined && !isIdempotentMethod(this.method);
    if (keyHeader !== undefined && this.hasAddedKey) {
      key = randomUUID();
      // Replaced and not added: a server may read the blank one of two fields.
      replaceField(this.#forwarded.headers, keyHeader, key);
    }
    this.#forwardedLength = this.#forwarded.headers.length;
    this.hadAuthorization = this.#forwarded.hadAuthorization;
    this.idempotencyKey = key;
    this.hasIdempotencyKey = key !== undefined && key !== '';
  }

  /** The header fields of an attempt that is sent now; valid until the next call. */
  buildHeaders(token: string): string[] {
    const { headers, hasContentType } = this.#forwarded;
    // Drops what an earlier attempt added.
    headers.length = this.#forwardedLength;
    const hasBody = this.body.receivedBytes > 0 || !this.body.isInMemory;
    if (hasBody && !hasContentType) headers.push('Content-Type', 'application/json');
    headers.push(...this.routeContext.addedHeaders.list(token));
    return headers;
  }

  get target(): string {
    return this.exchange.target;
  }

  /** Known when the body has been sent once. */
  get isReplayable(): boolean {
    return this.body.isInMemory;
  }

  /** Whether the request can be sent again after a 401. */
  get canReplay(): boolean {
    const { body, routeContext } = this;
    return routeContext.retry.on401 && !this.hasReplayedAfter401 && (body.isInMemory || body.tryReadReceived());
  }

  /** @param aloneMs how long this request alone waits where the throttle holds up no other */
  decideAfterResponse(status: number, classification: ResponseClassification, aloneMs: number): RetryDecision {
    if (!classification.isRateLimited) this.countedAttempts++;
    else if (this.routeContext.throttle.isObserving) return NO_RETRY;
    const decision = decideAfterResponse(this.routeContext.retry, this, status, classification);
    if (decision === NO_RETRY) return decision;
    const isAlone = decision.kind === 'await-permit' && aloneMs > 0;
    return this.#checkTimeAndBudget(isAlone ? { ...decision, delayMs: aloneMs } : decision, true);
  }

  decideAfterFailure(failure: UpstreamFailure): RetryDecision {
    this.countedAttempts++;
    return this.#checkTimeAndBudget(decideAfterFailure(this.routeContext.retry, this, failure), false);
  }

  /**
   * Keeps a result that was not relayed, for the client if no later attempt brings a response.
   * @param isMisleading a held response that the client must not get
   * @throws the error of the attempt, when its request has been aborted
   */
  keepResult(result: NotRelayed, wasSent: boolean, isMisleading: boolean): void {
    if (result.kind === 'held') {
      if (!isMisleading) this.relay.hold(result);
      return;
    }
    const { aborted } = this.exchange.lifetime;
    const error = toAttemptError(result.failure, aborted, wasSent);
    if (wasSent) {
      // An earlier response says nothing about this attempt.
      this.relay.discardHeld();
      this.#sentError = error;
    }
    if (aborted !== undefined) throw error;
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

  /** The request has ended: so do its wait and its attempt. */
  onAborted(aborted: RequestAborted): void {
    // The queue ends the wait of a request whose deadline passes, and counts it as a time-out.
    if (aborted.reason.kind !== 'deadline') this.ticket?.leave(toStageError('queue', aborted));
    this.sent?.abort();
  }

  /** Nothing more follows: leaves the throttle, gives everything back, and completes the statistics. */
  dispose(): void {
    const { stats } = this.exchange;
    if (this.ticket !== undefined) {
      this.ticket.leave();
      stats.queuedMs = this.ticket.waitedMs;
    }
    stats.requestBytes = this.body.receivedBytes;
    stats.responseBytes = this.relay.sentBytes;
    this.cancelRetry();
    this.relay.discardHeld();
    this.body.dispose();
  }

  /** The planned retry is sent: what it took out of the budget is spent. */
  commitRetry(): void {
    this.#takenAt = undefined;
  }

  /** The planned retry is not sent: the budget gets its part back. */
  cancelRetry(): void {
    if (this.#takenAt !== undefined) this.routeContext.retryBudget.giveBack(this.#takenAt);
    this.#takenAt = undefined;
  }

  /** @param isHeld a response goes to the client at once when a retry would come too late */
  #checkTimeAndBudget(decision: RetryDecision, isHeld: boolean): RetryDecision {
    const { clock, retryBudget, observe, route } = this.routeContext;
    if (decision.kind === 'no-retry') return decision;
    const delayMs = decision.kind === 'refresh-token' ? 0 : decision.delayMs;
    const waitMs = isHeld ? this.ticket?.retryWaitMs(delayMs) : undefined;
    if ((waitMs ?? delayMs) >= this.exchange.lifetime.remainingMs) return NO_RETRY;
    if (decision.kind !== 'back-off') return decision;
    const now = clock.now();
    if (!retryBudget.tryTake(now)) {
      observe({ kind: 'retry-budget-exhausted', route, reason: decision.reason });
      return NO_RETRY;
    }
    this.#takenAt = now;
    if (decision.reason !== 'connect') this.hasUnknownAttempt = true;
    return decision;
  }
}
