/**
 * One attempt of a request, from its permit to its record: reports the response head to throttle and token source, and decides whether
 * the response goes to the client, is held for a retry, or is inspected first.
 */
import type { Readable } from 'node:stream';
import { SidecarError } from '../platform/errors.ts';
import { NO_RETRY, type RetryDecision } from '../retry/policy.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { Permit } from '../throttle/throttle.ts';
import type { TokenUse } from '../token/token.ts';
import type { UpstreamRequest } from '../upstream/client.ts';
import type { AttemptHandler, AttemptTimeouts, AttemptResult } from '../upstream/response-receiver.ts';
import { unrecordedFailure, type UpstreamFailure } from '../upstream/failure.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import { classifyAttempt, cutReasonOf, labelResponse, showsAcceptedToken, toSidecarError } from './attempt-outcome.ts';
import type { PendingAttempt } from './exchange.ts';
import { OTHER_PATH } from './foreign-responses.ts';
import { RefusalInspector } from './refusals/refusal-inspector.ts';
import { EVENT_STREAM } from './refusals/refusal-rules.ts';
import type { Relay } from './relay.ts';
import type { NotRelayed, RequestContext, Retry } from './request-context.ts';

const STALLED_BODY_DETAIL =
  'the request body stopped coming, and other requests wait for its slot: throttle.maxInFlight (SIDECAR_MAX_IN_FLIGHT)';

export class Attempt implements AttemptHandler, PendingAttempt {
  readonly timeouts: AttemptTimeouts;
  /** The token that was current when the permit was granted. */
  readonly tokenUse: TokenUse;
  /** The request went onto a connection: the upstream may have carried it out. */
  wasSent = false;
  readonly #context: RequestContext;
  readonly #permit: Permit;
  #decision: RetryDecision = NO_RETRY;
  /** The call was refused, and an earlier attempt may have been carried out: the application would repeat it with another key. */
  #isMisleading = false;
  #isRelaying = false;
  #headOutcome: AttemptOutcome | undefined;
  #headAt = 0;
  /** Bytes that the response head takes from the memory that requests share. */
  #headBytes = 0;

  constructor(context: RequestContext, permit: Permit, tokenUse: TokenUse) {
    this.timeouts = context.routeContext.timeouts;
    this.tokenUse = tokenUse;
    this.#context = context;
    this.#permit = permit;
  }

  get route(): string {
    return this.#context.routeContext.route;
  }

  get startedAt(): number {
    this.#recordClientWait(this.#context.routeContext.clock.now());
    return this.#permit.startedAt;
  }

  /** Resolves with the result of the attempt; never rejects. @throws SidecarError BAD_REQUEST when the body has a wrong length */
  send(): Promise<AttemptResult> {
    const context = this.#context;
    const { upstream, observe, route } = context.routeContext;
    const { stats } = context.exchange;
    const reason = context.retry?.reason;
    try {
      if (reason !== undefined) {
        // A retry counts when there is a permit and a token for it.
        observe({ kind: 'retry', route, reason });
        context.commitRetry();
      }
      stats.attempts++;
      const request = this.#buildRequest(reason === 'reset' || reason === 'connect');
      stats.pending = this;
      context.sent = upstream.send(request, this, this.#permit.grantedAt);
      return context.sent.ended;
    } catch (error) {
      stats.pending = undefined;
      this.#permit.release();
      throw error;
    }
  }

  /** @throws SidecarError BAD_REQUEST when the body is not as long as declared */
  #buildRequest(needsNewConnection: boolean): UpstreamRequest {
    const { method, body, routeContext, exchange } = this.#context;
    const { path, tracer } = exchange;
    const isInMemory = body.isInMemory || body.tryReadReceived();
    const headers = this.#context.buildHeaders(this.tokenUse.token.value);
    const { query } = routeContext.addedHeaders;
    return {
      method,
      path: query === undefined ? path : query.addTo(path),
      headers: tracer?.startAttempt({ method, baseUrl: routeContext.baseUrl, path, headers }) ?? headers,
      body: isInMemory ? body.bytes : this.#streamBody(),
      contentLength: isInMemory ? undefined : body.declaredBytes,
      needsNewConnection,
    };
  }

  #streamBody(): Readable {
    const { body, exchange } = this.#context;
    const fail = (error: SidecarError): void => exchange.lifetime.abort({ kind: 'failed', error });
    return body.stream(fail, () => {
      if (!this.#permit.reportStalledUpload()) fail(new SidecarError('REQUEST_TIMEOUT', STALLED_BODY_DETAIL));
    });
  }

  onStart(): UpstreamFailure | undefined {
    const { routeContext, exchange, idempotencyKey } = this.#context;
    if (routeContext.unknownCalls?.begin(routeContext.route, exchange, idempotencyKey) === false)
      return unrecordedFailure();
    this.wasSent = true;
    const { stats } = exchange;
    stats.lacksResponse = true;
    stats.upstreamRequestId = undefined;
    this.#permit.markSent();
    return undefined;
  }

  onHead(head: UpstreamResponse, at: number): Relay | 'hold' | { readonly inspector: RefusalInspector } {
    const { routeContext, exchange } = this.#context;
    const { stats, lifetime } = exchange;
    stats.lacksResponse = false;
    stats.upstreamRequestId = head.requestId;
    stats.pending = undefined;
    this.#headAt = at;
    // A large head takes the place of bodies that would be kept for retries, until the attempt ends.
    this.#headBytes = head.memoryBytes;
    if (this.#headBytes > 0) routeContext.memory.forceTake(this.#headBytes);
    const refusal = routeContext.refusals?.(head);
    if (typeof refusal !== 'object') return this.#reportAndDecide(head, refusal, at);
    // The client would wait until the text can no longer come.
    if (routeContext.throttle.isObserving) return this.#reportAndDecide(head, undefined, at);
    // The body decides whether the call was refused. Until then nothing is reported, and a pause begins then, not at the head.
    this.#headOutcome = labelResponse(head.status, false);
    const decide = (isRefusal: boolean): Relay | 'hold' => this.#reportAndDecide(head, isRefusal, undefined);
    return { inspector: new RefusalInspector({ texts: refusal, lifetime, memory: routeContext.memory, decide }) };
  }

  /**
   * @param isRefusal whether `throttle.refusals` calls it a refusal
   * @param reportedAt when the throttle has the report; undefined: now
   */
  #reportAndDecide(
    head: UpstreamResponse,
    isRefusal: boolean | undefined,
    reportedAt: number | undefined,
  ): Relay | 'hold' {
    const context = this.#context;
    const { routeContext, body } = context;
    const { status } = head;
    const classification = routeContext.responseClassifier.classify(head, isRefusal);
    const isAccepted = status < 400 && !classification.isRateLimited;
    this.#headOutcome = isAccepted ? 'ok' : labelResponse(status, classification.isRateLimited);
    // 1. To the throttle: a refusal for the rate pauses all requests of the route.
    if (!body.isInMemory) this.#permit.recordClientWait(body.waitedUntil(this.#headAt));
    const delayMs = this.#permit.report(classification.permitReport, reportedAt);
    // 2. To the token source: a 401 invalidates the very token that was sent, and starts one refresh.
    if (status === 401) routeContext.tokens.recordRejected(this.tokenUse);
    else if (isAccepted || showsAcceptedToken(status))
      routeContext.tokens.recordAccepted(this.tokenUse, context.hasReplayedAfter401);
    if (isAccepted) {
      // The usual response of an operation is no foreign one, and costs no call.
      const usual = routeContext.foreignResponses.usualTypes.get(context.operation);
      if (status >= 300 || usual !== (head.contentType ?? '')) this.#reportForeign(head);
      return this.#startRelay(head);
    }
    // 3. The decision, last: how long a retry would wait depends on the pause.
    this.#decision = context.decideAfterResponse(status, classification, delayMs);
    const isRefused = classification.isRateLimited || status === 401;
    this.#isMisleading = isRefused && context.hasUnknownAttempt && context.hasAddedKey;
    return this.#decision.kind === 'no-retry' && !this.#isMisleading ? this.#startRelay(head) : 'hold';
  }

  #reportForeign(head: UpstreamResponse): void {
    const { routeContext, exchange, operation } = this.#context;
    const { foreignResponses, observe, route, baseUrl } = routeContext;
    const { accept } = exchange.request.headers;
    const detail = foreignResponses.describe(head, { operation, url: baseUrl.origin + exchange.path, accept });
    if (detail === undefined) return;
    // Over TLS, only a server that has the partner's certificate can respond.
    const isOfPartner = baseUrl.protocol === 'https:' || detail.includes(OTHER_PATH);
    const cause = isOfPartner ? 'foreign_partner' : 'foreign_network';
    observe({ kind: 'foreign-response', route, cause, detail });
  }

  onBufferExceeded(head: UpstreamResponse): Relay {
    this.#context.cancelRetry();
    this.#decision = NO_RETRY;
    return this.#startRelay(head);
  }

  /** The attempt has ended: frees its slot in flight and records it. */
  release(result: AttemptResult): void {
    const { observe, counters, route, clock, responseClassifier } = this.#context.routeContext;
    const { tracer, lifetime, stats } = this.#context.exchange;
    if (result.kind === 'held' && result.head.status === 401)
      responseClassifier.reportUnauthorized(result.head, result.body);
    stats.pending = undefined;
    if (this.#headBytes > 0) this.#context.routeContext.memory.giveBack(this.#headBytes);
    tracer?.endAttempt(result);
    if (result.kind === 'relayed' && result.fault === undefined && this.#headOutcome === 'ok') {
      this.#permit.release();
      counters.recordAttempt('ok', this.#headAt - this.#permit.startedAt, false);
      return;
    }
    if (result.kind === 'failed' && result.failure.kind === 'unrecorded') {
      // A call that could not be recorded says nothing about the upstream.
      this.#permit.cancel();
      return;
    }
    this.#recordClientWait(clock.now());
    this.#permit.release(cutReasonOf(result, lifetime.aborted?.reason));
    const endedAt = this.#headOutcome === undefined ? clock.now() : this.#headAt;
    const { outcome, isOwn, cause, detail, advice } = classifyAttempt(
      result,
      this.#headOutcome,
      lifetime.aborted?.reason,
      this.wasSent,
    );
    counters.recordAttempt(outcome, endedAt - this.#permit.startedAt, isOwn);
    if (detail !== undefined) observe({ kind: 'attempt-failed', route, outcome, cause, detail, advice });
  }

  /**
   * Keeps a result that was not relayed, for the client if no later attempt brings a response. Which retry follows was decided at the head of
   * the response, and is decided here only where none came.
   * @throws the reason why none follows
   */
  settle(result: NotRelayed): Retry {
    const context = this.#context;
    context.keepResult(result, this.wasSent, this.#isMisleading);
    const hasToDecide = result.kind === 'failed' && !this.#isRelaying;
    const decision = hasToDecide ? context.decideAfterFailure(result.failure) : this.#decision;
    if (decision.kind !== 'no-retry') return (context.retry = decision);
    if (result.kind === 'failed') throw toSidecarError(result.failure);
    throw new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the response was held and not forwarded');
  }

  #recordClientWait(now: number): void {
    const { body } = this.#context;
    if (!body.isInMemory && this.#headOutcome === undefined) this.#permit.recordClientWait(body.waitedUntil(now));
  }

  #startRelay(head: UpstreamResponse): Relay {
    const { body, relay } = this.#context;
    if (head.contentType !== undefined && EVENT_STREAM.test(head.contentType)) this.#permit.becomeStream();
    // Nothing is sent again from here on, and the response may last for hours.
    this.#isRelaying = true;
    body.dispose();
    relay.permit = this.#permit;
    return relay;
  }
}
