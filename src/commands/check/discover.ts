/** Finds a token endpoint in metadata that its origin publishes, after a 404. */
import type { CredentialConfig } from '../../config/config.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { readDocument } from '../../token/endpoint/discovery.ts';
import { parseJsonObject } from '../../token/endpoint/json-object.ts';
import { listMetadataUrls, parseServerMetadata } from '../../token/endpoint/server-metadata.ts';
import { sendSingleRequest } from '../../token/endpoint/single-request.ts';
import type { PartnerCheckContext } from './connection.ts';
import type { PublishedEndpoint } from './evaluate/evaluate-token.ts';

/** Looks for metadata on the origin of an endpoint that responded with 404. Sends no credential and no client certificate. */
export async function findPublishedEndpoint(
  url: URL,
  { auth, egress, clock, signal }: Pick<CredentialConfig, 'auth'> & PartnerCheckContext,
): Promise<PublishedEndpoint | undefined> {
  const { caFile, tlsGroups, timeoutMs, userAgent } = auth;
  const request = {
    method: 'GET' as const,
    headers: { Accept: 'application/json', 'User-Agent': userAgent },
    secureContext: url.protocol === 'https:' ? loadTlsContext(caFile, undefined, tlsGroups) : undefined,
    egress,
    clock,
    timeoutMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(Math.min(timeoutMs, SEARCH_TIMEOUT_MS))]),
  };
  try {
    for (const metadataUrl of listPossibleIssuers(url).flatMap(listMetadataUrls)) {
      const { text } = await sendSingleRequest({ ...request, url: metadataUrl }, readDocument);
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
