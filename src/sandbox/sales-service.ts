/** The simulated insurer: prices quotes, issues policies and keeps a bounded number of both. All data is invented. */
import { randomUUID } from 'node:crypto';
import type { FieldFault, PolicyRequest, QuoteRequest } from './sales-input.ts';

interface Premium {
  readonly amount: number;
  readonly currency: 'EUR';
}

export interface Quote {
  readonly quoteRequestId: string;
  readonly premium: Premium;
  readonly simulated: true;
}

export interface Policy {
  readonly policyId: string;
  readonly quoteRequestId: string;
  readonly status: 'issued';
  readonly premium: Premium;
  readonly simulated: true;
}

export type PolicyDecision =
  { readonly kind: 'issued'; readonly policy: Policy } | { readonly kind: 'rejected'; readonly fault: FieldFault };

const CENTS_PER_TRAVELLER_DAY = 349;

export class SalesService {
  readonly #quotes: BoundedRecords<Quote>;
  readonly #policies: BoundedRecords<Policy>;

  /** @param recordsMax most quotes and most policies that are kept; the oldest are dropped first */
  constructor(recordsMax: number) {
    this.#quotes = new BoundedRecords(recordsMax);
    this.#policies = new BoundedRecords(recordsMax);
  }

  createQuote({ days, travellers }: QuoteRequest): Quote {
    const amount = (days * travellers * CENTS_PER_TRAVELLER_DAY) / 100;
    const quote: Quote = { quoteRequestId: randomUUID(), premium: { amount, currency: 'EUR' }, simulated: true };
    this.#quotes.add(quote.quoteRequestId, quote);
    return quote;
  }

  issuePolicy({ quoteRequestId }: PolicyRequest): PolicyDecision {
    const quote = this.#quotes.get(quoteRequestId);
    if (quote === undefined)
      return { kind: 'rejected', fault: { field: 'quoteRequestId', message: 'must name a quote request made before' } };
    const { premium } = quote;
    const policy: Policy = { policyId: randomUUID(), quoteRequestId, status: 'issued', premium, simulated: true };
    this.#policies.add(policy.policyId, policy);
    return { kind: 'issued', policy };
  }

  policy(policyId: string): Policy | undefined {
    return this.#policies.get(policyId);
  }
}

class BoundedRecords<T> {
  readonly #max: number;
  readonly #records = new Map<string, T>();

  constructor(max: number) {
    this.#max = max;
  }

  add(id: string, record: T): void {
    this.#records.set(id, record);
    // A Map keeps the order of insertion, so its first key is the oldest.
    for (const oldest of this.#records.keys()) {
      if (this.#records.size <= this.#max) return;
      this.#records.delete(oldest);
    }
  }

  get(id: string): T | undefined {
    return this.#records.get(id);
  }
}
