/**
 * Finds the token endpoint by what its issuer publishes, and remembers it: for an hour as it is, and for as long as the issuer
 * cannot be asked. What a document must say to be believed is server-metadata's.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Observe } from '../../telemetry/events.ts';
import { metadataUrls, readMetadata } from './server-metadata.ts';
import type { ServerMetadata } from './server-metadata.ts';
import { readBounded } from './single-exchange.ts';
import type { FailedAnswer } from './token-answer.ts';

export interface DiscoveryOptions {
  /** Exactly as the server writes it. */
  readonly issuer: string;
  readonly allowInsecureHttp: boolean;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** Longest time for a refresh that nobody waits for, milliseconds. */
  readonly timeoutMs: number;
  readonly observe: Observe;
}

/** Sends one GET; rejects when there is no answer. */
export type GetDocument = (url: URL, signal: AbortSignal) => Promise<DocumentAnswer>;

export interface DocumentAnswer {
  readonly status: number;
  /** Undefined when it is not worth reading, or too long. */
  readonly text: string | undefined;
}

export type Located =
  | { readonly kind: 'located'; readonly metadata: ServerMetadata }
  | { readonly kind: 'failed'; readonly answer: FailedAnswer };

const FRESH_MS = 3_600_000;
/** After a refresh that failed. */
const REST_MS = 60_000;
/** What real servers publish is a tenth of it. */
const LARGEST_DOCUMENT_BYTES = 128 * 1024;

export class Discovery {
  readonly #options: DiscoveryOptions;
  #held: ServerMetadata | undefined;
  /** The held copy is as it is until then. */
  #freshUntil = 0;
  #refresh: Promise<void> | undefined;
  #isComplained = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /**
   * The copy in hand, if there is one: an old one is renewed behind the caller's back, for the next time. Rejects when there is
   * none and the issuer does not answer.
   * @param signal ends the search that the caller waits for
   * @param lasting ends the renewal of an old copy
   */
  async locate(get: GetDocument, signal: AbortSignal, lasting: AbortSignal): Promise<Located> {
    if (this.#held === undefined) return this.#fetch(get, signal);
    if (this.#options.clock.now() >= this.#freshUntil) this.#refresh ??= this.#renew(get, lasting);
    return { kind: 'located', metadata: this.#held };
  }

  /** The endpoint that was found is not where it was said to be. */
  doubt(): void {
    this.#freshUntil = Math.min(this.#freshUntil, this.#options.clock.now());
  }

  async #renew(get: GetDocument, signal: AbortSignal): Promise<void> {
    const { clock, timeoutMs, issuer, observe } = this.#options;
    const timeout = new AbortController();
    const cancel = clock.after(timeoutMs, () => {
      timeout.abort();
    });
    const fault = await this.#fetch(get, AbortSignal.any([signal, timeout.signal])).then(
      (located) => (located.kind === 'failed' ? located.answer.detail : undefined),
      () => `${issuer} cannot be asked`,
    );
    cancel();
    this.#refresh = undefined;
    if (fault === undefined || signal.aborted) return;
    this.#freshUntil = clock.now() + REST_MS;
    if (!this.#isComplained) observe({ kind: 'warning', message: `${fault}; the copy in hand stays in use` });
    this.#isComplained = true;
  }

  async #fetch(get: GetDocument, signal: AbortSignal): Promise<Located> {
    const { issuer, allowInsecureHttp, clock } = this.#options;
    const failures: FailedAnswer[] = [];
    for (const url of metadataUrls(issuer)) {
      const { status, text } = await get(url, signal);
      if (status !== 200 || text === undefined) {
        failures.push(describeAnswer(url, status));
        continue;
      }
      const reading = readMetadata(text, issuer, allowInsecureHttp);
      if (reading.kind === 'read') {
        this.#held = reading.metadata;
        this.#freshUntil = clock.now() + FRESH_MS;
        this.#isComplained = false;
        return { kind: 'located', metadata: reading.metadata };
      }
      failures.push({ kind: 'malformed', detail: `the metadata of ${url.href} ${reading.fault}` });
    }
    return { kind: 'failed', answer: mostTelling(failures) };
  }
}

/** Reads a document's answer as far as it is of use. */
export async function readDocument(answer: {
  readonly statusCode: number;
  readonly body: AsyncIterable<Buffer>;
}): Promise<DocumentAnswer> {
  const status = answer.statusCode;
  return { status, text: status === 200 ? await readBounded(answer.body, LARGEST_DOCUMENT_BYTES) : undefined };
}

function describeAnswer(url: URL, status: number): FailedAnswer {
  const asked = `${url.href} answered the request for the issuer's metadata with ${String(status)}`;
  if (status === 404) return { kind: 'rejected', detail: `${asked}: check auth.issuer` };
  return { kind: 'unavailable', detail: status === 200 ? `${asked} and too long a body` : asked };
}

/** A document that is wrong says more than one that is not there, and an outage must not be taken for a refusal. */
function mostTelling(failures: readonly FailedAnswer[]): FailedAnswer {
  const order = ['malformed', 'unavailable', 'rejected'];
  const [first] = failures.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return first ?? { kind: 'unavailable', detail: 'no metadata was found' };
}
