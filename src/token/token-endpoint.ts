/**
 * One client credentials request (RFC 6749 §4.4), as the service fronted here wants it. Every request has a connection
 * of its own: one an hour gains nothing from a kept one, and meets no socket that died in the meantime.
 * When to ask, and what an answer means for those who wait, is token-source's business.
 */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';
import { Client } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { trustContext } from '../tls.ts';
import { authenticateClient } from './client-authentication.ts';
import type { ClientAuthentication, ClientCredentials } from './client-authentication.ts';
import { describeConnectionFault } from './connection-fault.ts';
import { readTextFile } from './secret-file.ts';
import { readGrant, readOAuthError, readRetryAfterMs } from './token-answer.ts';
import type { TokenAnswer } from './token-answer.ts';

export interface TokenEndpointOptions extends ClientCredentials {
  readonly tokenUrl: URL;
  readonly audience: string | undefined;
  readonly scope: string | undefined;
  /** From the start of the connection to the last byte of the answer, milliseconds. */
  readonly timeoutMs: number;
  /** PEM certificates trusted instead of Node's and the system's roots; read at every request. */
  readonly caFile: string | undefined;
  readonly clock: Pick<Clock, 'after' | 'wallNow'>;
}

export interface TokenEndpoint {
  /** Sends one token request. Never rejects; an abort ends it as `unavailable`. */
  requestToken(signal: AbortSignal): Promise<TokenAnswer>;
  /** True when id or secret are no longer those of the last request. Never rejects; an unreadable file is no change. */
  credentialsChanged(): Promise<boolean>;
}

const LARGEST_BODY_BYTES = 64 * 1024;
/** A system's whole bundle is about a quarter of it. */
const LARGEST_CA_FILE_BYTES = 1024 * 1024;

export function createTokenEndpoint(options: TokenEndpointOptions): TokenEndpoint {
  let lastAuthorization: string | undefined;
  return {
    async requestToken(signal) {
      const authentication = await authenticateClient(options);
      if (authentication.kind === 'unreadable') return { kind: 'unavailable', detail: authentication.detail };
      lastAuthorization = authentication.authorization;
      const trust = await readTrust(options);
      if (trust.kind === 'unreadable') return { kind: 'unavailable', detail: trust.detail };
      return exchange(options, authentication, trust.context, signal);
    },
    async credentialsChanged() {
      const authentication = await authenticateClient(options);
      return authentication.kind === 'ready' && authentication.authorization !== lastAuthorization;
    },
  };
}

type ReadyAuthentication = Extract<ClientAuthentication, { kind: 'ready' }>;

async function exchange(
  options: TokenEndpointOptions,
  authentication: ReadyAuthentication,
  context: SecureContext | undefined,
  abandon: AbortSignal,
): Promise<TokenAnswer> {
  const timeout = new AbortController();
  const cancelTimeout = options.clock.after(options.timeoutMs, () => {
    timeout.abort();
  });
  const signal = AbortSignal.any([abandon, timeout.signal]);
  const client = connect(options, context, signal);
  try {
    const response = await client.request(describeRequest(options, authentication.authorization, signal));
    return await readResponse(options, response, authentication.withheld);
  } catch (error) {
    return { kind: 'unavailable', detail: describeFailure(error) };
  } finally {
    cancelTimeout();
    await client.destroy();
  }

  function describeFailure(error: unknown): string {
    if (abandon.aborted) return 'the token request was abandoned';
    const { host } = options.tokenUrl;
    if (timeout.signal.aborted) return `${host} gave no whole answer within ${String(options.timeoutMs)} ms`;
    return describeConnectionFault(host, error);
  }
}

/** `signal` goes to the socket too: undici alone would leave a connection that is being opened to its own time-out. */
function connect(options: TokenEndpointOptions, context: SecureContext | undefined, signal: AbortSignal): Client {
  return new Client(options.tokenUrl.origin, {
    allowH2: false,
    // The one timer over the whole exchange is shorter than any of these would need to be.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { signal, timeout: options.timeoutMs, ...(context && { secureContext: context }) },
  });
}

function describeRequest(
  { tokenUrl, audience, scope }: TokenEndpointOptions,
  authorization: string,
  signal: AbortSignal,
): Dispatcher.RequestOptions {
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (audience !== undefined) form.set('audience', audience);
  if (scope !== undefined) form.set('scope', scope);
  return {
    method: 'POST',
    path: tokenUrl.pathname + tokenUrl.search,
    headers: {
      Authorization: authorization,
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
    },
    body: form.toString(),
    reset: true,
    signal,
  };
}

/** Bodies are read only where they decide something. */
async function readResponse(
  { tokenUrl, clock }: TokenEndpointOptions,
  { statusCode, headers, body }: Dispatcher.ResponseData,
  withheld: readonly string[],
): Promise<TokenAnswer> {
  const retryAfterMs = readRetryAfterMs(headers['retry-after'], clock.wallNow());
  const unavailable = (detail: string): TokenAnswer => ({
    kind: 'unavailable',
    detail,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
  const answered = `${tokenUrl.host} answered the token request with ${String(statusCode)}`;
  switch (statusCode) {
    case 200: {
      const text = await readBounded(body);
      if (text === undefined) return { kind: 'malformed', detail: `${answered} and more than 64 KiB` };
      return readGrant(text);
    }
    case 400:
    case 401:
    case 403: {
      const error = readOAuthError((await readBounded(body)) ?? '', withheld);
      if (error === undefined) return unavailable(`${answered} and no OAuth error`);
      return { kind: 'rejected', detail: `${answered} and the error "${error}"` };
    }
    case 404:
      return { kind: 'rejected', detail: `${answered}: check auth.url and auth.tokenPath` };
    default:
      return unavailable(isRedirect(statusCode) ? `${answered}: redirects are not followed, check auth.url` : answered);
  }
}

function isRedirect(statusCode: number): boolean {
  return statusCode >= 300 && statusCode < 400;
}

/** Undefined when the body is longer than the bound. */
async function readBounded(body: AsyncIterable<Buffer>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

type Trust =
  | { readonly kind: 'read'; readonly context: SecureContext | undefined }
  | { readonly kind: 'unreadable'; readonly detail: string };

/** A file is checked, and anew each time: TLS takes one without certificates silently, and then trusts nobody. */
async function readTrust({ tokenUrl, caFile }: TokenEndpointOptions): Promise<Trust> {
  if (tokenUrl.protocol !== 'https:') return { kind: 'read', context: undefined };
  if (caFile === undefined) return { kind: 'read', context: trustContext(undefined) };
  const reading = await readTextFile('auth.caFile', caFile, LARGEST_CA_FILE_BYTES);
  if (reading.kind === 'unreadable') return reading;
  try {
    new X509Certificate(reading.value);
    return { kind: 'read', context: createSecureContext({ ca: reading.value, minVersion: 'TLSv1.2' }) };
  } catch {
    return { kind: 'unreadable', detail: `auth.caFile: the file ${caFile} does not begin with a PEM certificate` };
  }
}
