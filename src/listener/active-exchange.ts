/** A request that is being forwarded. It is complete when it has an outcome and its response is closed. */
import type { Exchange, ExchangeParts, PendingAttempt, RequestOutcome } from '../exchange/exchange.ts';
import { ActiveRequest } from './active-requests.ts';

/** The server that received the request. Neither call may throw. */
export interface ExchangeHost {
  /** Sends a local reply, if that is still possible. */
  replyToFailure(exchange: Exchange, reason: unknown): RequestOutcome;
  /** Called once, to record the outcome. */
  complete(active: ActiveExchange, outcome: RequestOutcome): void;
}

export class ActiveExchange extends ActiveRequest {
  readonly parts: ExchangeParts;
  readonly exchange: Exchange;
  readonly #host: ExchangeHost;
  #outcome: RequestOutcome | undefined;
  #isClosed = false;

  constructor(host: ExchangeHost, parts: ExchangeParts, exchange: Exchange) {
    super(exchange.lifetime, exchange.request, exchange.response);
    this.parts = parts;
    this.exchange = exchange;
    this.#host = host;
  }

  override get pending(): PendingAttempt | undefined {
    return this.exchange.stats.pending;
  }

  /** To be called once, as soon as the request is forwarded. */
  completeWith(forwarding: Promise<RequestOutcome>): void {
    this.exchange.response.on('close', this.#onClosed);
    forwarding.then(this.#onOutcome, (thrown: unknown) => {
      this.#onOutcome(this.#host.replyToFailure(this.exchange, thrown));
    });
  }

  /** Node.js 22 and 24.9 emit no `close` for a response that waits behind another one. */
  override onConnectionClosed(): void {
    this.#onClosed();
  }

  readonly #onOutcome = (outcome: RequestOutcome): void => {
    this.#outcome = outcome;
    if (this.#isClosed) this.#host.complete(this, outcome);
  };

  readonly #onClosed = (): void => {
    if (this.exchange.response.writableFinished) this.#close();
    // By the next turn a response that the sidecar has broken off has its outcome.
    else setImmediate(() => this.#abortAndClose());
  };

  #abortAndClose(): void {
    const isCut = this.#outcome?.kind === 'relayed' && this.#outcome.fault !== undefined;
    if (!isCut) this.lifetime.abort({ kind: 'client-left' });
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#outcome !== undefined) this.#host.complete(this, this.#outcome);
  }
}
