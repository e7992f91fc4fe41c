/**
 * Finds the token endpoint by what its issuer publishes, and remembers it: for an hour as it is, and for as long as the issuer
 * cannot be asked. What a document must say to be believed is server-metadata's.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { listMetadataUrls, parseServerMetadata } from './server-metadata.ts';
import type { ServerMetadata } from './server-metadata.ts';
import { readBoundedText } from './single-request.ts';
import type { TokenRequestFailure } from './token-response.ts';

export interface DiscoveryOptions {
  /** Exactly as the server writes it. */
  readonly issuer: string;
  readonly allowInsecureHttp: boolean;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** Longest time for a refresh that nobody waits for, milliseconds. */
  readonly timeoutMs: number;
  readonly observe: EventObserver;
}

/** Sends one GET; rejects when there is no answer. */
export type GetDocument = (url: URL, signal: AbortSignal) => Promise<DocumentResponse>;

export interface DocumentResponse {
  readonly status: number;
  /** Undefined when it is not worth reading, or too long. */
  readonly text: string | undefined;
}

export type DiscoveryResult =
  | { readonly kind: 'located'; readonly metadata: ServerMetadata }
  | { readonly kind: 'failed'; readonly failure: TokenRequestFailure };

const FRESH_FOR_MS = 3_600_000;
/** After a refresh that failed. */
const REFRESH_RETRY_MS = 60_000;
/** What real servers publish is a tenth of it. */
const LARGEST_DOCUMENT_BYTES = 128 * 1024;

export class Discovery {
  readonly #options: DiscoveryOptions;
  #metadata: ServerMetadata | undefined;
  /** The held copy is as it is until then. */
  #freshUntil = 0;
  #refresh: Promise<void> | undefined;
  #hasWarned = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /**
   * The copy in hand, if there is one: an old one is renewed behind the caller's back, for the next time. Rejects when there is
   * none and the issuer does not answer.
   * @param signal ends the search that the caller waits for
   * @param lasting ends the renewal of an old copy
   */
  async locate(get: GetDocument, signal: AbortSignal, lasting: AbortSignal): Promise<DiscoveryResult> {
    if (this.#metadata === undefined) return this.#fetch(get, signal);
    if (this.#options.clock.now() >= this.#freshUntil) this.#refresh ??= this.#refreshInBackground(get, lasting);
    return { kind: 'located', metadata: this.#metadata };
  }

  /** The endpoint that was found is not where it was said to be. */
  markStale(): void {
    this.#freshUntil = Math.min(this.#freshUntil, this.#options.clock.now());
  }

  async #refreshInBackground(get: GetDocument, signal: AbortSignal): Promise<void> {
    const { clock, timeoutMs, issuer, observe } = this.#options;
    const timeout = new AbortController();
    const cancel = clock.after(timeoutMs, () => {
      timeout.abort();
    });
    const fault = await this.#fetch(get, AbortSignal.any([signal, timeout.signal])).then(
      (located) => (located.kind === 'failed' ? located.failure.detail : undefined),
      () => `${issuer} cannot be asked`,
    );
    cancel();
    this.#refresh = undefined;
    if (fault === undefined || signal.aborted) return;
    this.#freshUntil = clock.now() + REFRESH_RETRY_MS;
    if (!this.#hasWarned) observe({ kind: 'warning', message: `${fault}; the copy in hand stays in use` });
    this.#hasWarned = true;
  }

  async #fetch(get: GetDocument, signal: AbortSignal): Promise<DiscoveryResult> {
    const { issuer, allowInsecureHttp, clock } = this.#options;
    const failures: TokenRequestFailure[] = [];
    for (const url of listMetadataUrls(issuer)) {
      const { status, text } = await get(url, signal);
      if (status !== 200 || text === undefined) {
        failures.push(toRequestFailure(url, status));
        continue;
      }
      const reading = parseServerMetadata(text, issuer, allowInsecureHttp);
      if (reading.kind === 'read') {
        this.#metadata = reading.metadata;
        this.#freshUntil = clock.now() + FRESH_FOR_MS;
        this.#hasWarned = false;
        return { kind: 'located', metadata: reading.metadata };
      }
      failures.push({ kind: 'malformed', detail: `the metadata of ${url.href} ${reading.fault}` });
    }
    return { kind: 'failed', failure: selectFailure(failures) };
  }
}

/** Reads a document's answer as far as it is of use. */
export async function readDocument(answer: {
  readonly statusCode: number;
  readonly body: AsyncIterable<Buffer>;
}): Promise<DocumentResponse> {
  const status = answer.statusCode;
  return { status, text: status === 200 ? await readBoundedText(answer.body, LARGEST_DOCUMENT_BYTES) : undefined };
}

function toRequestFailure(url: URL, status: number): TokenRequestFailure {
  const asked = `${url.href} answered the request for the issuer's metadata with ${String(status)}`;
  if (status === 404) return { kind: 'rejected', detail: `${asked}: check auth.issuer` };
  return { kind: 'unavailable', detail: status === 200 ? `${asked} and too long a body` : asked };
}

/** A document that is wrong says more than one that is not there, and an outage must not be taken for a refusal. */
function selectFailure(failures: readonly TokenRequestFailure[]): TokenRequestFailure {
  const order = ['malformed', 'unavailable', 'rejected'];
  const [first] = failures.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return first ?? { kind: 'unavailable', detail: 'no metadata was found' };
}
