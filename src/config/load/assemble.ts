/**
 * Turns checked settings into the Config that the parts are built from: text becomes URLs, addresses and numbers here,
 * and nowhere else. Nothing is checked any more.
 */
import { parseHost, parseListenAddress } from '../schema/formats/address.ts';
import { parseAllowRule } from '../schema/formats/allow-rules.ts';
import type { AllowedHost, AuthConfig, Config, ListenAddress } from '../config.ts';
import type { RouteConfig, UpstreamConfig, ValueSource } from '../config.ts';
import { parseProxyUrl, NO_PROXY } from '../schema/formats/proxy.ts';
import type { Resolved, ResolvedRoute } from './routes.ts';
import type { Settings } from '../schema/schema.ts';
import { listOf } from '../schema/formats/several.ts';
import { joinUrl } from '../schema/formats/url.ts';

/**
 * Assembles a frozen Config (the URLs in it keep their setters: JavaScript cannot freeze those).
 * @throws Error when the settings have not passed the formats and the rules
 */
export function assembleConfig(settings: Settings, { routes, credentials }: Entries): Config {
  const { listen, admin, fleet, response, shutdown, log, allowInsecureHttp } = settings;
  const [first, ...others] = routes.map(assembleRoute);
  return deepFreeze({
    routes: [given(first), ...others],
    credentials: credentials.map((credential) => ({
      name: credential.name,
      auth: assembleAuth(credential.settings),
    })),
    egress: assembleEgress(settings),
    listen: {
      ...listen,
      address: address(listen.address),
      socketMode: Number.parseInt(listen.socketMode, 8),
      requiredHeader: requiredHeader(listen.requiredHeader),
      allowedHosts: hosts(listen.allowedHosts),
      allow: listen.allow.map((rule) => given(parseAllowRule(rule))),
      allowedOrigins: listen.allowedOrigins.map((origin) => origin.toLowerCase()),
    },
    admin: { ...admin, address: address(admin.address), allowedHosts: hosts(admin.allowedHosts) },
    fleet: fleetOf(fleet),
    response,
    shutdown,
    log,
    allowInsecureHttp,
  });
}

type Entries = Pick<Resolved, 'routes' | 'credentials'>;

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
  const { tlsCertificateFile, tlsKeyFile, baseUrl, caFile, ...rest } = upstream;
  return {
    ...rest,
    baseUrl: new URL(given(baseUrl)),
    caFile: caFile ?? undefined,
    clientCertificate: clientCertificate({ tlsCertificateFile, tlsKeyFile }) ?? clientCertificate(auth),
  };
}

function assembleAuth({ auth, upstream, allowInsecureHttp }: Settings): AuthConfig {
  return {
    endpoint:
      auth.issuer === null
        ? { kind: 'url', url: joinUrl(given(auth.url), auth.tokenPath) }
        : { kind: 'issuer', issuer: auth.issuer, allowInsecureHttp },
    clientId: given(valueSource(auth.clientId, auth.clientIdFile)),
    method: clientMethod(auth),
    clientCertificate: clientCertificate(auth),
    audience: listOf(auth.audience),
    scope: auth.scope ?? undefined,
    resource: listOf(auth.resource),
    extraParameters: auth.extraParameters,
    extraHeaders: auth.extraHeaders,
    timeoutMs: auth.timeoutMs,
    caFile: auth.caFile ?? upstream.caFile ?? undefined,
    cacheFile: auth.cacheFile ?? undefined,
    invalidationCooldownMs: auth.invalidationCooldownMs,
  };
}

function clientMethod(auth: Settings['auth']): AuthConfig['method'] {
  const secret = valueSource(auth.clientSecret, auth.clientSecretFile);
  switch (auth.method) {
    case 'client_secret_basic':
      return { name: auth.method, secret: given(secret), encoding: auth.basicEncoding };
    case 'client_secret_post':
      return { name: auth.method, secret: given(secret) };
    case 'private_key_jwt':
      return {
        name: auth.method,
        keyFile: given(auth.privateKeyFile),
        keyId: auth.keyId ?? undefined,
        algorithm: auth.signingAlgorithm ?? undefined,
        audience: auth.assertionAudience,
      };
    case 'tls_client_auth':
      return { name: auth.method };
  }
}

function clientCertificate({
  tlsCertificateFile: certificateFile,
  tlsKeyFile: keyFile,
}: Pick<Settings['auth'], 'tlsCertificateFile' | 'tlsKeyFile'>): AuthConfig['clientCertificate'] {
  return certificateFile === null || keyFile === null ? undefined : { certificateFile, keyFile };
}

function assembleEgress({ egress, upstream }: Settings): Config['egress'] {
  const { proxy, httpProxy, noProxy, caFile } = egress;
  return {
    proxy: parseProxyUrl(proxy ?? NO_PROXY),
    httpProxy: parseProxyUrl(httpProxy ?? proxy ?? NO_PROXY),
    noProxy,
    caFile: caFile ?? upstream.caFile ?? undefined,
  };
}

function requiredHeader(header: Settings['listen']['requiredHeader']): Config['listen']['requiredHeader'] {
  if (header.name === null) return undefined;
  return { name: header.name.toLowerCase(), value: given(valueSource(header.value, header.valueFile)) };
}

function fleetOf({ redisUrl, redisUrlFile, caFile, keyPrefix, timeoutMs }: Settings['fleet']): Config['fleet'] {
  const url = valueSource(redisUrl, redisUrlFile);
  return url && { redisUrl: url, caFile: caFile ?? undefined, keyPrefix, timeoutMs };
}

function valueSource(value: string | null, path: string | null): ValueSource | undefined {
  if (value !== null) return { kind: 'value', value };
  return path === null ? undefined : { kind: 'file', path };
}

function address(text: string): ListenAddress {
  return given(parseListenAddress(text));
}

function hosts(texts: readonly string[]): AllowedHost[] {
  return texts.map((text) => given(parseHost(text)));
}

function given<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('settings must be checked before they are assembled');
  return value;
}

function deepFreeze<T extends object>(value: T): T {
  for (const child of Object.values(value) as unknown[])
    if (typeof child === 'object' && child !== null) deepFreeze(child);
  return Object.freeze(value);
}
