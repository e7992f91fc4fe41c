/**
 * The attempts of one admitted request: permit, bearer, send, judge the head, and again where the policy says so.
 * An answer that may be followed by another attempt is held back, so that the client gets the upstream's own last word
 * when attempts or time are spent. The current token is read the moment the permit is spent.
 */
import { SidecarError } from '../platform/errors.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { Ticket } from '../throttle/throttle.ts';
import { getResponseHeader, type UpstreamResponse } from '../upstream/upstream-response.ts';
import type { Attempt } from '../upstream/attempt.ts';
import type { AttemptResult, AttemptHandler } from '../upstream/attempt-contract.ts';
import { labelResponse, classifyAttempt, toSidecarError } from './attempt-outcome.ts';
import type { Exchange, ExchangeParts, OutcomeListener, RelayedResponse } from './exchange.ts';
import { RetryPlanner, type RetryStep } from './retry-planner.ts';
import { HeldResponse } from './held-response.ts';
import { RequestBuilder, type AttemptInputs } from './request-builder.ts';
import { Relay } from './relay.ts';
import type { RequestBody } from './request-body/replay-body.ts';
import { awaitToken, waitInStage, isAborted, isClientFacing, toStageError } from './stage.ts';

export class Attempts implements AttemptHandler {
  readonly responseTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #ticket: Ticket;
  readonly #body: RequestBody;
  readonly #outcome: OutcomeListener;
  readonly #requestBuilder: RequestBuilder;
  readonly #relay: Relay;
  readonly #retryPlanner: RetryPlanner;
  /** Those of the attempt under way, or just ended. */
  #inputs: AttemptInputs | undefined;
  /** Made when there is one to keep. */
  #heldResponse: HeldResponse | undefined;
  /** What follows the attempt under way or just ended; undefined as long as nothing does. */
  #nextStep: RetryStep | undefined;
  /** Of the head that has come in the attempt under way or just ended. */
  #headOutcome: AttemptOutcome | undefined;
  #headAt = 0;
  /** The response goes to the client: from here on nothing is sent again. */
  #isRelaying = false;
  /** The one under way, or the last. */
  #attempt: Attempt | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange, ticket: Ticket, body: RequestBody, outcome: OutcomeListener) {
    this.responseTimeoutMs = parts.requestTimeoutMs;
    this.bodyIdleTimeoutMs = parts.bodyIdleTimeoutMs;
    this.#parts = parts;
    this.#exchange = exchange;
    this.#ticket = ticket;
    this.#body = body;
    this.#outcome = outcome;
    this.#requestBuilder = new RequestBuilder(parts, exchange, body);
    const { method, hasIdempotencyKey } = this.#requestBuilder;
    const { lifetime } = exchange;
    this.#retryPlanner = new RetryPlanner(parts, { method, hasIdempotencyKey, body, lifetime, ticket });
    this.#relay = new Relay(exchange, parts);
  }

  /** Makes the attempts; to be called once. The first one goes out at once where nothing has to be waited for. */
  start(): void {
    try {
      const means = this.#tryAcquireInputs();
      if (means === undefined) void this.#sendWhenReady();
      else this.#send(means);
    } catch (error) {
      this.#finish(error);
    }
  }

  /** Ends the attempt under way. */
  abort(): void {
    this.#attempt?.abort();
  }

  onEnded(end: AttemptResult): void {
    this.#exchange.tracer?.endAttempt(end);
    this.#inputs?.permit.release();
    this.#recordAttempt(end);
    if (end.kind === 'relayed') this.#reportOutcome({ status: end.head.status, fault: end.fault });
    else void this.#retryOrFinish(end);
  }

  async #sendWhenReady(): Promise<void> {
    try {
      this.#send(await this.#acquireInputs());
    } catch (error) {
      this.#finish(error);
    }
  }

  /** After an attempt that has not answered the client: another, or the last word. */
  async #retryOrFinish(end: Exclude<AttemptResult, { kind: 'relayed' }>): Promise<void> {
    try {
      const next = this.#decideNextStep(end);
      if (await this.#awaitNextStep(next)) this.#retry(next, this.#tryAcquireInputs() ?? (await this.#acquireInputs()));
      // The 401 is kept, and is what the client gets.
      else this.#finish(new SidecarError('TOKEN_UNAVAILABLE', 'no newer access token was to be had'));
    } catch (error) {
      this.#finish(error);
    }
  }

  /** The upstream's own last word is better news than the sidecar's reason for not asking again. */
  #finish(reason: unknown): void {
    this.#inputs?.permit.release();
    this.#retryPlanner.cancel(this.#nextStep);
    let relayed: RelayedResponse | undefined;
    let fault = reason;
    try {
      // A fault in here is to be seen, and who has left hears nothing.
      if (isClientFacing(reason)) relayed = this.#heldResponse?.relayTo(this.#relay);
    } catch (thrown) {
      fault = thrown;
    }
    this.#reportOutcome(relayed, fault);
  }

  #reportOutcome(relayed: RelayedResponse | undefined, fault?: unknown): void {
    this.#exchange.stats.responseBytes = this.#relay.sentBytes;
    this.#heldResponse?.discard();
    if (relayed === undefined) this.#outcome.failed(fault);
    else this.#outcome.relayed(relayed);
  }

  onStart(): void {
    this.#inputs?.permit.markSent();
  }

  /** Reports what a head shows, and decides whether its answer goes to the client or is held back. */
  onHead(head: UpstreamResponse, at: number): Relay | 'hold' {
    const { tokens, responseClassifier } = this.#parts;
    const { permitReport, isRateLimited, statedWaitMs } = responseClassifier.classify(head);
    this.#headOutcome = labelResponse(head.status, isRateLimited);
    this.#headAt = at;
    this.#inputs?.permit.report(permitReport);
    if (this.#retryPlanner.hasReplayedAfter401 && head.status !== 401 && this.#inputs !== undefined)
      tokens.confirmAccepted(this.#inputs.token);
    this.#nextStep = this.#retryPlanner.planAfter({ kind: 'answer', status: head.status, isRateLimited }, statedWaitMs);
    return this.#nextStep === undefined ? this.#startRelay(head) : 'hold';
  }

  /** One that is too large to be held back is the last. */
  onBufferExceeded(head: UpstreamResponse): Relay {
    this.#retryPlanner.cancel(this.#nextStep);
    this.#nextStep = undefined;
    return this.#startRelay(head);
  }

  /** The answer goes to the client now, whatever it is. */
  #startRelay(head: UpstreamResponse): Relay {
    const { permit, token } = this.#inputs ?? {};
    // The token is as suspect as if the request could be replayed.
    if (head.status === 401 && token !== undefined)
      void this.#parts.tokens.handleUnauthorized(token, new AbortController().signal);
    if (/^text\/event-stream\b/i.test(getResponseHeader(head, 'content-type') ?? '')) permit?.becomeStream();
    // From here on nothing is sent again: an answer may last for hours. An earlier one would be out of date.
    this.#isRelaying = true;
    this.#body.dispose();
    this.#heldResponse?.discard();
    return this.#relay;
  }

  /** What is at hand costs no wait; undefined where something has to be waited for, or the request has ended. */
  #tryAcquireInputs(): AttemptInputs | undefined {
    const token = this.#parts.tokens.current();
    if (token === undefined || this.#exchange.lifetime.aborted !== undefined) return undefined;
    const permit = this.#ticket.tryTakePermit();
    return permit && (this.#inputs = { permit, token });
  }

  /** Waits until there is a token and a permit to spend it with. */
  async #acquireInputs(): Promise<AttemptInputs> {
    const { tokens } = this.#parts;
    const { lifetime, tracer } = this.#exchange;
    for (;;) {
      if (tokens.current() === undefined) await awaitToken(tokens, lifetime, tracer);
      // Looked at right before the ticket is used: a request that has ended has no place to wait at any more.
      if (lifetime.aborted !== undefined) throw toStageError('queue', lifetime.aborted);
      const permit = await waitInStage('queue', this.#ticket.waitForPermit(), tracer);
      const token = isAborted(lifetime) ? undefined : tokens.current();
      if (token !== undefined) return (this.#inputs = { permit, token });
      // It ran out while the request waited: nothing is spent until there is one again.
      permit.cancel();
    }
  }

  #send(inputs: AttemptInputs, needsNewConnection = false): void {
    this.#headOutcome = undefined;
    this.#exchange.stats.attempts++;
    this.#attempt = this.#parts.upstream.send(this.#requestBuilder.build(inputs, needsNewConnection), this);
  }

  /** A retry is one only now that there is a permit and a token for it. */
  #retry({ reason }: RetryStep, inputs: AttemptInputs): void {
    const { observe, route } = this.#parts;
    observe({ kind: 'retry', route, reason });
    this.#nextStep = undefined;
    this.#send(inputs, reason === 'reset' || reason === 'connect');
  }

  /** @throws SidecarError when nothing follows, or the lifeline's end is why it failed */
  #decideNextStep(end: Exclude<AttemptResult, { kind: 'relayed' }>): RetryStep {
    if (end.kind === 'held') {
      (this.#heldResponse ??= new HeldResponse(this.#parts.memory)).hold(end.response);
      if (this.#nextStep === undefined)
        throw new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the answer was not passed on');
      return this.#nextStep;
    }
    const { failure } = end;
    const { aborted } = this.#exchange.lifetime;
    if (aborted !== undefined) throw toStageError('upstream', aborted);
    if (!this.#isRelaying) this.#nextStep = this.#retryPlanner.planAfter({ kind: 'failure', failure });
    if (this.#nextStep === undefined) throw toSidecarError(failure);
    return this.#nextStep;
  }

  /** Waits as the step wants it; false when no newer token is to be had. */
  async #awaitNextStep(next: RetryStep): Promise<boolean> {
    const { lifetime, tracer } = this.#exchange;
    if (next.kind === 'back-off') await waitInStage('upstream', lifetime.sleep(next.delayMs), tracer);
    const token = this.#inputs?.token;
    if (next.kind !== 'refresh-token' || token === undefined) return true;
    const verdict = await waitInStage(
      'token',
      lifetime.withAbortSignal((signal) => this.#parts.tokens.handleUnauthorized(token, signal)),
      tracer,
    );
    this.#retryPlanner.hasReplayedAfter401 = true;
    return verdict.kind === 'replay';
  }

  #recordAttempt(end: AttemptResult): void {
    const { observe, route, clock } = this.#parts;
    const headOutcome = this.#headOutcome;
    const endedAt = headOutcome === undefined ? clock.now() : this.#headAt;
    const durationMs = endedAt - (this.#inputs?.permit.grantedAt ?? 0);
    const { outcome, isOwn } = classifyAttempt(end, headOutcome, this.#exchange.lifetime.aborted?.reason);
    observe({ kind: 'attempt-ended', route, outcome, isOwn, durationMs });
  }
}
