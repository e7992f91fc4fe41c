/**
 * Turns checked settings into the Config that the parts are built from: text becomes URLs, addresses and numbers here,
 * and nowhere else. Nothing is checked any more.
 */
import { parseHost, parseListenAddress } from './address.ts';
import { parseAllowRule } from './allow-rules.ts';
import type { AllowedHost, Config, ListenAddress, ValueSource } from './config.ts';
import type { Settings } from './schema.ts';
import { joinUrl } from './url.ts';

/**
 * Assembles a frozen Config (the URLs in it keep their setters: JavaScript cannot freeze those).
 * @throws Error when the settings have not passed the formats and the rules
 */
export function assembleConfig(settings: Settings): Config {
  const { upstream, auth, listen, admin, throttle, queue, request, retry, shutdown, log, allowInsecureHttp } = settings;
  return deepFreeze({
    upstream: { ...upstream, baseUrl: new URL(given(upstream.baseUrl)), caFile: upstream.caFile ?? undefined },
    auth: {
      tokenUrl: joinUrl(given(auth.url), auth.tokenPath),
      clientId: given(valueSource(auth.clientId, auth.clientIdFile)),
      clientSecret: given(valueSource(auth.clientSecret, auth.clientSecretFile)),
      audience: auth.audience ?? undefined,
      scope: auth.scope ?? undefined,
      timeoutMs: auth.timeoutMs,
      caFile: auth.caFile ?? upstream.caFile ?? undefined,
      invalidationCooldownMs: auth.invalidationCooldownMs,
    },
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
    throttle,
    queue,
    request,
    retry,
    shutdown,
    log,
    allowInsecureHttp,
  });
}

function requiredHeader(header: Settings['listen']['requiredHeader']): Config['listen']['requiredHeader'] {
  if (header.name === null) return undefined;
  return { name: header.name.toLowerCase(), value: given(valueSource(header.value, header.valueFile)) };
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
