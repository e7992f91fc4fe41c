/**
 * The attempts of one admitted request: permit, bearer, send, judge the head, and again where the policy says so.
 * An answer that may be followed by another attempt is held back, so that the client gets the upstream's own last word
 * when attempts or time are spent. The current token is read the moment the permit is spent.
 */
import { fullJitterMs } from '../retry/backoff.ts';
import { decideRetry, type AttemptOutcomeFacts, type RetryDecision } from '../retry/policy.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import { readRateLimitSignal, type RateLimitSignal } from '../throttle/rate-limit-signal.ts';
import type { Permit, Ticket } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import { answerField, type AnswerHead, type AttemptEnd, type HeldAnswer } from '../upstream/attempt.ts';
import { endToEndRequestFields, endToEndResponseFields, type RequestFields } from '../upstream/fields.ts';
import { rewriteLocation } from '../upstream/location.ts';
import { answerOutcome, failureOutcome, faultOf } from './attempt-outcome.ts';
import type { Exchange, ExchangeParts, Relayed } from './exchange.ts';
import { LifelineEnded } from './lifeline.ts';
import { Relay, relayHeld } from './relay.ts';
import type { RequestBody } from './replay-body.ts';
import { inStage, nameEnd } from './stage.ts';

/** @throws SidecarError, LifelineEnded; see handle */
export function runAttempts(
  parts: ExchangeParts,
  exchange: Exchange,
  ticket: Ticket,
  body: RequestBody,
): Promise<Relayed> {
  return new Attempts(parts, exchange, ticket, body).run();
}

const RATE_LIMIT_FIELD = /^(?:retry-after|(?:x-)?rate-?limit.*)$/i;

/** For telling the token source without waiting for what it does. */
const NEVER_ABORTED = new AbortController().signal;

/** What follows an attempt that is not the last. */
type NextStep = Exclude<RetryDecision, { kind: 'finish' }>;

class Attempts {
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #ticket: Ticket;
  readonly #body: RequestBody;
  readonly #fields: RequestFields;
  readonly #relay: Relay;
  /** The upstream's last word so far. */
  #held: HeldAnswer | undefined;
  #next: NextStep | undefined;
  #countedAttempts = 0;
  #isReplayed = false;
  #backoffMs = 0;

  constructor(parts: ExchangeParts, exchange: Exchange, ticket: Ticket, body: RequestBody) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#ticket = ticket;
    this.#body = body;
    this.#fields = endToEndRequestFields(exchange.request.rawHeaders, parts.requiredHeader);
    if (this.#fields.hadAuthorization) parts.observe({ kind: 'authorization-overridden' });
    this.#relay = new Relay(exchange.response, {
      fields: (head) =>
        endToEndResponseFields(
          head.fields,
          (location) => rewriteLocation(parts.upstream.baseUrl, exchange.path, location),
          exchange.corsOrigin,
        ),
      onBegin: () => {
        exchange.lifeline.meetDeadline();
      },
    });
  }

  async run(): Promise<Relayed> {
    try {
      for (;;) {
        const relayed = await this.#attempt();
        if (relayed !== undefined) return relayed;
      }
    } catch (error) {
      // The upstream's own last answer is better news than the sidecar's reason for not asking again.
      if (this.#held === undefined || isClientGone(error)) throw error;
      return this.#giveHeld(this.#held);
    } finally {
      this.#exchange.tally.responseBytes = this.#relay.sentBytes;
      this.#parts.memory.giveBack(this.#held?.body.length ?? 0);
    }
  }

  /** One attempt and the waiting after it; undefined asks for another. */
  async #attempt(): Promise<Relayed | undefined> {
    const permit = await inStage('queue', this.#ticket.permit());
    const token = this.#parts.tokens.current();
    if (token === undefined) {
      // It ran out while the request waited: nothing is spent until there is one again.
      permit.cancel();
      await inStage(
        'token',
        this.#exchange.lifeline.during((signal) => this.#parts.tokens.usable(signal)),
      );
      return undefined;
    }
    const end = await this.#send(permit, token);
    permit.release();
    return this.#settle(end, token);
  }

  async #send(permit: Permit, token: Token): Promise<AttemptEnd> {
    const { upstream, requestTimeoutMs, bodyIdleTimeoutMs, clock } = this.#parts;
    const { lifeline, path, request, tally } = this.#exchange;
    const sentAt = clock.now();
    this.#next = undefined;
    tally.attempts++;
    const attempt = upstream.send(
      { method: request.method ?? 'GET', path, fields: this.#fieldsWith(token), ...this.#content() },
      {
        onHead: (head) => this.#judge(head, permit, token, sentAt),
        onOverflow: () => this.#relay,
        responseTimeoutMs: requestTimeoutMs,
        bodyIdleTimeoutMs,
      },
    );
    const letGo = lifeline.onEnd(() => {
      attempt.abort();
    });
    const end = await attempt.ended;
    letGo();
    if (end.kind === 'failed') this.#tellEnded(failureOutcome(end.failure, lifeline.leftMs <= 0), sentAt);
    return end;
  }

  #fieldsWith(token: Token): string[] {
    const { fields, hasContentType } = this.#fields;
    const hasBody = this.#body.bytes !== undefined || !this.#body.isWhole;
    return [
      ...fields,
      ...(hasBody && !hasContentType ? ['Content-Type', 'application/json'] : []),
      'Authorization',
      `Bearer ${token.value}`,
    ];
  }

  #content() {
    if (this.#body.isWhole) return { body: this.#body.bytes, contentLength: undefined };
    const stream = this.#body.stream((reason) => {
      this.#exchange.lifeline.end({ kind: 'failed', error: reason });
    });
    return { body: stream, contentLength: this.#body.declaredBytes };
  }

  /** Reports what a head shows, and decides whether its answer goes to the client or is held back. */
  #judge(head: AnswerHead, permit: Permit, token: Token, sentAt: number): Relay | 'hold' {
    const { tokens } = this.#parts;
    const signal = this.#readSignal(head);
    this.#tellEnded(answerOutcome(head.status), sentAt);
    if (head.status === 429 || (head.status === 503 && signal?.statedWaitMs !== undefined)) {
      permit.report({ kind: 'rate-limited', signal: signal ?? this.#emptySignal(head) });
    } else {
      permit.report(signal === undefined ? { kind: 'accepted' } : { kind: 'accepted', hint: signal });
    }
    if (this.#isReplayed && head.status !== 401) tokens.accepted(token);
    if (head.status !== 429) this.#countedAttempts++;

    this.#next = this.#feasible(this.#decide({ kind: 'answer', status: head.status }), signal?.statedWaitMs);
    if (this.#next !== undefined) return 'hold';
    // Refused for good, as far as this request goes: the token is as suspect as if it could be replayed.
    if (head.status === 401) void tokens.unauthorized(token, NEVER_ABORTED);
    if (/^text\/event-stream\b/i.test(answerField(head, 'content-type') ?? '')) permit.becomeStream();
    return this.#relay;
  }

  #decide(outcome: AttemptOutcomeFacts): RetryDecision {
    return decideRetry(
      this.#parts.retry,
      {
        method: this.#exchange.request.method ?? 'GET',
        hasIdempotencyKey: this.#fields.hasIdempotencyKey,
        isReplayable: this.#body.isWhole,
        countedAttempts: this.#countedAttempts,
        isReplayed: this.#isReplayed,
      },
      outcome,
    );
  }

  /** The step if there is time and budget for it; undefined = the outcome in hand is final. */
  #feasible(decision: RetryDecision, statedWaitMs = 0): NextStep | undefined {
    const { clock, random, budget, observe, route } = this.#parts;
    const { lifeline } = this.#exchange;
    switch (decision.kind) {
      case 'finish':
        return undefined;
      case 'refresh-token':
        return decision;
      case 'await-permit':
        return this.#ticket.retryWaitMs() < lifeline.leftMs ? decision : undefined;
      case 'back-off':
        this.#backoffMs = Math.max(statedWaitMs, fullJitterMs(this.#countedAttempts, random()));
        if (this.#backoffMs >= lifeline.leftMs) return undefined;
        if (budget.take(clock.now())) return decision;
        observe({ kind: 'retry-budget-exhausted', route, reason: decision.reason });
        return undefined;
    }
  }

  async #settle(end: AttemptEnd, token: Token): Promise<Relayed | undefined> {
    if (end.kind === 'relayed') return { status: end.head.status, fault: end.fault };
    if (end.kind === 'failed') {
      const { ended } = this.#exchange.lifeline;
      if (ended !== undefined) throw nameEnd('upstream', ended);
      this.#countedAttempts++;
      this.#next = this.#feasible(this.#decide({ kind: 'failure', failure: end.failure }));
      if (this.#next === undefined) throw faultOf(end.failure);
    } else {
      this.#hold(end.answer);
    }
    return this.#takeNextStep(token);
  }

  /** Waits as the step wants it; undefined asks for another attempt. */
  async #takeNextStep(token: Token): Promise<Relayed | undefined> {
    const { tokens, observe, route } = this.#parts;
    const { lifeline } = this.#exchange;
    const next = this.#next;
    if (next?.kind === 'refresh-token') {
      const verdict = await inStage(
        'token',
        lifeline.during((signal) => tokens.unauthorized(token, signal)),
      );
      if (verdict.kind === 'pass-through') return this.#held && this.#giveHeld(this.#held);
      this.#isReplayed = true;
      observe({ kind: 'retry', route, reason: 'unauthorized' });
    } else if (next?.kind === 'back-off') {
      await inStage('upstream', lifeline.sleep(this.#backoffMs));
      observe({ kind: 'retry', route, reason: next.reason });
    } else {
      observe({ kind: 'retry', route, reason: 'rate_limited' });
    }
    return undefined;
  }

  /** Keeps the upstream's last word; its memory counts with the replay buffers. */
  #hold(answer: HeldAnswer): void {
    const { memory } = this.#parts;
    memory.giveBack(this.#held?.body.length ?? 0);
    memory.reserve(answer.body.length);
    this.#held = answer;
  }

  #giveHeld(answer: HeldAnswer): Relayed {
    relayHeld(answer, this.#relay);
    return { status: answer.head.status, fault: undefined };
  }

  /** What the fields of a head say about a rate limit; undefined when there is no such field. */
  #readSignal(head: AnswerHead): RateLimitSignal | undefined {
    for (let at = 0; at < head.fields.length; at += 2) {
      if (RATE_LIMIT_FIELD.test(head.fields[at] ?? '')) return this.#emptySignal(head);
    }
    return undefined;
  }

  #emptySignal(head: AnswerHead): RateLimitSignal {
    return readRateLimitSignal(head.status, (name) => answerField(head, name), this.#parts.clock.wallNow());
  }

  #tellEnded(outcome: AttemptOutcome, sentAt: number): void {
    const { observe, route, clock } = this.#parts;
    observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - sentAt });
  }
}

function isClientGone(error: unknown): boolean {
  return error instanceof LifelineEnded && error.end.kind === 'client-left';
}
