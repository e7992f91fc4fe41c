/**
 * Rules between the settings of the authorization server and of client authentication. A setting of another method is an error,
 * not a warning: its author believes that it is in use.
 */
import { isDeepStrictEqual } from 'node:util';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { formatSettingName } from '../load/problems.ts';
import { settingOf, valueOfSetting, type SettingKey, type Settings } from '../schema/schema.ts';

export interface SettingsRule {
  /** The settings that the rule reads; a problem names the first. */
  readonly keys: readonly [SettingKey, ...SettingKey[]];
  /** The fault in words; undefined when the rule holds. */
  readonly fault: (settings: Settings) => string | undefined;
}

type AuthSettings = Settings['auth'];
type AuthMethodName = AuthSettings['method'];

/** RFC 7523 §2.1. */
const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const SECRET_METHODS: readonly AuthMethodName[] = ['client_secret_basic', 'client_secret_post'];
const METHODS_WITHOUT_CREDENTIAL: readonly AuthMethodName[] = ['none', 'static'];
const METHOD_KEY: SettingKey = 'auth.method';

const GRANT_OWNER = `auth.grantType ${JWT_BEARER_GRANT}`;
const SIGNERS = `private_key_jwt, and to ${GRANT_OWNER}`;

interface SettingUse {
  readonly name: keyof AuthSettings;
  readonly isUsed: (auth: AuthSettings) => boolean;
  /** What uses it, in words. */
  readonly owners: string;
  /** Set for a setting that its users require: describes the value to give. */
  readonly required?: string;
}

/** Settings that only some methods or grants use. */
const USES: readonly SettingUse[] = [
  { name: 'basicEncoding', ...usedBy('client_secret_basic') },
  { name: 'privateKeyFile', isUsed: signsAssertions, owners: SIGNERS, required: 'the file of the private key' },
  { name: 'keyId', isUsed: signsAssertions, owners: SIGNERS },
  { name: 'signingAlgorithm', isUsed: signsAssertions, owners: SIGNERS },
  { name: 'certificateFile', isUsed: signsAssertions, owners: SIGNERS },
  { name: 'assertionAudience', isUsed: signsAssertions, owners: SIGNERS },
  { name: 'assertionClaims', isUsed: grantsByAssertion, owners: GRANT_OWNER },
  { name: 'tokenFile', ...usedBy('static') },
  { name: 'assertionFile', ...usedBy('client_assertion'), required: 'the file of the JWT' },
  {
    name: 'assertionFileAudience',
    ...usedBy('client_assertion'),
    required: 'the audience that the JWT must have, such as api://AzureADTokenExchange',
  },
];

function usedBy(owner: AuthMethodName): Pick<SettingUse, 'isUsed' | 'owners'> {
  return { isUsed: ({ method }) => method === owner, owners: owner };
}

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
  createEncryptionRule('auth.url'),
  {
    keys: ['auth.tokenPath', 'auth.issuer'],
    fault: ({ auth }) =>
      auth.issuer !== null && auth.tokenPath !== settingOf('auth.tokenPath').default
        ? `set together with ${formatSettingName('auth.issuer')}, whose metadata names the token endpoint; expected only one of the two`
        : undefined,
  },
  createEncryptionRule('auth.issuer'),
  {
    keys: ['auth.clientId', 'auth.clientIdFile', METHOD_KEY, 'auth.grantType'],
    fault: ({ auth }) =>
      isClientIdOptional(auth) && auth.clientId === null && auth.clientIdFile === null
        ? undefined
        : exactlyOneFault(auth.clientId, auth.clientIdFile, 'the client id', 'auth.clientIdFile'),
  },
  {
    keys: ['auth.clientId', METHOD_KEY, 'auth.basicEncoding'],
    fault: ({ auth }) => forbiddenColonFault(auth.clientId ?? '', auth),
  },
  {
    keys: ['auth.clientSecret', 'auth.clientSecretFile', METHOD_KEY, 'auth.grantType'],
    fault: ({ auth }) => secretPresenceFault(auth),
  },
  {
    keys: ['auth.extraHeaders', METHOD_KEY],
    fault: ({ auth }) => {
      const name = Object.keys(auth.extraHeaders).find((one) => one.toLowerCase() === 'authorization');
      return name === undefined || METHODS_WITHOUT_CREDENTIAL.includes(auth.method)
        ? undefined
        : `${JSON.stringify(name)}: is set by ${describeMethod(auth.method)}; with none it may be here`;
    },
  },
  ...USES.map(createUseRule),
  {
    keys: ['auth.assertionAudience', 'auth.issuer', METHOD_KEY],
    fault: ({ auth }) =>
      signsAssertions(auth) && auth.assertionAudience === 'issuer' && auth.issuer === null
        ? `found issuer, which needs ${formatSettingName('auth.issuer')}`
        : undefined,
  },
  {
    keys: ['auth.extraParameters', METHOD_KEY],
    fault: ({ auth }) => {
      const name = Object.keys(auth.extraParameters).find((one) => ownerOfParameter(one, auth) !== undefined);
      return name === undefined
        ? undefined
        : `${JSON.stringify(name)}: is set by ${ownerOfParameter(name, auth) ?? ''}`;
    },
  },
  {
    keys: ['auth.cacheFile', METHOD_KEY, 'auth.grantType', 'auth.extraParameters', 'auth.tlsCertificateFile'],
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

/** Requests to a URL cross no network unencrypted, unless that is allowed. */
export function createEncryptionRule(key: 'upstream.baseUrl' | 'auth.url' | 'auth.issuer'): SettingsRule {
  return {
    keys: [key, 'allowInsecureHttp'],
    fault: (settings) => {
      const url = valueOfSetting(settings, key);
      if (typeof url !== 'string' || settings.allowInsecureHttp) return undefined;
      const { protocol, hostname } = new URL(url);
      return protocol === 'http:' && !isLoopbackHost(hostname)
        ? `http: is accepted for loopback hosts only, since anyone on the network path could read the traffic; use https:, or set ${formatSettingName('allowInsecureHttp')} to true`
        : undefined;
    },
  };
}

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

/** Where id and secret are joined without encoding, the first colon ends the id (RFC 7617 §2). */
export function forbiddenColonFault(clientId: string, { method, basicEncoding }: AuthSettings): string | undefined {
  const isJoined = method === 'client_secret_basic' && basicEncoding === 'raw';
  return isJoined && clientId.includes(':') ? 'must not hold a colon' : undefined;
}

function secretPresenceFault(auth: AuthSettings): string | undefined {
  const { method, clientSecret, clientSecretFile } = auth;
  const instead = grantsByAssertion(auth) ? ` (${METHOD_KEY} none where the signed JWT is enough)` : '';
  if (SECRET_METHODS.includes(method))
    return exactlyOneFault(
      clientSecret,
      clientSecretFile,
      `the client secret for ${method}${instead}`,
      'auth.clientSecretFile',
    );
  if (clientSecret === null && clientSecretFile === null) return undefined;
  const found = clientSecret === null ? `found in ${formatSettingName('auth.clientSecretFile')}` : 'set';
  return `${found}, but ${describeMethod(method)} sends no secret; leave it out`;
}

function isClientIdOptional(auth: AuthSettings): boolean {
  return auth.method === 'static' || (auth.method === 'none' && !grantsByAssertion(auth));
}

/** Whether the grant of the token request is an assertion that is signed here. */
export function grantsByAssertion({ method, grantType }: AuthSettings): boolean {
  return method !== 'static' && grantType === JWT_BEARER_GRANT;
}

/** Whether `auth.privateKeyFile` signs the client's assertion, the grant, or both. */
export function signsAssertions(auth: AuthSettings): boolean {
  return auth.method === 'private_key_jwt' || grantsByAssertion(auth);
}

/** Whether there is a secret or a key that can encrypt a token. */
function hasKeyMaterial(auth: AuthSettings): boolean {
  const hasOwnSecret = ![...METHODS_WITHOUT_CREDENTIAL, 'client_assertion'].includes(auth.method);
  const hasRefreshToken = auth.grantType === 'refresh_token' && 'refresh_token' in auth.extraParameters;
  return (
    hasOwnSecret ||
    hasRefreshToken ||
    signsAssertions(auth) ||
    (auth.method === 'none' && auth.tlsCertificateFile !== null)
  );
}

/** The setting that decides a parameter of the token request; undefined for others. */
function ownerOfParameter(name: string, auth: AuthSettings): SettingKey | undefined {
  if (name === 'assertion') return grantsByAssertion(auth) ? 'auth.grantType' : undefined;
  if (METHODS_WITHOUT_CREDENTIAL.includes(auth.method)) return undefined;
  if (name === 'client_id') return 'auth.clientId';
  if (name === 'client_secret') return 'auth.clientSecret';
  return name === 'client_assertion' || name === 'client_assertion_type' ? METHOD_KEY : undefined;
}

/** Whether a setting is there, and whether it is used, agree; where it is required, both ways. */
function createUseRule({ name, isUsed, owners, required }: SettingUse): SettingsRule {
  const key: SettingKey = `auth.${name}`;
  return {
    keys: [key, METHOD_KEY, 'auth.grantType'],
    fault: ({ auth }) => {
      const isSet = !isDeepStrictEqual(auth[name], settingOf(key).default);
      if (isSet === isUsed(auth) || (!isSet && required === undefined)) return undefined;
      if (isSet) return `set, but ${describeMethod(auth.method)} does not use it; it belongs to ${owners}`;
      const user = owners === SIGNERS && grantsByAssertion(auth) ? GRANT_OWNER : describeMethod(auth.method);
      return `required by ${user}; ${required ?? ''}`;
    },
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
