/** Turns validated settings into the Config: texts become URLs, addresses and numbers here only. Validates nothing. */
import { isLoopbackHost } from '../../platform/loopback.ts';
import { parseHost, parseListenAddress } from '../schema/formats/address.ts';
import { parseAllowRule } from '../schema/formats/allow-rules.ts';
import type { AllowedHostConfig, AuthConfig, Config, ListenAddressConfig } from '../config.ts';
import type { RouteConfig, UpstreamConfig } from '../config.ts';
import { readProgramVersion } from '../../platform/program-version.ts';
import { grantsByAssertion } from '../rules/rules-auth.ts';
import type { SecretMap, TextOrFile } from '../schema/formats/formats.ts';
import type { AssertionSigningOptions } from '../../token/client/signed-assertion.ts';
import type { SecretSource } from '../../token/client/secret-file.ts';
import { parseProxyUrl, PROXY_OFF } from '../schema/formats/proxy.ts';
import type { ResolvedRoutes, ResolvedRoute } from './routes.ts';
import type { Settings } from '../schema/schema.ts';
import { toList } from '../schema/formats/one-or-many.ts';
import { joinUrl } from '../schema/formats/url.ts';

/**
 * Assembles a frozen Config; the URLs in it stay mutable, since JavaScript cannot freeze them.
 * @throws Error when the settings have not passed the formats and the rules
 */
export function assembleConfig(settings: Settings, { routes, credentials }: ResolvedEntries): Config {
  const { listen, admin, fleet, response, shutdown, log, metrics, allowInsecureHttp } = settings;
  const [first, ...others] = routes.map(assembleRoute);
  return deepFreeze({
    routes: [requireValue(first), ...others],
    credentials: credentials.map((credential) => ({
      name: credential.name,
      auth: assembleAuth(credential.settings),
    })),
    egress: assembleEgress(settings),
    listen: {
      ...listen,
      address: toListenAddress(listen.address),
      socketMode: Number.parseInt(listen.socketMode, 8),
      requiredHeader: assembleRequiredHeader(listen.requiredHeader),
      allowedHosts: toAllowedHosts(listen.allowedHosts),
      allow: listen.allow.map((rule) => requireValue(parseAllowRule(rule))),
      allowedOrigins: listen.allowedOrigins.map((origin) => origin.toLowerCase()),
    },
    admin: {
      ...admin,
      address: toListenAddress(admin.address),
      allowedHosts: toAllowedHosts(admin.allowedHosts),
      // Paths may hold personal data: other machines see them only if the configuration says so.
      recentCalls: admin.recentCalls ?? !admin.exposeAll,
    },
    fleet: assembleFleet(fleet),
    response: { cookies: response.cookies ?? defaultCookies(toListenAddress(listen.address)) },
    shutdown,
    log,
    metrics,
    allowInsecureHttp,
  });
}

type ResolvedEntries = Pick<ResolvedRoutes, 'routes' | 'credentials'>;

function assembleRoute({ settings, methods, ...route }: ResolvedRoute): RouteConfig {
  const { throttle, queue, request, retry } = settings;
  return {
    ...route,
    methods: methods.length === 0 ? undefined : methods,
    upstream: assembleUpstream(settings),
    throttle: { ...throttle, maxRate: throttle.maxRate ?? undefined, stateFile: throttle.stateFile ?? undefined },
    queue,
    request,
    retry,
  };
}

function assembleUpstream({ upstream, auth }: Settings): UpstreamConfig {
  const { tlsCertificateFile, tlsKeyFile, baseUrl, caFile, headers, ...rest } = upstream;
  return {
    ...rest,
    headers: toSecretSources(headers),
    baseUrl: new URL(requireValue(baseUrl)),
    caFile: caFile ?? undefined,
    clientCertificate: assembleClientCertificate({ tlsCertificateFile, tlsKeyFile }) ?? assembleClientCertificate(auth),
  };
}

function assembleAuth({ auth, upstream, allowInsecureHttp }: Settings): AuthConfig {
  const { grantType, bodyFormat, tokenField, expiresInField, expiresInUnit } = auth;
  const { timeoutMs, defaultLifetimeMs, invalidationCooldownMs, settleMs } = auth;
  return {
    ...{ grantType, bodyFormat, tokenField, expiresInField, expiresInUnit },
    ...{ timeoutMs, defaultLifetimeMs, invalidationCooldownMs, settleMs },
    endpoint: assembleEndpoint(auth, allowInsecureHttp),
    clientId: toSecretSource(auth.clientId, auth.clientIdFile),
    method: assembleClientMethod(auth),
    assertionGrant: grantsByAssertion(auth) ? { ...assembleSigning(auth), claims: auth.assertionClaims } : undefined,
    clientCertificate: assembleClientCertificate(auth),
    audience: toList(auth.audience),
    scope: auth.scope ?? undefined,
    resource: toList(auth.resource),
    extraParameters: toSecretSources(auth.extraParameters),
    extraHeaders: toSecretSources(auth.extraHeaders),
    userAgent: auth.userAgent ?? `bearer-sidecar/${readProgramVersion()}`,
    caFile: auth.caFile ?? upstream.caFile ?? undefined,
    cacheFile: auth.cacheFile ?? undefined,
  };
}

function assembleClientMethod(auth: Settings['auth']): AuthConfig['method'] {
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

function assembleEndpoint(auth: Settings['auth'], allowInsecureHttp: boolean): AuthConfig['endpoint'] {
  if (auth.method === 'static') return { kind: 'file', path: requireValue(auth.tokenFile) };
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
}: Pick<Settings['auth'], 'tlsCertificateFile' | 'tlsKeyFile'>): AuthConfig['clientCertificate'] {
  return certificateFile === null || keyFile === null ? undefined : { certificateFile, keyFile };
}

function assembleEgress({ egress, upstream }: Settings): Config['egress'] {
  const { proxy, httpProxy, noProxy, caFile } = egress;
  return {
    proxy: parseProxyUrl(proxy ?? PROXY_OFF),
    httpProxy: parseProxyUrl(httpProxy ?? proxy ?? PROXY_OFF),
    noProxy,
    caFile: caFile ?? upstream.caFile ?? undefined,
  };
}

function assembleRequiredHeader(header: Settings['listen']['requiredHeader']): Config['listen']['requiredHeader'] {
  if (header.name === null) return undefined;
  return { name: header.name.toLowerCase(), value: requireValue(toSecretSource(header.value, header.valueFile)) };
}

function assembleFleet({ redisUrl, redisUrlFile, caFile, keyPrefix, timeoutMs }: Settings['fleet']): Config['fleet'] {
  const url = toSecretSource(redisUrl, redisUrlFile);
  return url && { redisUrl: url, caFile: caFile ?? undefined, keyPrefix, timeoutMs };
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

function toListenAddress(text: string): ListenAddressConfig {
  return requireValue(parseListenAddress(text));
}

/** Off this machine, a cookie that must not cross a network unencrypted keeps its `Secure`. */
function defaultCookies(address: ListenAddressConfig): Config['response']['cookies'] {
  return address.kind === 'unix' || isLoopbackHost(address.host) ? 'adapt' : 'pass';
}

function toAllowedHosts(texts: readonly string[]): AllowedHostConfig[] {
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
