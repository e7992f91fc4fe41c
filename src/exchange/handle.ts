/**
 * The story of one request that passed the guard: a usable token first (a broken login fails fast and queues nobody),
 * then a place in the queue, then its body, then attempts until an answer streams back. Most requests find all of it at hand and
 * go in the turn in which they came: no promise is made for them.
 * Faults of the sidecar's own leave as SidecarError; the listener turns them into replies.
 */
import type { IncomingMessage } from 'node:http';
import type { Ticket } from '../throttle/throttle.ts';
import type { Exchange, ExchangeParts, Outcome, Relayed } from './exchange.ts';
import { Attempts } from './attempts.ts';
import { isReceived } from './request-body/received.ts';
import { RequestBody } from './request-body/replay-body.ts';
import { awaitToken, inStage, nameEnd } from './stage.ts';

/** Carries a request through; `outcome` may hear of it before this has returned. */
export function handle(parts: ExchangeParts, exchange: Exchange, outcome: Outcome): void {
  new Handling(parts, exchange, outcome).begin();
}

const SETTLED = Promise.resolve();

class Handling implements Outcome {
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #outcome: Outcome;
  readonly #body: RequestBody;
  #ticket: Ticket | undefined;
  #attempts: Attempts | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange, outcome: Outcome) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#outcome = outcome;
    this.#body = new RequestBody(exchange.request, parts, parts.clock);
    parts.budget.recordRequest(exchange.lifeline.arrivedAt);
  }

  begin(): void {
    const { response, lifeline } = this.#exchange;
    const isAtHand = response.socket !== null && this.#parts.tokens.current() !== undefined;
    if (isAtHand && lifeline.ended === undefined) this.#queueUp();
    else void this.#awaitTurn();
  }

  relayed(relayed: Relayed): void {
    this.#leave();
    this.#outcome.relayed(relayed);
  }

  failed(reason: unknown): void {
    this.#leave();
    this.#outcome.failed(reason);
  }

  async #awaitTurn(): Promise<void> {
    const { tokens } = this.#parts;
    const { response, lifeline, watch } = this.#exchange;
    try {
      // Behind another one of its connection it must not overtake that (RFC 9112 §9.3.2), whose body may be at hand but not read.
      if (response.socket === null) await new Promise(setImmediate);
      if (tokens.current() === undefined) await awaitToken(tokens, lifeline, watch);
      if (lifeline.ended !== undefined) throw nameEnd('token', lifeline.ended);
    } catch (fault) {
      this.failed(fault);
      return;
    }
    this.#queueUp();
  }

  #queueUp(): void {
    try {
      const ticket = this.#enter();
      if (this.#body.isWhole) this.#send(ticket);
      // What came in one packet with the head has been parsed by the next microtask.
      else void SETTLED.then(() => this.#takeBody(ticket));
    } catch (fault) {
      // By then it is known, too, whether the rest of a request that is refused is here.
      void SETTLED.then(() => this.failed(fault));
    }
  }

  /** @throws SidecarError QUEUE_FULL, QUEUE_TIMEOUT, DRAINING */
  #enter(): Ticket {
    const { lifeline, standing } = this.#exchange;
    const ticket = this.#parts.throttle.enter(lifeline.deadlineAt, standing, !this.#body.isWhole);
    this.#ticket = ticket;
    lifeline.onEnd((reason) => {
      // The queue keeps the deadline itself, and counts it as what it is.
      if (reason.end.kind !== 'deadline') ticket.leave(nameEnd('queue', reason));
      this.#attempts?.abort();
    });
    return ticket;
  }

  /** Where many wait: each holds as little as it can. A body that is received meanwhile needs no place for being read. */
  #awaitPlace(ticket: Ticket): void {
    const { request, watch } = this.#exchange;
    const stop = expectsContinue(request) ? undefined : this.#body.onceReceived(() => ticket.bodyReceived());
    watch?.waitBegins('queue');
    ticket.admitted().then(
      () => {
        stop?.();
        watch?.waitEnds();
        this.#takeBody(ticket);
      },
      (reason: unknown) => {
        stop?.();
        watch?.waitEnds();
        this.failed(reason);
      },
    );
  }

  /** A body that has been received is read when the permit is there. A client that expects 100 (Continue) gets it in any case. */
  #takeBody(ticket: Ticket): void {
    const { request, lifeline } = this.#exchange;
    try {
      if (lifeline.ended !== undefined) throw nameEnd('queue', lifeline.ended);
      if (!expectsContinue(request) && isReceived(request)) {
        ticket.bodyReceived();
        this.#send(ticket);
      } else if (ticket.isAdmitted) {
        void this.#readBody(ticket);
      } else {
        this.#awaitPlace(ticket);
      }
    } catch (fault) {
      this.failed(fault);
    }
  }

  async #readBody(ticket: Ticket): Promise<void> {
    const { request, response, lifeline, watch } = this.#exchange;
    try {
      if (expectsContinue(request)) response.writeContinue();
      await inStage('body', this.#body.read(lifeline, ticket), watch);
      this.#send(ticket);
    } catch (fault) {
      this.failed(fault);
    }
  }

  #send(ticket: Ticket): void {
    this.#attempts = new Attempts(this.#parts, this.#exchange, ticket, this.#body, this);
    this.#attempts.begin();
  }

  #leave(): void {
    const { tally } = this.#exchange;
    if (this.#ticket !== undefined) {
      this.#ticket.leave();
      tally.queuedMs = this.#ticket.waitedMs;
    }
    tally.requestBytes = this.#body.receivedBytes;
    this.#body.dispose();
  }
}

/** RFC 9110 §10.1.1: an interim answer is nothing that HTTP/1.0 knows. */
function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && /^100-continue$/i.test(headers.expect ?? '');
}
