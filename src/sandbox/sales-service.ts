/** The simulated insurer: prices quotes, issues policies and keeps a bounded number of both. All data is invented. */
import { randomUUID } from 'node:crypto';
import { createInputRejection, type PolicyRequest, type QuoteRequest } from './sales-input.ts';

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

const CENTS_PER_TRAVELLER_DAY = 349;

export class SalesService {
  readonly #quotes = new Map<string, Quote>();
  readonly #policies = new Map<string, Policy>();

  createQuote({ days, travellers }: QuoteRequest): Quote {
    const amount = (days * travellers * CENTS_PER_TRAVELLER_DAY) / 100;
    const quote: Quote = { quoteRequestId: randomUUID(), premium: { amount, currency: 'EUR' }, simulated: true };
    addRecord(this.#quotes, quote.quoteRequestId, quote);
    return quote;
  }

  /** @throws RequestRejection */
  issuePolicy({ quoteRequestId }: PolicyRequest): Policy {
    const quote = this.#quotes.get(quoteRequestId);
    if (quote === undefined)
      throw createInputRejection([{ field: 'quoteRequestId', message: 'must name a quote request made before' }]);
    const { premium } = quote;
    const policy: Policy = { policyId: randomUUID(), quoteRequestId, status: 'issued', premium, simulated: true };
    addRecord(this.#policies, policy.policyId, policy);
    return policy;
  }

  policy(policyId: string): Policy | undefined {
    return this.#policies.get(policyId);
  }
}

/** Most quotes and most policies that are kept. */
const MAX_RECORDS = 1000;

/** Adds a record, and drops the oldest one beyond the bound: a Map keeps the order of insertion. */
function addRecord<T>(records: Map<string, T>, id: string, record: T): void {
  records.set(id, record);
  const [oldest = id] = records.keys();
  if (records.size > MAX_RECORDS) records.delete(oldest);
}
