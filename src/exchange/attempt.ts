/**
 * One attempt of a request, from its permit to its record: reports the response head to throttle and token source, and decides whether
 * the response goes to the client, is held for a retry, or is inspected first.
 */
import { NO_RETRY, type RetryDecision } from '../retry/policy.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { AttemptSign } from '../throttle/refusal-evidence/refusal-evidence.ts';
import { signOfResponse } from '../throttle/refusal-evidence/refusal-observer.ts';
import type { Permit } from '../throttle/throttle.ts';
import type { TokenUse } from '../token/token.ts';
import type { AttemptHandler, AttemptTimeouts, AttemptResult } from '../upstream/response-receiver.ts';
import { unrecordedFailure, type UpstreamFailure } from '../upstream/failure.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import { classifyAttempt, isCutShort, isUpstreamFault, labelResponse, showsAcceptedToken } from './attempt-outcome.ts';
import type { PendingAttempt } from './exchange.ts';
import { RefusalInspector } from './refusals/refusal-inspector.ts';
import { EVENT_STREAM } from './refusals/refusal-rules.ts';
import type { Relay } from './relay.ts';
import { readInsufficientScope } from './insufficient-scope.ts';
import type { ResponseClassification } from './response-classifier.ts';
import type { RetryContext, RetryPlanner } from './retry-planner.ts';

export interface AttemptContext extends RetryContext {
  readonly planner: RetryPlanner;
  readonly relay: Relay;
  /** The sidecar has added the idempotency key: the application does not know it. */
  readonly hasAddedKey: boolean;
  /** Of the request as it is sent. */
  readonly idempotencyKey: string | undefined;
}

export class Attempt implements AttemptHandler, PendingAttempt {
  readonly timeouts: AttemptTimeouts;
  readonly permit: Permit;
  /** The one that was current when the permit was spent. */
  readonly use: TokenUse;
  /** Its request went onto a connection: the upstream may have carried it out. */
  wasSent = false;
  /** It was refused, and an earlier attempt may have been carried out: the application would repeat the call with another key. */
  isMisleading = false;
  readonly #context: AttemptContext;
  #decision: RetryDecision = NO_RETRY;
  #isRelaying = false;
  /** The body decides whether the call was refused. */
  #isInspected = false;
  #headOutcome: AttemptOutcome | undefined;
  #headAt = 0;
  /** Bytes that the response head takes from the memory that requests share. */
  #headBytes = 0;
  #evidenceNumber: number | undefined;

  constructor(context: AttemptContext, permit: Permit, use: TokenUse) {
    this.timeouts = context.parts.timeouts;
    this.permit = permit;
    this.use = use;
    this.#context = context;
  }

  get route(): string {
    return this.#context.parts.route;
  }

  get startedAt(): number {
    this.#recordClientWait(this.#context.parts.clock.now());
    return this.permit.startedAt;
  }

  onStart(): UpstreamFailure | undefined {
    const { parts, exchange, idempotencyKey } = this.#context;
    if (parts.unknownCalls?.begin(parts.route, exchange, idempotencyKey) === false) return unrecordedFailure();
    this.wasSent = true;
    const { stats } = exchange;
    stats.lacksResponse = true;
    stats.upstreamRequestId = undefined;
    this.permit.markSent();
    if (parts.throttle.refusalObserver.isCollecting) this.#startEvidence();
    return undefined;
  }

  onHead(head: UpstreamResponse, at: number): Relay | 'hold' | { readonly inspector: RefusalInspector };
  onHead(head: UpstreamResponse, at: number, isConfiguredRefusal: boolean): Relay | 'hold';
  onHead(head: UpstreamResponse, at: number, refusal = this.#context.parts.refusals?.evaluate(head)) {
    const { stats } = this.#context.exchange;
    stats.lacksResponse = false;
    stats.upstreamRequestId = head.requestId;
    if (head.memoryBytes > this.#headBytes) this.#takeHead(head.memoryBytes);
    if (typeof refusal === 'object') return this.#inspectBody(head, at, refusal);
    const { parts, planner, exchange, body } = this.#context;
    const { status } = head;
    exchange.stats.pending = undefined;
    const classification = parts.responseClassifier.classify(head, refusal);
    const isAccepted = status < 400 && !classification.isRateLimited;
    this.#headOutcome = isAccepted ? 'ok' : labelResponse(status, classification.isRateLimited);
    this.#headAt = at;
    if (!body.isInMemory) this.permit.recordClientWait(body.waitedUntil(at));
    // To the throttle: a refusal for the rate pauses all requests of the route.
    // What the body decided is known only now: the pause begins now.
    this.permit.report(classification.permitReport, this.#isInspected ? undefined : at);
    const { refusalObserver } = parts.throttle;
    if (status < 400 && this.#evidenceNumber === undefined && !refusalObserver.isCollecting)
      refusalObserver.recordCalm(at - this.permit.startedAt);
    else this.#endEvidence(at, signOfHead(head, classification));
    // To the token source: a 401 invalidates the very token that was sent, and starts one refresh.
    if (status === 401) parts.tokens.recordRejected(this.use);
    else if (isAccepted || showsAcceptedToken(status))
      parts.tokens.recordAccepted(this.use, planner.hasReplayedAfter401);
    // It needs no decision.
    if (isAccepted) return this.#startRelay(head);
    // Only then: how long a retry would wait depends on the pause.
    return this.#relayOrHold(head, classification);
  }

  onBufferExceeded(head: UpstreamResponse): Relay {
    this.#context.planner.cancel();
    this.#decision = NO_RETRY;
    return this.#startRelay(head);
  }

  /** The attempt has ended: frees its slot in flight and records it. */
  release(result: AttemptResult): void {
    const { observe, counters, route, clock } = this.#context.parts;
    const { tracer, lifetime, stats } = this.#context.exchange;
    stats.pending = undefined;
    if (this.#headBytes > 0) this.#context.parts.memory.giveBack(this.#headBytes);
    tracer?.endAttempt(result);
    if (result.kind === 'relayed' && result.fault === undefined && this.#headOutcome === 'ok') {
      this.permit.release();
      counters.recordAttempt('ok', this.#headAt - this.permit.startedAt, false);
      return;
    }
    if (result.kind === 'failed' && result.failure.kind === 'unrecorded') {
      // It says nothing about the upstream.
      this.permit.cancel();
      return;
    }
    this.#recordClientWait(clock.now());
    this.permit.release(result.kind === 'failed' && isCutShort(result.failure));
    if (result.kind === 'failed') this.#endEvidence(clock.now(), isUpstreamFault(result.failure) ? 'fault' : 'other');
    const endedAt = this.#headOutcome === undefined ? clock.now() : this.#headAt;
    const { outcome, isOwn, cause, detail } = classifyAttempt(
      result,
      this.#headOutcome,
      lifetime.aborted?.reason,
      this.wasSent,
    );
    counters.recordAttempt(outcome, endedAt - this.permit.startedAt, isOwn);
    if (detail !== undefined) observe({ kind: 'attempt-failed', route, outcome, cause, detail });
  }

  /** Whether another attempt follows one that has not been relayed: decided at the head of its response, here where none came. */
  retryDecision(result: Exclude<AttemptResult, { kind: 'relayed' }>): RetryDecision {
    const hasToDecide = result.kind === 'failed' && !this.#isRelaying;
    return hasToDecide ? this.#context.planner.decideAfterFailure(result.failure) : this.#decision;
  }

  #relayOrHold(head: UpstreamResponse, classification: ResponseClassification): Relay | 'hold' {
    const { planner, hasAddedKey } = this.#context;
    this.#decision = planner.decideAfterResponse(head.status, classification);
    const isRefused = classification.isRateLimited || head.status === 401;
    this.isMisleading = isRefused && planner.hasUnknownAttempt && hasAddedKey;
    return this.#decision.kind === 'no-retry' && !this.isMisleading ? this.#startRelay(head) : 'hold';
  }

  /** The body decides whether the call was refused: until then nothing is reported. */
  #inspectBody(head: UpstreamResponse, at: number, texts: readonly Buffer[]) {
    const { lifetime, stats } = this.#context.exchange;
    const { memory } = this.#context.parts;
    this.#headOutcome = labelResponse(head.status, false);
    this.#headAt = at;
    stats.pending = undefined;
    this.#isInspected = true;
    const decide = (isRefusal: boolean): Relay | 'hold' => this.onHead(head, at, isRefusal);
    return { inspector: new RefusalInspector({ texts, lifetime, memory, decide }) };
  }

  /** A large head takes the place of bodies that would be kept for retries, until the attempt ends. */
  #takeHead(bytes: number): void {
    this.#headBytes = bytes;
    this.#context.parts.memory.forceTake(bytes);
  }

  #recordClientWait(now: number): void {
    const { body } = this.#context;
    if (!body.isInMemory && this.#headOutcome === undefined) this.permit.recordClientWait(body.waitedUntil(now));
  }

  #startEvidence(): void {
    const { parts, exchange } = this.#context;
    this.#evidenceNumber = parts.throttle.refusalObserver.start(this.permit.grantedAt, exchange.stats.attempts > 1);
  }

  #endEvidence(at: number, sign: AttemptSign): void {
    // An attempt that got no connection, or was sent before the first suspect response, has not started.
    if (this.#evidenceNumber === undefined) this.#startEvidence();
    const { parts, exchange, method } = this.#context;
    parts.throttle.refusalObserver.end(this.#evidenceNumber ?? 0, at, sign, method, exchange.path);
  }

  #startRelay(head: UpstreamResponse): Relay {
    const { body, relay } = this.#context;
    if (head.contentType !== undefined && EVENT_STREAM.test(head.contentType)) this.permit.becomeStream();
    // Nothing is sent again from here on, and the response may last for hours.
    this.#isRelaying = true;
    body.dispose();
    relay.permit = this.permit;
    return relay;
  }
}

/** A refusal that states a limit or a missing scope is no evidence: it says itself what it is. */
function signOfHead(
  head: UpstreamResponse,
  { permitReport, isRateLimited, statedWaitMs }: ResponseClassification,
): AttemptSign {
  const isStated =
    isRateLimited || permitReport.kind === 'rate-limited' || (head.status >= 400 && statedWaitMs !== undefined);
  return signOfResponse(head.status, isStated || readInsufficientScope(head) !== undefined);
}
