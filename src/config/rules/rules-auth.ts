/**
 * Rules between the settings of the authorization server and of client authentication. A setting of another method is an error,
 * not a warning: its author believes that it is in use.
 */
import { formatSettingName } from '../load/problems.ts';
import { settingOf } from '../schema/schema.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';
import { insecureFault } from '../schema/formats/url.ts';

/** A rule between settings. */
export interface SettingsRule {
  /** The settings that the rule reads; a problem names the first. */
  readonly keys: readonly [SettingKey, ...SettingKey[]];
  /** The fault in words; undefined when the rule holds. */
  readonly fault: (settings: Settings) => string | undefined;
}

type AuthMethodName = Settings['auth']['method'];

const SECRET_METHODS: readonly AuthMethodName[] = ['client_secret_basic', 'client_secret_post'];
const METHOD_KEY: SettingKey = 'auth.method';

/** Rules for `auth.*` and for the client certificate of the upstream. */
export const AUTH_RULES: readonly SettingsRule[] = [
  {
    keys: ['auth.url', 'auth.issuer'],
    fault: ({ auth }) => {
      const issuer = formatSettingName('auth.issuer');
      if (auth.url !== null && auth.issuer !== null) return `set together with ${issuer}; expected only one of the two`;
      return auth.url === null && auth.issuer === null
        ? `required; the authorization server's base URL, such as https://login.example.com, or its issuer in ${issuer}`
        : undefined;
    },
  },
  {
    keys: ['auth.url', 'allowInsecureHttp'],
    fault: ({ auth, allowInsecureHttp }) =>
      insecureFault(auth.url, allowInsecureHttp, formatSettingName('allowInsecureHttp')),
  },
  {
    keys: ['auth.tokenPath', 'auth.issuer'],
    fault: ({ auth }) =>
      auth.issuer !== null && auth.tokenPath !== settingOf('auth.tokenPath').default
        ? `set together with ${formatSettingName('auth.issuer')}, whose metadata names the token endpoint; expected only one of the two`
        : undefined,
  },
  {
    keys: ['auth.issuer', 'allowInsecureHttp'],
    fault: ({ auth, allowInsecureHttp }) =>
      insecureFault(auth.issuer, allowInsecureHttp, formatSettingName('allowInsecureHttp')),
  },
  {
    keys: ['auth.clientId', 'auth.clientIdFile'],
    fault: ({ auth }) => exactlyOneFault(auth.clientId, auth.clientIdFile, 'the client id', 'auth.clientIdFile'),
  },
  {
    keys: ['auth.clientId', METHOD_KEY, 'auth.basicEncoding'],
    fault: ({ auth }) => (auth.clientId !== null && isColonForbidden(auth) ? colonFault(auth.clientId) : undefined),
  },
  { keys: ['auth.clientSecret', 'auth.clientSecretFile', METHOD_KEY], fault: ({ auth }) => secretPresenceFault(auth) },
  createMethodRule('auth.basicEncoding', ['client_secret_basic'], ({ auth }) => auth.basicEncoding !== 'raw'),
  {
    keys: ['auth.privateKeyFile', METHOD_KEY],
    fault: ({ auth }) =>
      auth.method === 'private_key_jwt' && auth.privateKeyFile === null
        ? `required by ${describeMethod(auth.method)}; the file of the private key`
        : undefined,
  },
  createMethodRule('auth.privateKeyFile', ['private_key_jwt'], ({ auth }) => auth.privateKeyFile !== null),
  createMethodRule('auth.keyId', ['private_key_jwt'], ({ auth }) => auth.keyId !== null),
  createMethodRule('auth.signingAlgorithm', ['private_key_jwt'], ({ auth }) => auth.signingAlgorithm !== null),
  createMethodRule(
    'auth.assertionAudience',
    ['private_key_jwt'],
    ({ auth }) => auth.assertionAudience !== 'token_endpoint',
  ),
  {
    keys: ['auth.assertionAudience', 'auth.issuer', METHOD_KEY],
    fault: ({ auth }) =>
      auth.method === 'private_key_jwt' && auth.assertionAudience === 'issuer' && auth.issuer === null
        ? `found issuer, which needs ${formatSettingName('auth.issuer')}`
        : undefined,
  },
  createRequiredRule('auth.assertionFile', 'the file of the JWT', ({ auth }) => auth.assertionFile),
  createMethodRule('auth.assertionFile', ['client_assertion'], ({ auth }) => auth.assertionFile !== null),
  createRequiredRule(
    'auth.assertionFileAudience',
    'the audience that the JWT must have, such as api://AzureADTokenExchange',
    ({ auth }) => auth.assertionFileAudience,
  ),
  createMethodRule(
    'auth.assertionFileAudience',
    ['client_assertion'],
    ({ auth }) => auth.assertionFileAudience !== null,
  ),
  {
    keys: ['auth.cacheFile', METHOD_KEY],
    fault: ({ auth }) =>
      auth.cacheFile !== null && auth.method === 'client_assertion'
        ? `set, but ${describeMethod(auth.method)} has neither a secret nor a key to encrypt it with; leave it out, or set it to nothing`
        : undefined,
  },
  {
    keys: ['auth.tlsCertificateFile', 'auth.tlsKeyFile', METHOD_KEY],
    fault: ({ auth }) =>
      auth.method === 'tls_client_auth' && auth.tlsCertificateFile === null && auth.tlsKeyFile === null
        ? `required by ${describeMethod(auth.method)}, with ${formatSettingName('auth.tlsKeyFile')}; the file of the client certificate`
        : keyPairFault(auth, 'auth.tlsKeyFile'),
  },
  {
    keys: [METHOD_KEY, 'auth.url', 'auth.issuer'],
    fault: ({ auth }) =>
      auth.method === 'tls_client_auth' && /^http:/i.test(auth.url ?? auth.issuer ?? '')
        ? `found tls_client_auth, which needs an https: URL in ${formatSettingName(auth.url === null ? 'auth.issuer' : 'auth.url')}`
        : undefined,
  },
  {
    keys: ['auth.audience', 'auth.scope', 'auth.resource'],
    fault: ({ auth }) =>
      auth.audience === null && auth.scope === null && auth.resource === null
        ? `required; the audience to ask a token for, or scopes in ${formatSettingName('auth.scope')}, or both (or a resource in ${formatSettingName('auth.resource')})`
        : undefined,
  },
  {
    keys: ['upstream.tlsCertificateFile', 'upstream.tlsKeyFile'],
    fault: ({ upstream }) => keyPairFault(upstream, 'upstream.tlsKeyFile'),
  },
];

/** The fault unless exactly one of a setting and its `…File` twin is set. */
export function exactlyOneFault(
  value: string | null,
  file: string | null,
  what: string,
  fileKey: SettingKey,
): string | undefined {
  if (value === null && file === null)
    return `required; ${what}, or the file that holds it in ${formatSettingName(fileKey)}`;
  if (value !== null && file !== null)
    return `set together with ${formatSettingName(fileKey)}; expected only one of the two`;
  return undefined;
}

/** Whether id and secret are joined without encoding: the first colon ends the id (RFC 7617 §2). */
export function isColonForbidden({ method, basicEncoding }: Settings['auth']): boolean {
  return method === 'client_secret_basic' && basicEncoding === 'raw';
}

/** The fault of a client id that is joined without encoding. */
export function colonFault(clientId: string): string | undefined {
  return clientId.includes(':') ? 'must not hold a colon' : undefined;
}

function secretPresenceFault({ method, clientSecret, clientSecretFile }: Settings['auth']): string | undefined {
  if (SECRET_METHODS.includes(method))
    return exactlyOneFault(clientSecret, clientSecretFile, `the client secret for ${method}`, 'auth.clientSecretFile');
  if (clientSecret === null && clientSecretFile === null) return undefined;
  const found = clientSecret === null ? `found in ${formatSettingName('auth.clientSecretFile')}` : 'set';
  return `${found}, but ${describeMethod(method)} sends no secret; leave it out`;
}

/** A rule for a setting that client_assertion requires. */
function createRequiredRule(
  key: SettingKey,
  what: string,
  valueOf: (settings: Settings) => string | null,
): SettingsRule {
  return {
    keys: [key, METHOD_KEY],
    fault: (settings) =>
      settings.auth.method === 'client_assertion' && valueOf(settings) === null
        ? `required by ${describeMethod(settings.auth.method)}; ${what}`
        : undefined,
  };
}

/** A rule for a setting that only some methods use. */
function createMethodRule(
  key: SettingKey,
  methods: readonly AuthMethodName[],
  isSet: (settings: Settings) => boolean,
): SettingsRule {
  return {
    keys: [key, METHOD_KEY],
    fault: (settings) =>
      isSet(settings) && !methods.includes(settings.auth.method)
        ? `set, but ${describeMethod(settings.auth.method)} does not use it; it belongs to ${methods.join(', ')}`
        : undefined,
  };
}

function describeMethod(method: AuthMethodName): string {
  return `${formatSettingName(METHOD_KEY)} ${method}`;
}

function keyPairFault(
  { tlsCertificateFile, tlsKeyFile }: Pick<Settings['auth'], 'tlsCertificateFile' | 'tlsKeyFile'>,
  keyFile: SettingKey,
): string | undefined {
  if (tlsCertificateFile !== null && tlsKeyFile === null)
    return `set without its key; expected ${formatSettingName(keyFile)} too`;
  if (tlsCertificateFile === null && tlsKeyFile !== null) return `required with ${formatSettingName(keyFile)}`;
  return undefined;
}
