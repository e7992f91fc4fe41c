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

type AuthSettings = Settings['auth'];
type AuthMethodName = AuthSettings['method'];

/** RFC 7523 §2.1. */
export const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const SECRET_METHODS: readonly AuthMethodName[] = ['client_secret_basic', 'client_secret_post'];
const METHOD_KEY: SettingKey = 'auth.method';

/** Rules for `auth.*` and for the client certificate of the upstream. */
export const AUTH_RULES: readonly SettingsRule[] = [
  {
    keys: ['auth.url', 'auth.issuer'],
    fault: ({ auth }) => {
      const issuer = formatSettingName('auth.issuer');
      if (auth.url !== null && auth.issuer !== null) return `set together with ${issuer}; expected only one of the two`;
      return auth.url === null && auth.issuer === null && auth.method !== 'static'
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
    keys: ['auth.clientId', 'auth.clientIdFile', METHOD_KEY, 'auth.grantType'],
    fault: ({ auth }) =>
      isClientIdOptional(auth) && auth.clientId === null && auth.clientIdFile === null
        ? undefined
        : exactlyOneFault(auth.clientId, auth.clientIdFile, 'the client id', 'auth.clientIdFile'),
  },
  {
    keys: ['auth.clientId', METHOD_KEY, 'auth.basicEncoding'],
    fault: ({ auth }) => (auth.clientId !== null && isColonForbidden(auth) ? colonFault(auth.clientId) : undefined),
  },
  { keys: ['auth.clientSecret', 'auth.clientSecretFile', METHOD_KEY], fault: ({ auth }) => secretPresenceFault(auth) },
  createMethodRule('auth.basicEncoding', ['client_secret_basic'], ({ auth }) => auth.basicEncoding !== 'raw'),
  {
    keys: ['auth.privateKeyFile', METHOD_KEY, 'auth.grantType'],
    fault: ({ auth }) => {
      if (signsAssertions(auth) === (auth.privateKeyFile !== null)) return undefined;
      return auth.privateKeyFile === null
        ? `required by ${describeSigner(auth)}; the file of the private key`
        : describeUnsigned(auth);
    },
  },
  createSigningRule('auth.keyId', ({ auth }) => auth.keyId !== null),
  createSigningRule('auth.signingAlgorithm', ({ auth }) => auth.signingAlgorithm !== null),
  createSigningRule('auth.certificateFile', ({ auth }) => auth.certificateFile !== null),
  createSigningRule('auth.assertionAudience', ({ auth }) => auth.assertionAudience !== 'token_endpoint'),
  {
    keys: ['auth.assertionAudience', 'auth.issuer', METHOD_KEY],
    fault: ({ auth }) =>
      signsAssertions(auth) && auth.assertionAudience === 'issuer' && auth.issuer === null
        ? `found issuer, which needs ${formatSettingName('auth.issuer')}`
        : undefined,
  },
  {
    keys: ['auth.assertionClaims', 'auth.grantType'],
    fault: ({ auth }) =>
      Object.keys(auth.assertionClaims).length > 0 && !grantsByAssertion(auth)
        ? `set, but ${formatSettingName('auth.grantType')} is not ${JWT_BEARER_GRANT}; leave it out`
        : undefined,
  },
  {
    keys: ['auth.extraParameters', METHOD_KEY],
    fault: ({ auth }) => {
      const faults = Object.keys(auth.extraParameters).flatMap((name) => {
        const owner = ownerOfParameter(name, auth);
        return owner === undefined ? [] : [`${JSON.stringify(name)}: is set by ${owner}`];
      });
      return faults[0];
    },
  },
  createRequiredRule('auth.tokenFile', 'static', 'the file of the token', ({ auth }) => auth.tokenFile),
  createMethodRule('auth.tokenFile', ['static'], ({ auth }) => auth.tokenFile !== null),
  createRequiredRule('auth.assertionFile', 'client_assertion', 'the file of the JWT', ({ auth }) => auth.assertionFile),
  createMethodRule('auth.assertionFile', ['client_assertion'], ({ auth }) => auth.assertionFile !== null),
  createRequiredRule(
    'auth.assertionFileAudience',
    'client_assertion',
    'the audience that the JWT must have, such as api://AzureADTokenExchange',
    ({ auth }) => auth.assertionFileAudience,
  ),
  createMethodRule(
    'auth.assertionFileAudience',
    ['client_assertion'],
    ({ auth }) => auth.assertionFileAudience !== null,
  ),
  {
    keys: ['auth.cacheFile', METHOD_KEY, 'auth.grantType', 'auth.tlsCertificateFile'],
    fault: ({ auth }) =>
      auth.cacheFile !== null && !hasKeyMaterial(auth)
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

function isClientIdOptional(auth: AuthSettings): boolean {
  return auth.method === 'static' || (auth.method === 'none' && !grantsByAssertion(auth));
}

function grantsByAssertion({ method, grantType }: AuthSettings): boolean {
  return method !== 'static' && grantType === JWT_BEARER_GRANT;
}

/** Whether `auth.privateKeyFile` signs the client's assertion, the grant, or both. */
export function signsAssertions(auth: AuthSettings): boolean {
  return auth.method === 'private_key_jwt' || grantsByAssertion(auth);
}

/** Whether there is a secret or a key that can encrypt a token. */
function hasKeyMaterial(auth: AuthSettings): boolean {
  const hasOwnSecret = !['client_assertion', 'none', 'static'].includes(auth.method);
  return hasOwnSecret || signsAssertions(auth) || (auth.method === 'none' && auth.tlsCertificateFile !== null);
}

/** The setting that decides a parameter of the token request; undefined for others. */
function ownerOfParameter(name: string, auth: AuthSettings): SettingKey | undefined {
  if (name === 'assertion') return grantsByAssertion(auth) ? 'auth.grantType' : undefined;
  if (auth.method === 'none') return undefined;
  if (name === 'client_id') return 'auth.clientId';
  if (name === 'client_secret') return 'auth.clientSecret';
  return name === 'client_assertion' || name === 'client_assertion_type' ? METHOD_KEY : undefined;
}

function describeSigner(auth: AuthSettings): string {
  return grantsByAssertion(auth) ? `${formatSettingName('auth.grantType')} jwt-bearer` : describeMethod(auth.method);
}

function describeUnsigned({ method }: AuthSettings): string {
  return `set, but ${describeMethod(method)} does not use it; it belongs to private_key_jwt, and to ${formatSettingName('auth.grantType')} ${JWT_BEARER_GRANT}`;
}

/** A rule for a setting that only signed assertions use. */
function createSigningRule(key: SettingKey, isSet: (settings: Settings) => boolean): SettingsRule {
  return {
    keys: [key, METHOD_KEY, 'auth.grantType'],
    fault: (settings) =>
      isSet(settings) && !signsAssertions(settings.auth) ? describeUnsigned(settings.auth) : undefined,
  };
}

/** A rule for a setting that a method requires. */
function createRequiredRule(
  key: SettingKey,
  method: AuthMethodName,
  what: string,
  valueOf: (settings: Settings) => string | null,
): SettingsRule {
  return {
    keys: [key, METHOD_KEY],
    fault: (settings) =>
      settings.auth.method === method && valueOf(settings) === null
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
