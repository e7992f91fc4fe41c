/** Sends one token request (RFC 6749 §4.4, RFC 7523 §2.1) to a token endpoint that is given by its URL or found by its issuer. */
import type { SecureContext } from 'node:tls';
import type { Dispatcher } from 'undici';
import { waitAtMost, type Clock } from '../../platform/clock.ts';
import { ConnectFault, type TriedAddress } from '../../platform/connection-faults.ts';
import type { ProxySelector } from '../../platform/egress/proxy-selector.ts';
import { MAX_PARSED_LENGTH } from '../../platform/rate-limit-fields/header-values.ts';
import { leftOf, readMadeAt, type MadeAt } from '../../platform/origin-clock.ts';
import { readResetMs, readRetryAfterMs } from '../../platform/rate-limit-fields/stated-wait.ts';
import { maskQueryValues, type Redact } from '../../platform/secret-redaction.ts';
import { assertCertificate } from '../../platform/tls.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { readClientCredential } from '../client/client-authentication.ts';
import type {
  ClientAuthOptions,
  ClientCredential,
  ClientCredentialReadResult,
} from '../client/client-authentication.ts';
import { LARGEST_PEM_BYTES, describeUnreadable, readTextFile, type Unreadable } from '../client/secret-file.ts';
import type { TokenBinding, TokenIdentity } from '../store/sealed-token.ts';
import { Discovery, readDocument, type GetDocument } from './discovery.ts';
import { parseErrorResponse } from './error-response.ts';
import { describeUnsupportedAuth, type ServerMetadata } from './server-metadata.ts';
import { createEchoFilter, type EchoFilter } from './server-text.ts';
import { describeConnectionFault, readBoundedText, sendSingleRequest } from './single-request.ts';
import type { BodyReadResult, SingleRequest } from './single-request.ts';
import { buildTokenRequest, describeMissingTarget, listRequestedParameters } from './token-request.ts';
import type { TokenGrantOptions } from './token-request.ts';
import { correctTokenUrl, describeTokenUrlSettings } from './token-url.ts';
import { addRefreshToken, hideTokens, parseTokenResponse } from './token-response.ts';
import type { TokenRequestFailure, TokenRequestResult, TokenResponseForm } from './token-response.ts';

export type TokenEndpointAddress =
  | { readonly kind: 'url'; readonly url: URL }
  /** Found in the issuer's metadata; the issuer exactly as it names itself there. */
  | { readonly kind: 'issuer'; readonly issuer: string; readonly allowInsecureHttp: boolean };

export interface TokenEndpointOptions extends ClientAuthOptions, TokenGrantOptions, TokenResponseForm {
  readonly endpoint: TokenEndpointAddress;
  /** From the start of the first connection to the last byte of the response, milliseconds. */
  readonly timeoutMs: number;
  /** The `User-Agent` of token requests and of metadata requests. */
  readonly userAgent: string;
  /** As in the binding of a sealed token. Default: not known. */
  readonly tokenHeaders?: TokenBinding['tokenHeaders'];
  /** PEM certificates trusted instead of Node's and the system's roots; read at every request. */
  readonly caFile: string | undefined;
  readonly egress: ProxySelector;
  readonly clock: Pick<Clock, 'now' | 'after' | 'wallNow'>;
  readonly observe: EventObserver;
  /** Masks tokens of this process that the server may echo, in texts that are kept. Default: none are known. */
  readonly maskSecrets?: Redact;
  /** As of a single request, of metadata too. */
  readonly onConnection?: SingleRequest['onConnection'];
  /** Called with the URL that a token request is sent to. Default: not needed */
  readonly onLocated?: (url: URL) => void;
  /** Called with the head of each token response. Default: none. */
  readonly onResponseHead?: (head: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>) => void;
}

const MAX_BODY_BYTES = 64 * 1024;

interface RequestInputs {
  readonly credential: ClientCredential;
  readonly context: SecureContext | undefined;
  readonly signal: AbortSignal;
  readonly tried: TriedAddress[];
}

export class TokenEndpoint {
  readonly #options: TokenEndpointOptions;
  readonly #address: URL | Discovery;
  #lastMismatch: string | undefined;
  /** For the credential of the latest request. */
  #redact: Redact = (text) => text;

  constructor(options: TokenEndpointOptions) {
    this.#options = options;
    const { endpoint } = options;
    const observe: EventObserver = (event) => this.#observe(event);
    this.#address = endpoint.kind === 'url' ? endpoint.url : new Discovery({ ...options, ...endpoint, observe });
  }

  /** Reads the client's credential from its files. Never rejects. */
  readCredential(): Promise<ClientCredentialReadResult> {
    return readClientCredential(this.#options);
  }

  /**
   * What seals the token of such a request; undefined for a client with neither a secret nor a key. With discovery the issuer stands for
   * the endpoint's URL.
   */
  identify(credential: ClientCredential): TokenIdentity | undefined {
    const options = this.#options;
    const { endpoint, assertionGrant } = options;
    const { keyMaterial } = credential;
    if (keyMaterial === undefined) return undefined;
    return {
      binding: {
        tokenUrl: endpoint.kind === 'url' ? endpoint.url.href : endpoint.issuer,
        clientId: credential.clientId,
        method: credential.method,
        requestedParameters: listRequestedParameters(options, credential),
        bodyFormat: options.bodyFormat,
        assertion: assertionGrant && { audience: assertionGrant.audience, claims: assertionGrant.claims },
        responseFields: [options.tokenField, options.expiresInField, options.expiresInUnit],
        tokenHeaders: options.tokenHeaders ?? [],
      },
      keyMaterial,
    };
  }

  /**
   * Sends one token request. Never rejects; an abort ends it as `unavailable`. No text of a result, and no warning, holds the client's
   * secret in any encoding.
   */
  async request(credential: ClientCredential, abandon: AbortSignal): Promise<TokenRequestResult> {
    this.#redact = createEchoFilter(credential, { valuesToRedact: [] }, this.#options).redact;
    const result = await this.#sendUnredacted(credential, abandon);
    return result.kind === 'ok' ? result : { ...result, detail: this.#redact(result.detail) };
  }

  async #sendUnredacted(credential: ClientCredential, abandon: AbortSignal): Promise<TokenRequestResult> {
    const { clock, timeoutMs, endpoint } = this.#options;
    const timeout = new AbortController();
    const cancelTimeout = clock.after(timeoutMs, () => timeout.abort());
    const tried: TriedAddress[] = [];
    let { host } = new URL(endpoint.kind === 'url' ? endpoint.url : endpoint.issuer);
    try {
      // Before anything is sent, the request for metadata included.
      const assertion = await credential.readAssertion?.(clock.wallNow());
      if (assertion?.kind === 'unreadable') return createUnsentResult(assertion.detail);
      const tls = await readTlsContext(this.#options, credential);
      if (tls.kind === 'unreadable') return createUnsentResult(tls.detail);
      const inputs = { credential, context: tls.context, signal: AbortSignal.any([abandon, timeout.signal]), tried };
      const url = await this.#findTokenUrl(inputs, abandon);
      if (!(url instanceof URL)) return url;
      host = url.host;
      this.#options.onLocated?.(url);
      return await this.#sendTo(url, inputs);
    } catch (error) {
      if (abandon.aborted) return { kind: 'unavailable', detail: 'the token request was abandoned' };
      const limit = `${String(timeoutMs)} ms: auth.timeoutMs (SIDECAR_AUTH_TIMEOUT_MS)`;
      const { stage, addresses } = new ConnectFault(host, tried, timeoutMs);
      const late = `${host} sent no complete response within ${limit}${stage === 'connect' ? addresses : ''}`;
      return { kind: 'unavailable', detail: timeout.signal.aborted ? late : describeConnectionFault(host, error) };
    } finally {
      cancelTimeout();
    }
  }

  /** @param backgroundSignal for a metadata refresh that outlives this request */
  async #findTokenUrl(inputs: RequestInputs, backgroundSignal: AbortSignal): Promise<URL | TokenRequestFailure> {
    if (this.#address instanceof URL) return this.#address;
    const headers = { Accept: 'application/json', 'User-Agent': this.#options.userAgent };
    const get: GetDocument = (url, signal) =>
      sendSingleRequest(
        { ...this.#buildRequestOptions(url, { ...inputs, signal, tried: [] }), method: 'GET', headers },
        readDocument,
      );
    const found = await this.#address.locate(get, inputs.signal, backgroundSignal);
    if ('kind' in found) return found;
    this.#warnOnMismatch(found, inputs.credential);
    const { tokenUrl, mtlsTokenUrl = tokenUrl } = found;
    return inputs.credential.hasCertificate ? mtlsTokenUrl : tokenUrl;
  }

  async #sendTo(url: URL, inputs: RequestInputs): Promise<TokenRequestResult> {
    const { endpoint, clock, onResponseHead } = this.#options;
    const { credential } = inputs;
    const issuer = endpoint.kind === 'issuer' ? endpoint.issuer : undefined;
    const authentication = await credential.authenticate({ tokenUrl: url, issuer, wallNow: clock.wallNow() });
    if (authentication.kind === 'unreadable') return createUnsentResult(authentication.detail);
    const { headers, body } = buildTokenRequest(this.#options, credential, authentication);
    const echoFilter = createEchoFilter(credential, authentication, this.#options);
    this.#redact = echoFilter.redact;
    const result = await sendSingleRequest(
      { ...this.#buildRequestOptions(url, inputs), method: 'POST', headers, body },
      (response) => {
        onResponseHead?.(response);
        return readResponse(url, response, echoFilter, this.#options);
      },
    );
    if (result.kind === 'rejected') {
      const missing = describeMissingTarget(result.error, this.#options);
      return missing === undefined ? result : { ...result, detail: `${result.detail}; ${missing}` };
    }
    if (result.kind !== 'not-found') return result;
    if (this.#address instanceof Discovery) this.#address.markStale();
    const advice = issuer === undefined ? adviseOnTokenUrl(url) : 'the metadata of auth.issuer names it';
    return { kind: 'rejected', detail: `${result.detail}: ${advice}` };
  }

  #buildRequestOptions(url: URL, { context, signal, tried }: RequestInputs) {
    const { egress, clock, timeoutMs, onConnection } = this.#options;
    const secureContext = url.protocol === 'https:' ? context : undefined;
    return { url, secureContext, egress, clock, timeoutMs, signal, tried, onConnection };
  }

  #observe(event: Parameters<EventObserver>[0]): void {
    this.#options.observe(event.kind === 'warning' ? { ...event, message: this.#redact(event.message) } : event);
  }

  #warnOnMismatch(metadata: ServerMetadata, credential: ClientCredential): void {
    const mismatch = describeUnsupportedAuth(metadata, credential);
    if (mismatch !== undefined && mismatch !== this.#lastMismatch)
      this.#observe({ kind: 'warning', message: mismatch });
    this.#lastMismatch = mismatch;
  }
}

/** What to set when there is no token endpoint at a URL, which was joined from two settings. */
function adviseOnTokenUrl(url: URL): string {
  const meant = correctTokenUrl(url);
  const advice =
    meant === undefined ? 'check auth.url and auth.tokenPath' : describeTokenUrlSettings(meant, (key) => key);
  return `${advice}, there is no token endpoint at ${maskQueryValues(url.pathname + url.search)}`;
}

/** A body that only explains must not delay the next attempt for long. */
const EXPLANATION_TIMEOUT_MS = 1_000;

function createUnsentResult(detail: string): TokenRequestFailure {
  return { kind: 'unavailable', detail, isUnsent: true };
}

async function readResponse(
  url: URL,
  response: Dispatcher.ResponseData,
  echoFilter: EchoFilter,
  options: TokenResponseForm & Pick<TokenEndpointOptions, 'clock' | 'grantType' | 'observe'>,
): Promise<TokenRequestResult | { readonly kind: 'not-found'; readonly detail: string }> {
  const { statusCode, headers } = response;
  const { clock, observe } = options;
  const readHeader = createFieldReader(headers);
  const made = readMadeAt(readHeader('date'), readHeader('age'), clock.wallNow());
  if (made.skewMs !== undefined) observe({ kind: 'clock-compared', from: url.host, skewMs: made.skewMs });
  const summary = `${url.host} answered the token request with ${String(statusCode)}`;
  if (statusCode === 200 || statusCode === 201) {
    const { text, fault } = await readBoundedText(response, MAX_BODY_BYTES);
    if (text === undefined) return { kind: 'malformed', detail: `${summary} and ${fault}` };
    const result = parseTokenResponse(text, echoFilter, options, { status: statusCode, made });
    return options.grantType === 'refresh_token' ? addRefreshToken(result, text, options) : result;
  }
  const wait = readWait(statusCode, readHeader, made);
  const unavailable = (detail: string) => ({ kind: 'unavailable', detail, ...wait }) as const;
  if (statusCode >= 300 && statusCode < 400)
    return unavailable(`${summary}: redirects are not followed, check auth.url`);
  // These reject the client if an error code in the body says so; they may also come from something in front of the server.
  const mayReject = statusCode === 400 || statusCode === 403;
  const { text, fault } = await (mayReject
    ? readBoundedText(response, MAX_BODY_BYTES)
    : readExplanation(response, clock));
  const challenge = [headers['www-authenticate'] ?? []].flat().join(', ');
  const error = parseErrorResponse(text, challenge, hideTokens(text, options, echoFilter.showText));
  const described = fault === undefined ? summary : `${summary} and ${fault}`;
  const detail = described + error.text;
  if (statusCode === 404) return { kind: 'not-found', detail };
  if (!mayReject && statusCode !== 401) return unavailable(detail);
  if (error.code === undefined) {
    const unnamed = `${described} and no OAuth error${error.text}`;
    return statusCode === 401 ? { kind: 'rejected', isUnexplained: true, detail: unnamed } : unavailable(unnamed);
  }
  return error.isRejection
    ? { kind: 'rejected', error: error.code, detail }
    : { ...unavailable(detail), error: error.code };
}

type ReadHeader = (name: string) => string | undefined;

/** Reads a field by its name; undefined for one that is blank, or too long to be parsed. */
function createFieldReader(headers: Dispatcher.ResponseData['headers']): ReadHeader {
  return (name) => {
    const text = [headers[name] ?? []].flat().join(', ').trim();
    return text === '' || text.length > MAX_PARSED_LENGTH ? undefined : text;
  };
}

/** `Retry-After`; where a limit refuses the request, the reset of that limit otherwise. */
function readWait(statusCode: number, readHeader: ReadHeader, made: MadeAt) {
  const isLimited = statusCode === 429 || statusCode === 503;
  const statedMs = readRetryAfterMs(readHeader, made) ?? (isLimited ? readResetMs(readHeader, made) : undefined);
  const retryAfterMs = leftOf(statedMs, made);
  const isLasting = statusCode < 300 || (statusCode === 429 && retryAfterMs === undefined);
  return { ...(retryAfterMs === undefined ? {} : { retryAfterMs }), ...(isLasting ? { isLasting } : {}) };
}

/** Empty when the body breaks off or takes too long. */
async function readExplanation(
  response: Dispatcher.ResponseData,
  clock: TokenEndpointOptions['clock'],
): Promise<Partial<BodyReadResult>> {
  const text = readBoundedText(response, MAX_BODY_BYTES).catch(() => ({}));
  return (await waitAtMost(text, clock, EXPLANATION_TIMEOUT_MS)) ?? {};
}

/** The file is read and checked each time: TLS silently accepts one without certificates, and then trusts none. */
async function readTlsContext(
  { endpoint, caFile }: TokenEndpointOptions,
  credential: ClientCredential,
): Promise<{ readonly kind: 'read'; readonly context: SecureContext | undefined } | Unreadable> {
  if (endpoint.kind === 'url' && endpoint.url.protocol !== 'https:') return { kind: 'read', context: undefined };
  if (caFile === undefined) return { kind: 'read', context: credential.createTlsContext(undefined) };
  const reading = await readTextFile('auth.caFile', caFile, LARGEST_PEM_BYTES);
  if (reading.kind === 'unreadable') return reading;
  try {
    assertCertificate(reading.value, 'auth.caFile');
    return { kind: 'read', context: credential.createTlsContext(reading.value) };
  } catch {
    return describeUnreadable('auth.caFile', caFile, 'does not begin with a PEM certificate');
  }
}
