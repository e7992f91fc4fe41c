/** Finds a token endpoint in published metadata: of the configured issuer as the sidecar does, or of the same origin after a 404. */
import type { AuthConfig, CredentialConfig } from '../../config/config.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { Discovery, readDocument } from '../../token/endpoint/discovery.ts';
import { parseJsonObject } from '../../token/endpoint/json-object.ts';
import { listMetadataUrls, parseServerMetadata } from '../../token/endpoint/server-metadata.ts';
import { describeConnectionFault, sendSingleRequest } from '../../token/endpoint/single-request.ts';
import type { TokenEndpointAddress } from '../../token/endpoint/token-endpoint.ts';
import { maskQuery } from '../../platform/secret-redaction.ts';
import type { PartnerCheckContext } from './connectivity.ts';
import type { PublishedEndpoint } from './evaluate/evaluate-token.ts';
import { createSettingNamer, type StepResult } from './step-runner.ts';

type DiscoveryContext = Pick<PartnerCheckContext, 'clock' | 'egress' | 'signal'>;

/** @param certificate offered to the server; undefined: none */
function createReader(
  { timeoutMs, caFile, userAgent, tlsGroups }: AuthConfig,
  certificate: AuthConfig['clientCertificate'],
  { clock, egress }: DiscoveryContext,
  signal: AbortSignal,
): (url: URL) => ReturnType<typeof readDocument> {
  const headers = { Accept: 'application/json', 'User-Agent': userAgent };
  return (url) => {
    const secureContext = url.protocol === 'https:' ? loadTlsContext(caFile, certificate, tlsGroups) : undefined;
    return sendSingleRequest(
      { url, method: 'GET', headers, secureContext, egress, clock, timeoutMs, signal },
      readDocument,
    );
  };
}

/** Looks for metadata on the origin of an endpoint that responded with 404. Sends no credential and no client certificate. */
export async function findPublishedEndpoint(
  url: URL,
  { auth }: CredentialConfig,
  context: DiscoveryContext,
): Promise<PublishedEndpoint | undefined> {
  const { signal } = context;
  const ended = AbortSignal.any([signal, AbortSignal.timeout(Math.min(auth.timeoutMs, SEARCH_TIMEOUT_MS))]);
  const read = createReader(auth, undefined, context, ended);
  try {
    for (const metadataUrl of listPossibleIssuers(url).flatMap(listMetadataUrls)) {
      const { text } = await read(metadataUrl);
      const published = text === undefined ? undefined : readPublished(metadataUrl, text);
      if (published !== undefined) return published;
    }
  } catch {
    // The search is an extra: the 404 is the finding.
    signal.throwIfAborted();
  }
  return undefined;
}

const SEARCH_TIMEOUT_MS = 5_000;
const MAX_ISSUERS = 4;

/** The origin, and each part of the path that may be the path of an issuer, such as `/realms/partner`. */
function listPossibleIssuers({ origin, pathname }: URL): readonly string[] {
  const segments = pathname.split('/').filter((segment) => segment !== '');
  const paths = segments.slice(0, -1).map((_, index) => `${origin}/${segments.slice(0, index + 1).join('/')}`);
  return [origin, ...paths].slice(0, MAX_ISSUERS);
}

/** Undefined unless the document is that of an issuer whose metadata belong to this URL (RFC 8414 §3.3). */
function readPublished(metadataUrl: URL, text: string): PublishedEndpoint | undefined {
  const { issuer } = parseJsonObject(text) ?? {};
  if (typeof issuer !== 'string' || !URL.canParse(issuer)) return undefined;
  if (listMetadataUrls(issuer).every(({ href }) => href !== metadataUrl.href)) return undefined;
  const reading = parseServerMetadata(text, issuer, false);
  return reading.kind === 'read' ? { metadataUrl, issuer, tokenUrl: reading.metadata.tokenUrl } : undefined;
}

/** The value is the URL of the token endpoint, for a client with a certificate the one for mutual TLS. */
export async function discoverTokenUrl(
  endpoint: Extract<TokenEndpointAddress, { kind: 'issuer' }>,
  { auth, name }: CredentialConfig,
  context: DiscoveryContext,
): Promise<StepResult<URL>> {
  const { timeoutMs, clientCertificate } = auth;
  const nameSetting = createSettingNamer('credential', name);
  const advice = `check ${nameSetting('auth.issuer')}: it must be exactly the issuer in the server's metadata`;
  const discovery = new Discovery({ ...endpoint, ...context, timeoutMs, observe: () => undefined });
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([context.signal, timeout]);
  try {
    const read = createReader(auth, clientCertificate, context, signal);
    const located = await discovery.locate(read, signal, signal);
    if (located.kind === 'failed') return { outcome: 'fail', detail: located.failure.detail, advice };
    const { tokenUrl, mtlsTokenUrl = tokenUrl } = located.metadata;
    const found = clientCertificate === undefined ? tokenUrl : mtlsTokenUrl;
    return { outcome: 'ok', detail: `${endpoint.issuer} names ${maskQuery(found)}`, value: found };
  } catch (error) {
    if (context.signal.aborted) throw error;
    const { host } = new URL(endpoint.issuer);
    const detail = timeout.aborted
      ? `${host} sent no complete response within ${timeoutMs} ms: ${nameSetting('auth.timeoutMs')}`
      : describeConnectionFault(host, error);
    return { outcome: 'fail', detail, advice };
  }
}
