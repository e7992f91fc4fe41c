/**
 * The story of one request that passed the guard: a usable token first (a broken login fails fast and queues nobody),
 * then a place in the queue, then its body, then attempts until an answer streams back. Most requests find all of it at hand and
 * go in the turn in which they came: no promise is made for them.
 * Faults of the sidecar's own leave as SidecarError; the listener turns them into replies.
 */
import type { IncomingMessage } from 'node:http';
import type { Ticket } from '../throttle/throttle.ts';
import type { Exchange, ExchangeParts, OutcomeListener, RelayedResponse } from './exchange.ts';
import { Attempts } from './attempts.ts';
import { isFullyReceived } from './request-body/request-receipt.ts';
import { RequestBody } from './request-body/replay-body.ts';
import { awaitToken, waitInStage, toStageError } from './stage.ts';

/** Carries a request through; `outcome` may hear of it before this has returned. */
export function forwardRequest(parts: ExchangeParts, exchange: Exchange, outcome: OutcomeListener): void {
  new RequestForwarder(parts, exchange, outcome).start();
}

const SETTLED = Promise.resolve();

class RequestForwarder implements OutcomeListener {
  readonly #parts: ExchangeParts;
  readonly #exchange: Exchange;
  readonly #outcome: OutcomeListener;
  readonly #body: RequestBody;
  #ticket: Ticket | undefined;
  #attempts: Attempts | undefined;

  constructor(parts: ExchangeParts, exchange: Exchange, outcome: OutcomeListener) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#outcome = outcome;
    this.#body = new RequestBody(exchange.request, parts, parts.clock);
    parts.retryBudget.recordRequest(exchange.lifetime.arrivedAt);
  }

  start(): void {
    const { response, lifetime } = this.#exchange;
    const isAtHand = response.socket !== null && this.#parts.tokens.current() !== undefined;
    if (isAtHand && lifetime.aborted === undefined) this.#enqueue();
    else void this.#awaitTokenAndEnqueue();
  }

  relayed(relayed: RelayedResponse): void {
    this.#release();
    this.#outcome.relayed(relayed);
  }

  failed(reason: unknown): void {
    this.#release();
    this.#outcome.failed(reason);
  }

  async #awaitTokenAndEnqueue(): Promise<void> {
    const { tokens } = this.#parts;
    const { response, lifetime, tracer } = this.#exchange;
    try {
      // Behind another one of its connection it must not overtake that (RFC 9112 §9.3.2), whose body may be at hand but not read.
      if (response.socket === null) await new Promise(setImmediate);
      if (tokens.current() === undefined) await awaitToken(tokens, lifetime, tracer);
      if (lifetime.aborted !== undefined) throw toStageError('token', lifetime.aborted);
    } catch (fault) {
      this.failed(fault);
      return;
    }
    this.#enqueue();
  }

  #enqueue(): void {
    try {
      const ticket = this.#takeTicket();
      if (this.#body.isWhole) this.#startAttempts(ticket);
      // What came in one packet with the head has been parsed by the next microtask.
      else void SETTLED.then(() => this.#prepareBody(ticket));
    } catch (fault) {
      // By then it is known, too, whether the rest of a request that is refused is here.
      void SETTLED.then(() => this.failed(fault));
    }
  }

  /** @throws SidecarError QUEUE_FULL, QUEUE_TIMEOUT, DRAINING */
  #takeTicket(): Ticket {
    const { lifetime, queueClass } = this.#exchange;
    const ticket = this.#parts.throttle.enter(lifetime.deadlineAt, queueClass, !this.#body.isWhole);
    this.#ticket = ticket;
    lifetime.onAbort((reason) => {
      // The queue keeps the deadline itself, and counts it as what it is.
      if (reason.reason.kind !== 'deadline') ticket.leave(toStageError('queue', reason));
      this.#attempts?.abort();
    });
    return ticket;
  }

  /** Where many wait: each holds as little as it can. A body that is received meanwhile needs no place for being read. */
  #awaitAdmission(ticket: Ticket): void {
    const { request, tracer } = this.#exchange;
    const stop = expectsContinue(request) ? undefined : this.#body.onFullyReceived(() => ticket.recordBodyEnd());
    tracer?.startWait('queue');
    ticket.waitForAdmission().then(
      () => {
        stop?.();
        tracer?.endWait();
        this.#prepareBody(ticket);
      },
      (reason: unknown) => {
        stop?.();
        tracer?.endWait();
        this.failed(reason);
      },
    );
  }

  /** A body that has been received is read when the permit is there. A client that expects 100 (Continue) gets it in any case. */
  #prepareBody(ticket: Ticket): void {
    const { request, lifetime } = this.#exchange;
    try {
      if (lifetime.aborted !== undefined) throw toStageError('queue', lifetime.aborted);
      if (!expectsContinue(request) && isFullyReceived(request)) {
        ticket.recordBodyEnd();
        this.#startAttempts(ticket);
      } else if (ticket.isAdmitted) {
        void this.#readBody(ticket);
      } else {
        this.#awaitAdmission(ticket);
      }
    } catch (fault) {
      this.failed(fault);
    }
  }

  async #readBody(ticket: Ticket): Promise<void> {
    const { request, response, lifetime, tracer } = this.#exchange;
    try {
      if (expectsContinue(request)) response.writeContinue();
      await waitInStage('body', this.#body.read(lifetime, ticket), tracer);
      this.#startAttempts(ticket);
    } catch (fault) {
      this.failed(fault);
    }
  }

  #startAttempts(ticket: Ticket): void {
    this.#attempts = new Attempts(this.#parts, this.#exchange, ticket, this.#body, this);
    this.#attempts.start();
  }

  #release(): void {
    const { stats } = this.#exchange;
    if (this.#ticket !== undefined) {
      this.#ticket.leave();
      stats.queuedMs = this.#ticket.waitedMs;
    }
    stats.requestBytes = this.#body.receivedBytes;
    this.#body.dispose();
  }
}

/** RFC 9110 §10.1.1: an interim answer is nothing that HTTP/1.0 knows. */
function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && /^100-continue$/i.test(headers.expect ?? '');
}
