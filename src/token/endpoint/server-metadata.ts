/**
 * Authorization server metadata (RFC 8414, OpenID Connect Discovery 1.0): where it is published, and how it is parsed. Pure.
 * A document that does not name the configured issuer is rejected (RFC 8414 §3.3).
 */
import { isLoopbackHost } from '../../platform/loopback.ts';
import { quoteForMessage } from '../../platform/truncate.ts';
import { isJsonObject, parseJsonObject } from './json-object.ts';

export interface ServerMetadata {
  readonly tokenUrl: URL;
  /** For clients with a certificate (RFC 8705 §5); undefined = `tokenUrl`. */
  readonly mtlsTokenUrl: URL | undefined;
  /** Undefined = not stated. */
  readonly methods: readonly string[] | undefined;
  readonly signingAlgorithms: readonly string[] | undefined;
  /** The server states that it requires DPoP (RFC 9449), in a member of its own: none is registered. */
  readonly requiresDpop: boolean;
}

export type MetadataParseResult =
  | { readonly kind: 'read'; readonly metadata: ServerMetadata }
  /** `fault` follows "the metadata of …". */
  | { readonly kind: 'unusable'; readonly fault: string };

const WELL_KNOWN_OAUTH = '/.well-known/oauth-authorization-server';
const WELL_KNOWN_OPENID = '/.well-known/openid-configuration';
const DPOP_REQUIRED = /dpop.*require|require.*dpop/i;
const MAX_QUOTED_VALUE_CHARS = 200;

/** In the order to try: RFC 8414 §3.1 puts the well-known name before the issuer's path, OpenID Connect after it. */
export function listMetadataUrls(issuer: string): readonly [oauth: URL, openid: URL] {
  const oauth = new URL(issuer);
  const path = oauth.pathname.replace(/\/$/, '');
  const openid = new URL(issuer);
  oauth.pathname = WELL_KNOWN_OAUTH + path;
  openid.pathname = path + WELL_KNOWN_OPENID;
  return [oauth, openid];
}

/**
 * Never throws.
 * @param issuer as configured: compared character by character
 * @param allowInsecureHttp whether `http:` is accepted for other hosts than loopback
 */
export function parseServerMetadata(body: string, issuer: string, allowInsecureHttp: boolean): MetadataParseResult {
  const unusable = (fault: string): MetadataParseResult => ({ kind: 'unusable', fault });
  const document = parseJsonObject(body);
  if (document === undefined) return unusable('is not a JSON object');
  if (document.issuer !== issuer)
    return unusable(`names ${quoteValue(document.issuer)} as the issuer: set auth.issuer to exactly that`);
  const aliases = isJsonObject(document.mtls_endpoint_aliases) ? document.mtls_endpoint_aliases : {};
  const tokenUrl = parseEndpointUrl(document.token_endpoint, allowInsecureHttp);
  const mtlsTokenUrl =
    aliases.token_endpoint === undefined ? undefined : parseEndpointUrl(aliases.token_endpoint, allowInsecureHttp);
  if (typeof tokenUrl === 'string') return unusable(`names no usable token_endpoint: ${tokenUrl}`);
  if (typeof mtlsTokenUrl === 'string')
    return unusable(`names no usable token_endpoint for clients with a certificate: ${mtlsTokenUrl}`);
  const methods = parseNames(document.token_endpoint_auth_methods_supported);
  const signingAlgorithms = parseNames(document.token_endpoint_auth_signing_alg_values_supported);
  const requiresDpop = Object.keys(document).some((name) => DPOP_REQUIRED.test(name) && document[name] === true);
  return { kind: 'read', metadata: { tokenUrl, mtlsTokenUrl, methods, signingAlgorithms, requiresDpop } };
}

/** What the server requires or does not list of the client authentication; undefined when it lists all or states nothing. */
export function describeUnsupportedAuth(
  { methods, signingAlgorithms, requiresDpop }: ServerMetadata,
  { method, algorithm }: { readonly method: string; readonly algorithm: string | undefined },
): string | undefined {
  if (requiresDpop) return 'the authorization server requires DPoP (RFC 9449), which is not supported';
  // What the extra parameters are is not known.
  if (method === 'none') return undefined;
  if (methods !== undefined && !listRegisteredNames(method).some((name) => methods.includes(name)))
    return `auth.method is ${method}, and the authorization server lists ${quoteList(methods)}`;
  if (signingAlgorithms !== undefined && algorithm !== undefined && !signingAlgorithms.includes(algorithm))
    return `the assertion is signed with ${algorithm}, and the authorization server lists ${quoteList(signingAlgorithms)}`;
  return undefined;
}

/** Names of the registry of RFC 7591 §2 under which a server may list the method. */
function listRegisteredNames(method: string): readonly string[] {
  // For the client a self-signed certificate is the same method (RFC 8705 §2.2).
  if (method === 'tls_client_auth') return [method, 'self_signed_tls_client_auth'];
  // On the wire it is the same, by which key the assertion is signed.
  return method === 'client_assertion' ? ['private_key_jwt', 'client_secret_jwt'] : [method];
}

/** A URL that credentials may be sent to, or what is wrong with it. */
function parseEndpointUrl(value: unknown, allowInsecureHttp: boolean): URL | string {
  if (typeof value !== 'string') return 'it is not there';
  if (!/^https?:\/\/[^\s\\]+$/i.test(value) || !URL.canParse(value))
    return `${quoteValue(value)} is no absolute https: URL`;
  const url = new URL(value);
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    return `${url.host} has user information or a fragment in its URL`;
  const isSafe = url.protocol === 'https:' || isLoopbackHost(url.hostname) || allowInsecureHttp;
  return isSafe ? url : `${url.host} is to be reached by http:, which is accepted for loopback hosts only`;
}

function parseNames(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return (value as unknown[]).filter((name) => typeof name === 'string');
}

function quoteValue(value: unknown): string {
  return typeof value === 'string' ? quoteForMessage(value, MAX_QUOTED_VALUE_CHARS) : 'nothing';
}

function quoteList(names: readonly string[]): string {
  return names.length === 0 ? 'none' : quoteValue(names.join(', ')).slice(1, -1);
}
