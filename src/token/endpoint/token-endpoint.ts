/**
 * One client credentials request (RFC 6749 §4.4) to a token endpoint that is known by its URL or found by its issuer. When to
 * ask, with which credential, and what an answer means for those who wait, is decided elsewhere.
 */
import { X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../platform/clock.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { createRedact, type Redact } from '../../platform/secret-redaction.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { canCredentialChange, readClientCredential } from '../client/client-authentication.ts';
import type {
  ClientCredential,
  ClientAuthOptions,
  ClientCredentialReadResult,
} from '../client/client-authentication.ts';
import { createEchoProtection, listSentSecrets } from '../store/echo-protection.ts';
import { describeConnectionFault } from './connection-fault.ts';
import { Discovery, readDocument } from './discovery.ts';
import type { GetDocument } from './discovery.ts';
import type { TokenBinding } from '../store/sealed-token.ts';
import { LARGEST_PEM_BYTES, readTextFile } from '../client/secret-file.ts';
import { describeUnsupportedAuth } from './server-metadata.ts';
import type { ServerMetadata } from './server-metadata.ts';
import { sendSingleRequest, readBoundedText } from './single-request.ts';
import { parseTokenResponse, parseOAuthError, parseRetryAfterMs } from './token-response.ts';
import type { EchoFilter, TokenRequestFailure, TokenRequestResult } from './token-response.ts';
import { listRequestedParameters, buildTokenRequest } from './token-request.ts';
import type { TokenGrantOptions } from './token-request.ts';

/** Where tokens are asked for. */
export type TokenEndpointAddress =
  | { readonly kind: 'url'; readonly url: URL }
  /** As the issuer's metadata says; the issuer exactly as it names itself there. */
  | { readonly kind: 'issuer'; readonly issuer: string; readonly allowInsecureHttp: boolean };

export interface TokenEndpointOptions extends ClientAuthOptions, TokenGrantOptions {
  readonly endpoint: TokenEndpointAddress;
  /** From the start of the first connection to the last byte of the answer, milliseconds. */
  readonly timeoutMs: number;
  /** PEM certificates trusted instead of Node's and the system's roots; read at every request. */
  readonly caFile: string | undefined;
  readonly egress: ProxySelector;
  readonly clock: Pick<Clock, 'now' | 'after' | 'wallNow'>;
  /** Hears what is odd and does no harm. */
  readonly observe: EventObserver;
  /** Hears the head of each answer to a token request. Default: nobody. */
  readonly onResponseHead?: (head: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>) => void;
}

export interface TokenEndpoint {
  /** What the client shows of itself, read anew. Never rejects. */
  readCredential(): Promise<ClientCredentialReadResult>;
  /** False when nothing of it is in a file. */
  readonly canChange: boolean;
  /** Sends one token request. Never rejects; an abort ends it as `unavailable`. */
  request(credential: ClientCredential, signal: AbortSignal): Promise<TokenRequestResult>;
  /** What a token of such a request is bound to. The issuer stands for an endpoint that is found by it. */
  binding(credential: ClientCredential): TokenBinding;
}

const LARGEST_BODY_BYTES = 64 * 1024;

export function createTokenEndpoint(options: TokenEndpointOptions): TokenEndpoint {
  const { endpoint } = options;
  const requests = new TokenRequestSender(options);
  return {
    readCredential: () => readClientCredential(options),
    canChange: canCredentialChange(options),
    request: (credential, signal) => requests.send(credential, signal),
    binding: ({ clientId, method }) => ({
      tokenUrl: endpoint.kind === 'url' ? endpoint.url.href : endpoint.issuer,
      clientId,
      method,
      asked: listRequestedParameters(options),
    }),
  };
}

/** What the exchanges of one request have in common. */
interface RequestInputs {
  readonly credential: ClientCredential;
  readonly context: SecureContext | undefined;
  readonly signal: AbortSignal;
}

type TokenUrlResult =
  { readonly kind: 'located'; readonly url: URL } | { readonly kind: 'failed'; readonly failure: TokenRequestFailure };

class TokenRequestSender {
  readonly #options: TokenEndpointOptions;
  readonly #discovery: Discovery | undefined;
  #lastMismatch: string | undefined;
  /** For the credential of the latest request. */
  #redact: Redact = (text) => text;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    const observe: EventObserver = (event) => this.#observe(event);
    if (options.endpoint.kind === 'issuer')
      this.#discovery = new Discovery({ ...options, ...options.endpoint, observe });
  }

  /** The one door for what the server has said: no text of the answer or of a warning holds the client's secret, in any form. */
  async send(credential: ClientCredential, abandon: AbortSignal): Promise<TokenRequestResult> {
    const redact = createRedact(listSentSecrets(credential), credential.clientId);
    this.#redact = redact;
    const answer = await this.#sendUnredacted(credential, abandon);
    return answer.kind === 'ok' ? answer : { ...answer, detail: redact(answer.detail) };
  }

  async #sendUnredacted(credential: ClientCredential, abandon: AbortSignal): Promise<TokenRequestResult> {
    const { clock, timeoutMs, endpoint } = this.#options;
    const timeout = new AbortController();
    const cancelTimeout = clock.after(timeoutMs, () => {
      timeout.abort();
    });
    let { host } = new URL(endpoint.kind === 'url' ? endpoint.url : endpoint.issuer);
    try {
      const trust = await readTlsContext(this.#options, credential);
      if (trust.kind === 'unreadable') return { kind: 'unavailable', detail: trust.detail };
      const surroundings = { credential, context: trust.context, signal: AbortSignal.any([abandon, timeout.signal]) };
      const located = await this.#findTokenUrl(surroundings, abandon);
      if (located.kind === 'failed') return located.failure;
      host = located.url.host;
      return await this.#sendTo(located.url, surroundings);
    } catch (error) {
      if (abandon.aborted) return { kind: 'unavailable', detail: 'the token request was abandoned' };
      const isLate = timeout.signal.aborted;
      const late = `${host} gave no whole answer within ${String(timeoutMs)} ms`;
      return { kind: 'unavailable', detail: isLate ? late : describeConnectionFault(host, error) };
    } finally {
      cancelTimeout();
    }
  }

  /** @param lasting for what goes on behind this request's back */
  async #findTokenUrl(surroundings: RequestInputs, lasting: AbortSignal): Promise<TokenUrlResult> {
    const { endpoint } = this.#options;
    if (endpoint.kind === 'url') return { kind: 'located', url: endpoint.url };
    if (this.#discovery === undefined) throw new Error('an issuer is found by discovery');
    const headers = { Accept: 'application/json' };
    const get: GetDocument = (url, signal) =>
      sendSingleRequest(
        { ...this.#buildRequestOptions(url, { ...surroundings, signal }), method: 'GET', headers },
        readDocument,
      );
    const found = await this.#discovery.locate(get, surroundings.signal, lasting);
    if (found.kind === 'failed') return found;
    const { credential } = surroundings;
    this.#warnOnMismatch(found.metadata, credential);
    const { tokenUrl, mtlsTokenUrl = tokenUrl } = found.metadata;
    return { kind: 'located', url: credential.hasCertificate ? mtlsTokenUrl : tokenUrl };
  }

  async #sendTo(url: URL, surroundings: RequestInputs): Promise<TokenRequestResult> {
    const { endpoint, clock, onResponseHead } = this.#options;
    const issuer = endpoint.kind === 'issuer' ? endpoint.issuer : undefined;
    const proof = await surroundings.credential.authenticate({ tokenUrl: url, issuer, wallNow: clock.wallNow() });
    const { headers, body, valuesToRedact } = buildTokenRequest(this.#options, proof);
    const confidence = createEchoProtection(surroundings.credential, proof, valuesToRedact, this.#options.scope);
    const answer = await sendSingleRequest(
      { ...this.#buildRequestOptions(url, surroundings), method: 'POST', headers, body },
      (response) => {
        onResponseHead?.(response);
        return readResponse(url, response, confidence, clock.wallNow());
      },
    );
    if (answer.kind !== 'not-found') return answer;
    this.#discovery?.markStale();
    const advice = issuer === undefined ? 'check auth.url and auth.tokenPath' : 'the metadata of auth.issuer names it';
    return { kind: 'rejected', detail: `${answer.detail}: ${advice}` };
  }

  #buildRequestOptions(url: URL, { context, signal }: RequestInputs) {
    const { egress, clock, timeoutMs } = this.#options;
    return { url, secureContext: url.protocol === 'https:' ? context : undefined, egress, clock, timeoutMs, signal };
  }

  #observe(event: Parameters<EventObserver>[0]): void {
    this.#options.observe(event.kind === 'warning' ? { ...event, message: this.#redact(event.message) } : event);
  }

  #warnOnMismatch(metadata: ServerMetadata, { method, algorithm }: ClientCredential): void {
    const mismatch = describeUnsupportedAuth(metadata, { method, algorithm });
    if (mismatch !== undefined && mismatch !== this.#lastMismatch)
      this.#observe({ kind: 'warning', message: mismatch });
    this.#lastMismatch = mismatch;
  }
}

/** Bodies are read only where they decide something. */
async function readResponse(
  url: URL,
  { statusCode, headers, body }: Dispatcher.ResponseData,
  confidence: EchoFilter,
  wallNow: number,
): Promise<TokenRequestResult | { readonly kind: 'not-found'; readonly detail: string }> {
  const retryAfterMs = parseRetryAfterMs(headers['retry-after'], wallNow);
  const unavailable = (detail: string): TokenRequestResult => ({
    kind: 'unavailable',
    detail,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
  const answered = `${url.host} answered the token request with ${String(statusCode)}`;
  switch (statusCode) {
    case 200: {
      const text = await readBoundedText(body, LARGEST_BODY_BYTES);
      if (text === undefined) return { kind: 'malformed', detail: `${answered} and more than 64 KiB` };
      return parseTokenResponse(text, confidence);
    }
    case 400:
    case 401:
    case 403: {
      const error = parseOAuthError((await readBoundedText(body, LARGEST_BODY_BYTES)) ?? '', confidence.redact);
      if (error === undefined) return unavailable(`${answered} and no OAuth error`);
      return { kind: 'rejected', error, detail: `${answered} and the error "${error}"` };
    }
    case 404:
      return { kind: 'not-found', detail: answered };
    default:
      return unavailable(isRedirect(statusCode) ? `${answered}: redirects are not followed, check auth.url` : answered);
  }
}

function isRedirect(statusCode: number): boolean {
  return statusCode >= 300 && statusCode < 400;
}

type TlsContextReadResult =
  | { readonly kind: 'read'; readonly context: SecureContext | undefined }
  | { readonly kind: 'unreadable'; readonly detail: string };

/** A file is checked, and anew each time: TLS takes one without certificates silently, and then trusts nobody. */
async function readTlsContext(
  { endpoint, caFile }: TokenEndpointOptions,
  credential: ClientCredential,
): Promise<TlsContextReadResult> {
  if (endpoint.kind === 'url' && endpoint.url.protocol !== 'https:') return { kind: 'read', context: undefined };
  if (caFile === undefined) return { kind: 'read', context: credential.createTlsContext(undefined) };
  const reading = await readTextFile('auth.caFile', caFile, LARGEST_PEM_BYTES);
  if (reading.kind === 'unreadable') return reading;
  try {
    new X509Certificate(reading.value);
    return { kind: 'read', context: credential.createTlsContext(reading.value) };
  } catch {
    return { kind: 'unreadable', detail: `auth.caFile: the file ${caFile} does not begin with a PEM certificate` };
  }
}
