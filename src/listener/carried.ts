/** A request that is carried through an exchange: over when it has been handled and its answer is closed, whichever comes last. */
import type { Exchange, ExchangeParts, Outcome, Relayed } from '../exchange/exchange.ts';
import { ActiveRequest } from './active-requests.ts';
import { isCut, onceClosed, type Ending } from './ending.ts';

/** What it needs of the port that it came to. Neither call may throw. */
export interface CarryingPort {
  /** Answers a request that failed, if it can be answered. @returns what it ends as */
  answerFailed(exchange: Exchange, reason: unknown): Ending;
  /** Called once. */
  conclude(carried: Carried, ending: Ending): void;
}

export class Carried extends ActiveRequest implements Outcome {
  readonly parts: ExchangeParts;
  readonly exchange: Exchange;
  readonly #port: CarryingPort;
  #ending: Ending | undefined;
  #isClosed = false;

  constructor(port: CarryingPort, parts: ExchangeParts, exchange: Exchange) {
    super(exchange.lifeline, exchange.request, exchange.response);
    this.parts = parts;
    this.exchange = exchange;
    this.#port = port;
    onceClosed(exchange.response, this);
  }

  relayed(relayed: Relayed): void {
    this.#end({ kind: 'relayed', relayed });
  }

  failed(reason: unknown): void {
    this.#end(this.#port.answerFailed(this.exchange, reason));
  }

  onClosed(isBroken: boolean): void {
    if (isBroken && !isCut(this.#ending)) this.lifeline.end({ kind: 'client-left' });
    this.#isClosed = true;
    if (this.#ending !== undefined) this.#port.conclude(this, this.#ending);
  }

  #end(ending: Ending): void {
    this.#ending = ending;
    if (this.#isClosed) this.#port.conclude(this, ending);
  }
}
