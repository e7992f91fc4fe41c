/**
 * The attempts of one admitted request: permit, bearer, send, judge the head, and again where the policy says so.
 * An answer that may be followed by another attempt is held back, so that the client gets the upstream's own last word
 * when attempts or time are spent. The current token is read the moment the permit is spent.
 */
import { SidecarError } from '../platform/errors.ts';
import type { AttemptOutcome } from '../telemetry/events.ts';
import type { Ticket } from '../throttle/throttle.ts';
import { answerField, type AnswerHead } from '../upstream/answer-head.ts';
import type { Attempt } from '../upstream/attempt.ts';
import type { AttemptEnd, AttemptTerms } from '../upstream/attempt-terms.ts';
import { answerOutcome, endOf, faultOf } from './attempt-outcome.ts';
import type { Exchange, ExchangeParts, Outcome, Relayed } from './exchange.ts';
import { NextSteps, type NextStep } from './next-step.ts';
import { LastWord } from './last-word.ts';
import { Outgoing, type AttemptInputs } from './outgoing.ts';
import { Relay } from './relay.ts';
import type { RequestBody } from './request-body/replay-body.ts';
import { awaitToken, inStage, isOver, isReason, nameEnd } from './stage.ts';

export class Attempts implements AttemptTerms {
  readonly responseTimeoutMs: number;
  readonly bodyIdleTimeoutMs: number;
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #ticket: Ticket;
  readonly #body: RequestBody;
  readonly #outcome: Outcome;
  readonly #outgoing: Outgoing;
  readonly #relay: Relay;
  readonly #steps: NextSteps;
  /** Those of the attempt under way, or just ended. */
  #means: AttemptInputs | undefined;
  /** Made when there is one to keep. */
  #lastWord: LastWord | undefined;
  /** What follows the attempt under way or just ended; undefined as long as nothing does. */
  #next: NextStep | undefined;
  /** Of the head that has come in the attempt under way or just ended. */
  #headOutcome: AttemptOutcome | undefined;
  #headAt = 0;
  /** The response goes to the client: from here on nothing is sent again. */
  #isPassedOn = false;
  /** The one under way, or the last. */
  #attempt: Attempt | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange, ticket: Ticket, body: RequestBody, outcome: Outcome) {
    this.responseTimeoutMs = parts.requestTimeoutMs;
    this.bodyIdleTimeoutMs = parts.bodyIdleTimeoutMs;
    this.#parts = parts;
    this.#exchange = exchange;
    this.#ticket = ticket;
    this.#body = body;
    this.#outcome = outcome;
    this.#outgoing = new Outgoing(parts, exchange, body);
    const { method, hasIdempotencyKey } = this.#outgoing;
    const { lifeline } = exchange;
    this.#steps = new NextSteps(parts, { method, hasIdempotencyKey, body, lifeline, ticket });
    this.#relay = new Relay(exchange, parts);
  }

  /** Makes the attempts; to be called once. The first one goes out at once where nothing has to be waited for. */
  begin(): void {
    try {
      const means = this.#tryGather();
      if (means === undefined) void this.#sendWhenReady();
      else this.#send(means);
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** Ends the attempt under way. */
  abort(): void {
    this.#attempt?.abort();
  }

  onEnded(end: AttemptEnd): void {
    this.#exchange.watch?.attemptEnds(end);
    this.#means?.permit.release();
    this.#recordEnd(end);
    if (end.kind === 'relayed') this.#settle({ status: end.head.status, fault: end.fault });
    else void this.#goOn(end);
  }

  async #sendWhenReady(): Promise<void> {
    try {
      this.#send(await this.#gather());
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** After an attempt that has not answered the client: another, or the last word. */
  async #goOn(end: Exclude<AttemptEnd, { kind: 'relayed' }>): Promise<void> {
    try {
      const next = this.#stepAfter(end);
      if (await this.#awaitStep(next)) this.#repeat(next, this.#tryGather() ?? (await this.#gather()));
      // The 401 is kept, and is what the client gets.
      else this.#giveUp(new SidecarError('TOKEN_UNAVAILABLE', 'no newer access token was to be had'));
    } catch (error) {
      this.#giveUp(error);
    }
  }

  /** The upstream's own last word is better news than the sidecar's reason for not asking again. */
  #giveUp(reason: unknown): void {
    this.#means?.permit.release();
    this.#steps.forgo(this.#next);
    let relayed: Relayed | undefined;
    let fault = reason;
    try {
      // A fault in here is to be seen, and who has left hears nothing.
      if (isReason(reason)) relayed = this.#lastWord?.tell(this.#relay);
    } catch (thrown) {
      fault = thrown;
    }
    this.#settle(relayed, fault);
  }

  #settle(relayed: Relayed | undefined, fault?: unknown): void {
    this.#exchange.tally.responseBytes = this.#relay.sentBytes;
    this.#lastWord?.forget();
    if (relayed === undefined) this.#outcome.failed(fault);
    else this.#outcome.relayed(relayed);
  }

  onStart(): void {
    this.#means?.permit.used();
  }

  /** Reports what a head shows, and decides whether its answer goes to the client or is held back. */
  onHead(head: AnswerHead, at: number): Relay | 'hold' {
    const { tokens, answerSignals } = this.#parts;
    const { result, isRateLimited, statedWaitMs } = answerSignals.read(head);
    this.#headOutcome = answerOutcome(head.status, isRateLimited);
    this.#headAt = at;
    this.#means?.permit.report(result);
    if (this.#steps.isReplayed && head.status !== 401 && this.#means !== undefined) tokens.accepted(this.#means.token);
    this.#next = this.#steps.after({ kind: 'answer', status: head.status, isRateLimited }, statedWaitMs);
    return this.#next === undefined ? this.#passOn(head) : 'hold';
  }

  /** One that is too large to be held back is the last. */
  onOverflow(head: AnswerHead): Relay {
    this.#steps.forgo(this.#next);
    this.#next = undefined;
    return this.#passOn(head);
  }

  /** The answer goes to the client now, whatever it is. */
  #passOn(head: AnswerHead): Relay {
    const { permit, token } = this.#means ?? {};
    // The token is as suspect as if the request could be replayed.
    if (head.status === 401 && token !== undefined)
      void this.#parts.tokens.unauthorized(token, new AbortController().signal);
    if (/^text\/event-stream\b/i.test(answerField(head, 'content-type') ?? '')) permit?.becomeStream();
    // From here on nothing is sent again: an answer may last for hours. An earlier one would be out of date.
    this.#isPassedOn = true;
    this.#body.dispose();
    this.#lastWord?.forget();
    return this.#relay;
  }

  /** What is at hand costs no wait; undefined where something has to be waited for, or the request has ended. */
  #tryGather(): AttemptInputs | undefined {
    const token = this.#parts.tokens.current();
    if (token === undefined || this.#exchange.lifeline.ended !== undefined) return undefined;
    const permit = this.#ticket.tryPermit();
    return permit && (this.#means = { permit, token });
  }

  /** Waits until there is a token and a permit to spend it with. */
  async #gather(): Promise<AttemptInputs> {
    const { tokens } = this.#parts;
    const { lifeline, watch } = this.#exchange;
    for (;;) {
      if (tokens.current() === undefined) await awaitToken(tokens, lifeline, watch);
      // Looked at right before the ticket is used: a request that has ended has no place to wait at any more.
      if (lifeline.ended !== undefined) throw nameEnd('queue', lifeline.ended);
      const permit = await inStage('queue', this.#ticket.permit(), watch);
      const token = isOver(lifeline) ? undefined : tokens.current();
      if (token !== undefined) return (this.#means = { permit, token });
      // It ran out while the request waited: nothing is spent until there is one again.
      permit.cancel();
    }
  }

  #send(inputs: AttemptInputs, needsNewConnection = false): void {
    this.#headOutcome = undefined;
    this.#exchange.tally.attempts++;
    this.#attempt = this.#parts.upstream.send(this.#outgoing.with(inputs, needsNewConnection), this);
  }

  /** A retry is one only now that there is a permit and a token for it. */
  #repeat({ reason }: NextStep, inputs: AttemptInputs): void {
    const { observe, route } = this.#parts;
    observe({ kind: 'retry', route, reason });
    this.#next = undefined;
    this.#send(inputs, reason === 'reset' || reason === 'connect');
  }

  /** @throws SidecarError when nothing follows, or the lifeline's end is why it failed */
  #stepAfter(end: Exclude<AttemptEnd, { kind: 'relayed' }>): NextStep {
    if (end.kind === 'held') {
      (this.#lastWord ??= new LastWord(this.#parts.memory)).keep(end.answer);
      if (this.#next === undefined) throw new SidecarError('UPSTREAM_PROTOCOL_ERROR', 'the answer was not passed on');
      return this.#next;
    }
    const { failure } = end;
    const { ended } = this.#exchange.lifeline;
    if (ended !== undefined) throw nameEnd('upstream', ended);
    if (!this.#isPassedOn) this.#next = this.#steps.after({ kind: 'failure', failure });
    if (this.#next === undefined) throw faultOf(failure);
    return this.#next;
  }

  /** Waits as the step wants it; false when no newer token is to be had. */
  async #awaitStep(next: NextStep): Promise<boolean> {
    const { lifeline, watch } = this.#exchange;
    if (next.kind === 'back-off') await inStage('upstream', lifeline.sleep(next.delayMs), watch);
    const token = this.#means?.token;
    if (next.kind !== 'refresh-token' || token === undefined) return true;
    const verdict = await inStage(
      'token',
      lifeline.during((signal) => this.#parts.tokens.unauthorized(token, signal)),
      watch,
    );
    this.#steps.isReplayed = true;
    return verdict.kind === 'replay';
  }

  #recordEnd(end: AttemptEnd): void {
    const { observe, route, clock } = this.#parts;
    const headOutcome = this.#headOutcome;
    const endedAt = headOutcome === undefined ? clock.now() : this.#headAt;
    const durationMs = endedAt - (this.#means?.permit.grantedAt ?? 0);
    const { outcome, isOwn } = endOf(end, headOutcome, this.#exchange.lifeline.ended?.end);
    observe({ kind: 'attempt-ended', route, outcome, isOwn, durationMs });
  }
}
