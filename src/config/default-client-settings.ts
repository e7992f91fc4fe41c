/** Resets the settings that only fit the partner's servers, for commands that call other servers or none (sandbox, health, wait). */
import type { Preset } from './load/load.ts';
import type { SettingKey } from './schema/schema.ts';
import { INHERITED_BY_CREDENTIALS, INHERITED_WITH_OWN_SERVER } from './schema/schema-routes.ts';

/** Settings of `auth` that a preset gives itself. */
const GIVEN_BY_PRESETS = /^auth\.(?:url|tokenPath|client(?:Id|Secret)(?:File)?|audience|scope)$/;
/** Settings of `auth` that fit any server. */
const FITTING_ANY_SERVER: readonly SettingKey[] = [
  ...INHERITED_WITH_OWN_SERVER,
  'auth.defaultLifetimeMs',
  'auth.userAgent',
];

/** Part of a preset: a client with a secret in HTTP Basic, without certificate, proxy or extra fields. */
export const DEFAULT_CLIENT_SETTINGS: Preset['values'] = {
  ...Object.fromEntries(
    [...INHERITED_BY_CREDENTIALS.values()]
      .filter((key) => !GIVEN_BY_PRESETS.test(key) && !FITTING_ANY_SERVER.includes(key))
      .map((key) => [key, null]),
  ),
  'upstream.tokenHeader': null,
  'upstream.tokenPrefix': null,
  'upstream.headers': null,
  'upstream.query': null,
  'upstream.caFile': null,
  'upstream.tlsGroups': null,
  'upstream.tlsCertificateFile': null,
  'upstream.tlsKeyFile': null,
  'egress.proxy': 'none',
  'egress.httpProxy': null,
  'egress.noProxy': [],
  'egress.caFile': null,
};
