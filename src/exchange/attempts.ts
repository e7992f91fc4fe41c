/**
 * The attempts of one admitted request: permit, bearer, send, judge the head, and again where the policy says so.
 * An answer that may be followed by another attempt is held back, so that the client gets the upstream's own last word
 * when attempts or time are spent. The current token is read the moment the permit is spent.
 */
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { Permit, Ticket } from '../throttle/throttle.ts';
import type { Token } from '../token/token.ts';
import {
  answerField,
  type AnswerHead,
  type Attempt,
  type AttemptEnd,
  type AttemptTerms,
  type HeldAnswer,
} from '../upstream/attempt.ts';
import type { UpstreamFailure } from '../upstream/failure.ts';
import { endToEndRequestFields, type RequestFields } from '../upstream/fields.ts';
import { answerOutcome, failureOutcome, faultOf } from './attempt-outcome.ts';
import type { Exchange, ExchangeParts, Relayed } from './exchange.ts';
import { LifelineEnded } from './lifeline.ts';
import { NextSteps, type NextStep } from './next-step.ts';
import { Relay, relayHeld } from './relay.ts';
import type { RequestBody } from './replay-body.ts';
import { awaitToken, inStage, nameEnd } from './stage.ts';

/** @throws SidecarError, LifelineEnded; see handle */
export function runAttempts(
  parts: ExchangeParts,
  exchange: Exchange,
  ticket: Ticket,
  body: RequestBody,
): Promise<Relayed> {
  return new Attempts(parts, exchange, ticket, body).run();
}

/** What an attempt is made with. */
interface Means {
  readonly permit: Permit;
  readonly token: Token;
}

class Attempts implements AttemptTerms {
  readonly responseTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #ticket: Ticket;
  readonly #body: RequestBody;
  readonly #fields: RequestFields;
  readonly #relay: Relay;
  readonly #steps: NextSteps;
  /** Those of the attempt under way, or just ended. */
  #means: Means | undefined;
  /** The upstream's last word so far. */
  #held: HeldAnswer | undefined;
  /** What follows the attempt under way or just ended; undefined as long as nothing does. */
  #next: NextStep | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange, ticket: Ticket, body: RequestBody) {
    const { request, lifeline } = exchange;
    this.responseTimeoutMs = parts.requestTimeoutMs;
    this.bodyIdleTimeoutMs = parts.bodyIdleTimeoutMs;
    this.#parts = parts;
    this.#exchange = exchange;
    this.#ticket = ticket;
    this.#body = body;
    this.#fields = endToEndRequestFields(request.rawHeaders, parts.requiredHeader);
    if (this.#fields.hadAuthorization) parts.observe({ kind: 'authorization-overridden' });
    this.#steps = new NextSteps(parts, {
      method: request.method ?? 'GET',
      hasIdempotencyKey: this.#fields.hasIdempotencyKey,
      isReplayable: body.isWhole,
      lifeline,
      ticket,
    });
    this.#relay = new Relay(exchange, parts);
  }

  async run(): Promise<Relayed> {
    try {
      for (;;) {
        const means = this.#tryGather() ?? (await this.#gather());
        const attempt = this.#send(means);
        const letGo = this.#exchange.lifeline.onEnd(() => attempt.abort());
        const end = await attempt.ended;
        letGo();
        this.#exchange.watch?.attemptEnds(end);
        means.permit.release();
        if (end.kind === 'relayed') return { status: end.head.status, fault: end.fault };
        if (end.kind === 'held') this.#hold(end.answer);
        else this.#judgeFailure(end.failure);
        if (!(await this.#takeNextStep(means.token))) return this.#giveLastWord(end);
      }
    } catch (error) {
      // The upstream's own last answer is better news than the sidecar's reason for not asking again.
      if (this.#held === undefined || isClientGone(error)) throw error;
      return this.#giveHeld(this.#held);
    } finally {
      this.#exchange.tally.responseBytes = this.#relay.sentBytes;
      if (this.#held !== undefined) this.#parts.memory.giveBack(this.#held.body.length);
      this.#held = undefined;
    }
  }

  onStart(): void {
    this.#means?.permit.used();
  }

  /** Reports what a head shows, and decides whether its answer goes to the client or is held back. */
  onHead(head: AnswerHead): Relay | 'hold' {
    const { tokens, answerSignals } = this.#parts;
    const { result, isRateLimited, statedWaitMs } = answerSignals.read(head);
    this.#tellEnded(answerOutcome(head.status, isRateLimited));
    this.#means?.permit.report(result);
    if (this.#steps.isReplayed && head.status !== 401 && this.#means !== undefined) tokens.accepted(this.#means.token);
    this.#next = this.#steps.after({ kind: 'answer', status: head.status, isRateLimited }, statedWaitMs);
    return this.#next === undefined ? this.onOverflow(head) : 'hold';
  }

  /** The answer goes to the client now, whatever it is. */
  onOverflow(head: AnswerHead): Relay {
    const { permit, token } = this.#means ?? {};
    // The token is as suspect as if the request could be replayed.
    if (head.status === 401 && token !== undefined)
      void this.#parts.tokens.unauthorized(token, new AbortController().signal);
    if (/^text\/event-stream\b/i.test(answerField(head, 'content-type') ?? '')) permit?.becomeStream();
    return this.#relay;
  }

  /** What is at hand costs no wait; undefined where something has to be waited for, or the request has ended. */
  #tryGather(): Means | undefined {
    const token = this.#parts.tokens.current();
    if (token === undefined || this.#exchange.lifeline.ended !== undefined) return undefined;
    const permit = this.#ticket.tryPermit();
    return permit && (this.#means = { permit, token });
  }

  /** Waits until there is a token and a permit to spend it with. */
  async #gather(): Promise<Means> {
    const { tokens } = this.#parts;
    const { lifeline, watch } = this.#exchange;
    for (;;) {
      if (tokens.current() === undefined) await awaitToken(tokens, lifeline, watch);
      // Looked at right before the ticket is used: a request that has ended has no place to wait at any more.
      if (lifeline.ended !== undefined) throw nameEnd('queue', lifeline.ended);
      const permit = await inStage('queue', this.#ticket.permit(), watch);
      const token = tokens.current();
      if (token !== undefined) return (this.#means = { permit, token });
      // It ran out while the request waited: nothing is spent until there is one again.
      permit.cancel();
    }
  }

  #send({ token }: Means): Attempt {
    const { upstream } = this.#parts;
    const { path, request } = this.#exchange;
    const needsNewConnection = this.#next?.reason === 'reset' || this.#next?.reason === 'connect';
    this.#tellBegun();
    const fields = this.#fieldsWith(token);
    const method = request.method ?? 'GET';
    const { body, contentLength } = this.#content();
    return upstream.send({ method, path, fields, body, contentLength, needsNewConnection }, this);
  }

  #fieldsWith(token: Token): string[] {
    const { fields, hasContentType } = this.#fields;
    const sent = [...fields];
    const hasBody = this.#body.receivedBytes > 0 || !this.#body.isWhole;
    if (hasBody && !hasContentType) sent.push('Content-Type', 'application/json');
    sent.push('Authorization', `Bearer ${token.value}`);
    const { watch, path, request } = this.#exchange;
    const { baseUrl } = this.#parts.upstream;
    return watch?.attemptBegins({ method: request.method ?? 'GET', baseUrl, path, fields: sent }) ?? sent;
  }

  #content() {
    if (this.#body.isWhole) return { body: this.#body.bytes, contentLength: undefined };
    const stream = this.#body.stream((reason) => {
      this.#exchange.lifeline.end({ kind: 'failed', error: reason });
    });
    return { body: stream, contentLength: this.#body.declaredBytes };
  }

  /** @throws SidecarError when nothing follows, or the lifeline's end is why it failed */
  #judgeFailure(failure: UpstreamFailure): void {
    const { ended, leftMs } = this.#exchange.lifeline;
    // With a head the attempt has been told of already.
    if (this.#next === undefined) this.#tellEnded(failureOutcome(failure, leftMs <= 0));
    if (ended !== undefined) throw nameEnd('upstream', ended);
    // An answer that broke off while it was held back: its head has said what follows.
    if (this.#next !== undefined) return;
    this.#next = this.#steps.after({ kind: 'failure', failure });
    if (this.#next === undefined) throw faultOf(failure);
  }

  /** Waits as the step wants it; false when no newer token is to be had. */
  async #takeNextStep(token: Token): Promise<boolean> {
    const { lifeline, watch } = this.#exchange;
    if (this.#next?.kind === 'back-off') await inStage('upstream', lifeline.sleep(this.#next.delayMs), watch);
    if (this.#next?.kind !== 'refresh-token') return true;
    const verdict = await inStage(
      'token',
      lifeline.during((signal) => this.#parts.tokens.unauthorized(token, signal)),
      watch,
    );
    this.#steps.isReplayed = true;
    return verdict.kind === 'replay';
  }

  /** Keeps the upstream's last word; its memory counts with the replay buffers. */
  #hold(answer: HeldAnswer): void {
    const { memory } = this.#parts;
    memory.giveBack(this.#held?.body.length ?? 0);
    memory.reserve(answer.body.length);
    this.#held = answer;
  }

  /** @throws SidecarError where there is none */
  #giveLastWord(end: Exclude<AttemptEnd, { kind: 'relayed' }>): Relayed {
    if (end.kind === 'held') return this.#giveHeld(end.answer);
    throw faultOf(end.failure);
  }

  #giveHeld(answer: HeldAnswer): Relayed {
    relayHeld(answer, this.#relay);
    return { status: answer.head.status, fault: undefined };
  }

  /** A retry is one only now that there is a permit and a token for it. */
  #tellBegun(): void {
    const { observe, route } = this.#parts;
    if (this.#next !== undefined) observe({ kind: 'retry', route, reason: this.#next.reason });
    this.#next = undefined;
    this.#exchange.tally.attempts++;
  }

  #tellEnded(outcome: AttemptOutcome): void {
    const { observe, route, clock } = this.#parts;
    observe({ kind: 'attempt-ended', route, outcome, durationMs: clock.now() - (this.#means?.permit.grantedAt ?? 0) });
  }
}

function isClientGone(error: unknown): boolean {
  return error instanceof LifelineEnded && error.end.kind === 'client-left';
}
