/** A request that is carried through an exchange: over when it has been handled and its answer is closed, whichever comes last. */
import type { Exchange, ExchangeParts, OutcomeListener, RelayedResponse } from '../exchange/exchange.ts';
import { ActiveRequest } from './active-requests.ts';
import { isCutShort, notifyWhenClosed, type RequestOutcome } from './request-outcome.ts';

/** What it needs of the port that it came to. Neither call may throw. */
export interface ExchangeHost {
  /** Answers a request that failed, if it can be answered. @returns what it ends as */
  replyToFailure(exchange: Exchange, reason: unknown): RequestOutcome;
  /** Called once. */
  complete(carried: ActiveExchange, ending: RequestOutcome): void;
}

export class ActiveExchange extends ActiveRequest implements OutcomeListener {
  readonly parts: ExchangeParts;
  readonly exchange: Exchange;
  readonly #host: ExchangeHost;
  #outcome: RequestOutcome | undefined;
  #isClosed = false;

  constructor(port: ExchangeHost, parts: ExchangeParts, exchange: Exchange) {
    super(exchange.lifetime, exchange.request, exchange.response);
    this.parts = parts;
    this.exchange = exchange;
    this.#host = port;
    notifyWhenClosed(exchange.response, this);
  }

  relayed(relayed: RelayedResponse): void {
    this.#setOutcome({ kind: 'relayed', relayed });
  }

  failed(reason: unknown): void {
    this.#setOutcome(this.#host.replyToFailure(this.exchange, reason));
  }

  onClosed(isBroken: boolean): void {
    if (isBroken && !isCutShort(this.#outcome)) this.lifetime.abort({ kind: 'client-left' });
    this.#isClosed = true;
    if (this.#outcome !== undefined) this.#host.complete(this, this.#outcome);
  }

  #setOutcome(ending: RequestOutcome): void {
    this.#outcome = ending;
    if (this.#isClosed) this.#host.complete(this, ending);
  }
}
