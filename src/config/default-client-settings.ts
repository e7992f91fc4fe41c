/** Resets the settings that only fit the partner's servers, for commands that call other servers or none (sandbox, health, wait). */
import type { Preset } from './load/load.ts';

/** Part of a preset: a client with a secret in HTTP Basic, without certificate, proxy or extra fields. */
export const DEFAULT_CLIENT_SETTINGS: Preset['values'] = {
  'auth.issuer': null,
  'auth.method': null,
  'auth.basicEncoding': null,
  'auth.privateKeyFile': null,
  'auth.keyId': null,
  'auth.signingAlgorithm': null,
  'auth.assertionAudience': null,
  'auth.assertionFile': null,
  'auth.assertionFileAudience': null,
  'auth.tlsCertificateFile': null,
  'auth.tlsKeyFile': null,
  'auth.resource': null,
  'auth.extraParameters': null,
  'auth.extraHeaders': null,
  'auth.caFile': null,
  'auth.cacheFile': null,
  'upstream.caFile': null,
  'upstream.tlsCertificateFile': null,
  'upstream.tlsKeyFile': null,
  'egress.proxy': 'none',
  'egress.httpProxy': null,
  'egress.noProxy': [],
  'egress.caFile': null,
};
