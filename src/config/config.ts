/**
 * The effective configuration that the composition root hands to the parts: assembled from checked settings, complete and frozen.
 * Sections and keys are those of a file, and their types follow from the schema. Only here texts become URLs, addresses and numbers, and
 * settings that describe one thing together become one value. Validates nothing.
 */
import { isLoopbackHost } from '../platform/loopback.ts';
import { readProgramVersion } from '../platform/asset.ts';
import type { ClientCertificateFiles } from '../platform/tls.ts';
import type { ClientAuthOptions } from '../token/client/client-authentication.ts';
import type { SecretSource } from '../token/client/secret-file.ts';
import type { AssertionSigningOptions } from '../token/client/signed-assertion.ts';
import type { TokenEndpointAddress } from '../token/endpoint/token-endpoint.ts';
import { findKeyFile, lacksTokenFile, throttleGroupOf } from './load/resolve.ts';
import type { ResolvedEntries, ResolvedEntry } from './load/resolve.ts';
import { grantsByAssertion } from './rules/rules-auth.ts';
import { parseHost, parseListenAddress } from './schema/formats/address.ts';
import { parseAllowRule } from './schema/formats/allow-rules.ts';
import type { SecretMap, TextOrFile } from './schema/formats/formats.ts';
import { toList } from './schema/formats/one-or-many.ts';
import { parseProxyUrl, PROXY_OFF } from './schema/formats/proxy.ts';
import { joinUrl } from './schema/formats/url.ts';
import { CLIENT_SETTINGS, SERVER_SETTINGS } from './schema/schema-auth.ts';
import type { Settings } from './schema/schema.ts';

export type Config = ReturnType<typeof assembleConfig>;
/** One API, or a part of one, and the name of the credential of its requests. */
export type RouteConfig = Config['routes'][number];
export type UpstreamConfig = RouteConfig['upstream'];
export type CredentialConfig = Config['credentials'][number];
export type AuthConfig = CredentialConfig['auth'];

/** A credential whose tokens are requested, not read from a file. */
export type RequestingAuthConfig = AuthConfig & { readonly endpoint: TokenEndpointAddress };

/** The URL of the token endpoint or of the issuer; undefined for tokens in a file. */
export function authorizationServerUrl({ endpoint }: AuthConfig): URL | undefined {
  if (endpoint.kind === 'file') return undefined;
  return endpoint.kind === 'url' ? endpoint.url : new URL(endpoint.issuer);
}

/** The passwords of forward proxies, decoded: secrets that belong to no part, and are masked in what is printed. */
export function listProxyPasswords({ proxy, httpProxy }: Config['egress']): readonly string[] {
  return [proxy, httpProxy].flatMap((url) => (url ? [decodeURIComponent(url.password)] : []));
}

/** Whose limit it is: the client id, which is optional with some methods, or else the name of the credential. */
export function identifyClient({ name, auth }: CredentialConfig): SecretSource {
  return auth.clientId ?? { kind: 'value', value: `credential ${name}` };
}

/** The first route of each group, whose throttle settings are those of all. */
export function findThrottleGroups({ routes }: Config): ReadonlyMap<string, RouteConfig> {
  const groups = new Map<string, RouteConfig>();
  for (const route of routes) if (!groups.has(route.throttleGroup)) groups.set(route.throttleGroup, route);
  return groups;
}

/**
 * The URLs in the frozen Config stay mutable, since JavaScript cannot freeze them.
 * @throws Error when the settings have not passed the formats and the rules
 */
export function assembleConfig({ top, routes, credentials }: ResolvedEntries) {
  const { settings } = top;
  const { listen, admin, fleet, response } = settings;
  const [first, ...others] = routes.map((route) => assembleRoute(route, credentials));
  const address = requireValue(parseListenAddress(listen.address));
  const isLocal = address.kind === 'unix' || isLoopbackHost(address.host);
  return deepFreeze({
    ...toSection(settings, 'upstream', 'auth', 'throttle', 'queue', 'request', 'retry'),
    /** The default route, if there is one, is the first. */
    routes: [requireValue(first), ...others],
    /** The credentials that a route uses. */
    credentials: credentials.map((credential) => ({
      name: requireValue(credential.entry.own.name),
      auth: assembleAuth(credential, routes),
    })),
    egress: assembleEgress(settings),
    listen: {
      ...listen,
      address,
      socketMode: Number.parseInt(listen.socketMode, 8),
      requiredHeader: assembleRequiredHeader(listen.requiredHeader),
      allowedHosts: toAllowedHosts(listen.allowedHosts),
      allow: listen.allow.map((rule) => requireValue(parseAllowRule(rule))),
      allowedOrigins: listen.allowedOrigins.map((origin) => origin.toLowerCase()),
    },
    admin: {
      ...admin,
      address: requireValue(parseListenAddress(admin.address)),
      allowedHosts: toAllowedHosts(admin.allowedHosts),
      // Paths may hold personal data: other machines see them only if the configuration says so.
      recentCalls: admin.recentCalls ?? !admin.exposeAll,
    },
    fleet: assembleFleet(fleet),
    unknownCalls: toSection(settings.unknownCalls),
    // Off this machine, a cookie that must not cross a network unencrypted keeps its `Secure`.
    response: { cookies: response.cookies ?? (isLocal ? ('adapt' as const) : ('pass' as const)) },
  } as const);
}

function assembleRoute({ entry, settings, givenBy }: ResolvedEntry, credentials: readonly ResolvedEntry[]) {
  const { name, pathPrefix, stripPrefix, methods, credential } = entry.own;
  const { upstream, throttle, queue, request, retry } = settings;
  const owner = requireValue(credentials.find((one) => one.entry.own.name === credential));
  return {
    name: requireValue(name),
    pathPrefix: requireValue(pathPrefix),
    stripPrefix,
    credential,
    throttleGroup: throttleGroupOf(entry),
    /** Undefined allows every method. */
    methods: methods.length === 0 ? undefined : methods,
    upstream: {
      ...toSection(upstream, 'tlsCertificateFile', 'tlsKeyFile'),
      headers: toSecretSources(upstream.headers),
      query: toSecretSources(upstream.query),
      baseUrl: new URL(requireValue(upstream.baseUrl)),
      /** Otherwise `query` has the only key. */
      hasTokenField: !lacksTokenFile(owner),
      clientCertificate: assembleClientCertificate(upstream) ?? assembleClientCertificate(owner.settings.auth),
    },
    throttle: {
      ...toSection(throttle),
      /** `throttle.maxInFlight` has an explicit value. */
      isMaxInFlightGiven: givenBy.has('throttle.maxInFlight'),
    },
    queue,
    request,
    retry,
  } as const;
}

function assembleAuth(credential: ResolvedEntry, routes: readonly ResolvedEntry[]) {
  const { auth, upstream, allowInsecureHttp } = credential.settings;
  const users = routes.filter(({ entry }) => entry.own.credential === credential.entry.own.name);
  const prefixes = users.map(({ settings }) => settings.upstream.tokenPrefix);
  const tokenFile = auth.tokenFile ?? users.map(findKeyFile).find((file) => file !== undefined);
  const assertionGrant: ClientAuthOptions['assertionGrant'] = grantsByAssertion(auth)
    ? { ...assembleSigning(auth), claims: auth.assertionClaims }
    : undefined;
  return {
    ...toSection(auth, ...SERVER_SETTINGS, ...CLIENT_SETTINGS),
    /** What its routes put before the token. */
    tokenPrefixes: lacksTokenFile(credential) ? [] : [...new Set(prefixes)],
    endpoint: assembleEndpoint(auth, tokenFile, allowInsecureHttp),
    clientId: toSecretSource(auth.clientId, auth.clientIdFile),
    method: assembleClientMethod(auth),
    assertionGrant,
    clientCertificate: assembleClientCertificate(auth),
    audience: toList(auth.audience),
    resource: toList(auth.resource),
    extraParameters: toSecretSources(auth.extraParameters),
    extraHeaders: toSecretSources(auth.extraHeaders),
    userAgent: auth.userAgent ?? `bearer-sidecar/${readProgramVersion()}`,
    caFile: auth.caFile ?? upstream.caFile ?? undefined,
    tlsGroups: upstream.tlsGroups ?? undefined,
  } as const;
}

function assembleClientMethod(auth: Settings['auth']): ClientAuthOptions['method'] {
  const secret = toSecretSource(auth.clientSecret, auth.clientSecretFile);
  switch (auth.method) {
    case 'client_secret_basic':
      return { name: auth.method, secret: requireValue(secret), encoding: auth.basicEncoding };
    case 'client_secret_post':
      return { name: auth.method, secret: requireValue(secret) };
    case 'private_key_jwt':
      return { name: auth.method, ...assembleSigning(auth) };
    case 'client_assertion':
      return {
        name: auth.method,
        file: { path: requireValue(auth.assertionFile), audience: requireValue(auth.assertionFileAudience) },
      };
    case 'tls_client_auth':
      return { name: auth.method };
    case 'none':
    case 'static':
      return { name: 'none' };
  }
}

function assembleEndpoint(
  auth: Settings['auth'],
  tokenFile: string | undefined,
  allowInsecureHttp: boolean,
): TokenEndpointAddress | { readonly kind: 'file'; readonly path: string } {
  if (auth.method === 'static') return { kind: 'file', path: requireValue(tokenFile) };
  return auth.issuer === null
    ? { kind: 'url', url: joinUrl(requireValue(auth.url), auth.tokenPath) }
    : { kind: 'issuer', issuer: auth.issuer, allowInsecureHttp };
}

function assembleSigning(auth: Settings['auth']): AssertionSigningOptions {
  return {
    keyFile: requireValue(auth.privateKeyFile),
    keyId: auth.keyId ?? undefined,
    algorithm: auth.signingAlgorithm ?? undefined,
    certificateFile: auth.certificateFile ?? undefined,
    audience: auth.assertionAudience,
  };
}

function assembleClientCertificate({
  tlsCertificateFile: certificateFile,
  tlsKeyFile: keyFile,
}: Pick<Settings['auth'], 'tlsCertificateFile' | 'tlsKeyFile'>): ClientCertificateFiles | undefined {
  return certificateFile === null || keyFile === null ? undefined : { certificateFile, keyFile };
}

function assembleEgress({ egress, upstream }: Settings) {
  const { proxy, httpProxy } = egress;
  return {
    ...egress,
    proxy: parseProxyUrl(proxy ?? PROXY_OFF),
    httpProxy: parseProxyUrl(httpProxy ?? proxy ?? PROXY_OFF),
    caFile: egress.caFile ?? upstream.caFile ?? undefined,
  } as const;
}

/** `name` is in lower case. */
function assembleRequiredHeader(header: Settings['listen']['requiredHeader']) {
  if (header.name === null) return undefined;
  const value = requireValue(toSecretSource(header.value, header.valueFile));
  return { name: header.name.toLowerCase(), value } as const;
}

/** Undefined for a single process. */
function assembleFleet(fleet: Settings['fleet']) {
  const redisUrl = toSecretSource(fleet.redisUrl, fleet.redisUrlFile);
  return redisUrl && ({ ...toSection(fleet, 'redisUrlFile'), redisUrl } as const);
}

type Section<T> = { readonly [K in keyof T]: null extends T[K] ? NonNullable<T[K]> | undefined : T[K] };

/** The settings by their names; undefined where none is given. @param joined settings that become part of other values */
function toSection<T extends object, K extends keyof T = never>(
  settings: T,
  ...joined: readonly K[]
): Section<Omit<T, K>> {
  const rest = Object.entries(settings).filter(([name]) => !joined.some((one) => one === name));
  return Object.fromEntries(rest.map(([name, value]) => [name, value ?? undefined])) as Section<Omit<T, K>>;
}

function toSecretSource(value: string | null, path: string | null): SecretSource | undefined {
  if (value !== null) return { kind: 'value', value };
  return path === null ? undefined : { kind: 'file', path };
}

function toSecretSources(map: SecretMap): Readonly<Record<string, SecretSource>> {
  const toSource = (one: TextOrFile): SecretSource =>
    typeof one === 'string' ? { kind: 'value', value: one } : { kind: 'file', path: one.file };
  return Object.fromEntries(Object.entries(map).map(([name, one]) => [name, toSource(one)]));
}

function toAllowedHosts(texts: readonly string[]) {
  return texts.map((text) => requireValue(parseHost(text)));
}

function requireValue<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('settings must be checked before they are assembled');
  return value;
}

function deepFreeze<T extends object>(value: T): T {
  for (const child of Object.values(value) as unknown[])
    if (typeof child === 'object' && child !== null) deepFreeze(child);
  return Object.freeze(value);
}
