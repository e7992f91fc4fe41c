/** Finds the token endpoint in its issuer's metadata, and caches it: for an hour, and longer while the issuer cannot be reached. */
import type { Dispatcher } from 'undici';
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { listMetadataUrls, parseServerMetadata, type ServerMetadata } from './server-metadata.ts';
import { readBoundedText, type BodyReadResult } from './single-request.ts';
import type { TokenRequestFailure } from './token-response.ts';

interface DiscoveryOptions {
  /** Exactly as in the metadata. */
  readonly issuer: string;
  readonly allowInsecureHttp: boolean;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** Longest time for a refresh in the background, milliseconds. */
  readonly timeoutMs: number;
  readonly observe: EventObserver;
}

/** Sends one GET; rejects when there is no response. */
export type GetDocument = (url: URL, signal: AbortSignal) => Promise<DocumentResponse>;

/** The body of a 200 only. */
export type DocumentResponse = Partial<BodyReadResult> & { readonly status: number };

const FRESH_FOR_MS = 3_600_000;
/** After a failed refresh. */
const REFRESH_RETRY_MS = 60_000;
/** Ten times what real servers publish. */
const MAX_DOCUMENT_BYTES = 128 * 1024;

export class Discovery {
  readonly #options: DiscoveryOptions;
  #metadata: ServerMetadata | undefined;
  #freshUntil = 0;
  #refresh: Promise<void> | undefined;
  #hasWarned = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /**
   * Returns the cached metadata, if any; an old copy is refreshed in the background. Rejects without a copy when the issuer does not respond.
   * @param signal ends the fetch that the caller waits for, `backgroundSignal` the refresh of an old copy
   */
  async locate(
    get: GetDocument,
    signal: AbortSignal,
    backgroundSignal: AbortSignal,
  ): Promise<ServerMetadata | TokenRequestFailure> {
    if (this.#metadata === undefined) return this.#fetch(get, signal);
    if (this.#options.clock.now() >= this.#freshUntil)
      this.#refresh ??= this.#refreshInBackground(get, backgroundSignal);
    return this.#metadata;
  }

  /** The token endpoint that was found responded with 404. */
  markStale(): void {
    this.#freshUntil = Math.min(this.#freshUntil, this.#options.clock.now());
  }

  async #refreshInBackground(get: GetDocument, signal: AbortSignal): Promise<void> {
    const { clock, timeoutMs, issuer, observe } = this.#options;
    const timeout = new AbortController();
    const cancel = clock.after(timeoutMs, () => timeout.abort());
    const fault = await this.#fetch(get, AbortSignal.any([signal, timeout.signal])).then(
      (found) => ('kind' in found ? found.detail : undefined),
      () => `${issuer} cannot be reached`,
    );
    cancel();
    this.#refresh = undefined;
    if (fault === undefined || signal.aborted) return;
    this.#freshUntil = clock.now() + REFRESH_RETRY_MS;
    if (!this.#hasWarned) observe({ kind: 'warning', message: `${fault}; the cached copy stays in use` });
    this.#hasWarned = true;
  }

  async #fetch(get: GetDocument, signal: AbortSignal): Promise<ServerMetadata | TokenRequestFailure> {
    const { issuer, allowInsecureHttp, clock } = this.#options;
    const failures: TokenRequestFailure[] = [];
    for (const url of listMetadataUrls(issuer)) {
      const response = await get(url, signal);
      if (response.text === undefined) {
        failures.push(toRequestFailure(url, response));
        continue;
      }
      const reading = parseServerMetadata(response.text, issuer, allowInsecureHttp);
      if (reading.kind === 'read') {
        this.#freshUntil = clock.now() + FRESH_FOR_MS;
        this.#hasWarned = false;
        return (this.#metadata = reading.metadata);
      }
      failures.push({ kind: 'malformed', detail: `the metadata of ${url.href} ${reading.fault}` });
    }
    return selectFailure(failures);
  }
}

export async function readDocument(response: Dispatcher.ResponseData): Promise<DocumentResponse> {
  const status = response.statusCode;
  return { status, ...(status === 200 ? await readBoundedText(response, MAX_DOCUMENT_BYTES) : {}) };
}

function toRequestFailure(url: URL, { status, fault }: DocumentResponse): TokenRequestFailure {
  const detail = `${url.href} answered the request for the issuer's metadata with ${String(status)}`;
  if (status === 404) return { kind: 'rejected', detail: `${detail}: check auth.issuer` };
  return fault === undefined
    ? { kind: 'unavailable', detail }
    : { kind: 'malformed', detail: `${detail} and ${fault}` };
}

/** A wrong document says more than a missing one, and an outage must not count as a rejection. */
function selectFailure(failures: readonly TokenRequestFailure[]): TokenRequestFailure {
  const order = ['malformed', 'unavailable', 'rejected'];
  const [first] = failures.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return first ?? { kind: 'unavailable', detail: 'no metadata was found' };
}
