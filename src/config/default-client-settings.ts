/** Resets the settings that only fit the partner's servers, for commands that call other servers or none (sandbox, health, wait). */
import type { Preset } from './load/load.ts';
import { auth } from './schema/schema-auth.ts';

/** Settings of `auth` that a preset gives itself, or that fit any server. */
const KEPT_AUTH_SETTINGS: readonly string[] = [
  ...['url', 'tokenPath', 'clientId', 'clientIdFile', 'clientSecret', 'clientSecretFile', 'audience', 'scope'],
  ...['timeoutMs', 'defaultLifetimeMs', 'userAgent', 'invalidationCooldownMs', 'settleMs'],
];

/** Part of a preset: a client with a secret in HTTP Basic, without certificate, proxy or extra fields. */
export const DEFAULT_CLIENT_SETTINGS: Preset['values'] = {
  ...Object.fromEntries(
    Object.keys(auth).flatMap((name) => (KEPT_AUTH_SETTINGS.includes(name) ? [] : [[`auth.${name}`, null]])),
  ),
  'upstream.tokenHeader': null,
  'upstream.tokenPrefix': null,
  'upstream.headers': null,
  'upstream.caFile': null,
  'upstream.tlsCertificateFile': null,
  'upstream.tlsKeyFile': null,
  'egress.proxy': 'none',
  'egress.httpProxy': null,
  'egress.noProxy': [],
  'egress.caFile': null,
};
