/**
 * The rules that tie the settings of the authorization server and of client authentication to each other. A setting of
 * another method is an error, not a remark: whoever wrote it believes that it is in use.
 */
import { nameOf } from '../load/problems.ts';
import type { Rule } from './rule.ts';
import { settingOf } from '../schema/schema.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';
import { insecureFault } from '../schema/formats/url.ts';

type Method = Settings['auth']['method'];

const SECRET_METHODS: readonly Method[] = ['client_secret_basic', 'client_secret_post'];
const METHOD: SettingKey = 'auth.method';

/** Rules over `auth.*` and over the client certificate of the upstream. */
export const AUTH_RULES: readonly Rule[] = [
  {
    keys: ['auth.url', 'auth.issuer'],
    fault: ({ auth }) => {
      const issuer = nameOf('auth.issuer');
      if (auth.url !== null && auth.issuer !== null) return `set together with ${issuer}; expected only one of the two`;
      return auth.url === null && auth.issuer === null
        ? `required; the authorization server's base URL, such as https://login.example.com, or its issuer in ${issuer}`
        : undefined;
    },
  },
  {
    keys: ['auth.url', 'allowInsecureHttp'],
    fault: ({ auth, allowInsecureHttp }) => insecureFault(auth.url, allowInsecureHttp, nameOf('allowInsecureHttp')),
  },
  {
    keys: ['auth.tokenPath', 'auth.issuer'],
    fault: ({ auth }) =>
      auth.issuer !== null && auth.tokenPath !== settingOf('auth.tokenPath').default
        ? `set together with ${nameOf('auth.issuer')}, whose metadata names the token endpoint; expected only one of the two`
        : undefined,
  },
  {
    keys: ['auth.issuer', 'allowInsecureHttp'],
    fault: ({ auth, allowInsecureHttp }) => insecureFault(auth.issuer, allowInsecureHttp, nameOf('allowInsecureHttp')),
  },
  {
    keys: ['auth.clientId', 'auth.clientIdFile'],
    fault: ({ auth }) => exactlyOne(auth.clientId, auth.clientIdFile, 'the client id', 'auth.clientIdFile'),
  },
  {
    keys: ['auth.clientId', METHOD, 'auth.basicEncoding'],
    fault: ({ auth }) => (auth.clientId !== null && cannotHoldColon(auth) ? colonFault(auth.clientId) : undefined),
  },
  { keys: ['auth.clientSecret', 'auth.clientSecretFile', METHOD], fault: ({ auth }) => secretPresenceFault(auth) },
  ownSetting('auth.basicEncoding', ['client_secret_basic'], ({ auth }) => auth.basicEncoding !== 'raw'),
  {
    keys: ['auth.privateKeyFile', METHOD],
    fault: ({ auth }) =>
      auth.method === 'private_key_jwt' && auth.privateKeyFile === null
        ? `required by ${methodWords(auth.method)}; the file of the private key`
        : undefined,
  },
  ownSetting('auth.privateKeyFile', ['private_key_jwt'], ({ auth }) => auth.privateKeyFile !== null),
  ownSetting('auth.keyId', ['private_key_jwt'], ({ auth }) => auth.keyId !== null),
  ownSetting('auth.signingAlgorithm', ['private_key_jwt'], ({ auth }) => auth.signingAlgorithm !== null),
  ownSetting('auth.assertionAudience', ['private_key_jwt'], ({ auth }) => auth.assertionAudience !== 'token_endpoint'),
  {
    keys: ['auth.assertionAudience', 'auth.issuer', METHOD],
    fault: ({ auth }) =>
      auth.method === 'private_key_jwt' && auth.assertionAudience === 'issuer' && auth.issuer === null
        ? `found issuer, which needs ${nameOf('auth.issuer')}`
        : undefined,
  },
  {
    keys: ['auth.tlsCertificateFile', 'auth.tlsKeyFile', METHOD],
    fault: ({ auth }) =>
      auth.method === 'tls_client_auth' && auth.tlsCertificateFile === null && auth.tlsKeyFile === null
        ? `required by ${methodWords(auth.method)}, with ${nameOf('auth.tlsKeyFile')}; the file of the client certificate`
        : keyPairFault(auth, 'auth.tlsKeyFile'),
  },
  {
    keys: [METHOD, 'auth.url', 'auth.issuer'],
    fault: ({ auth }) =>
      auth.method === 'tls_client_auth' && /^http:/i.test(auth.url ?? auth.issuer ?? '')
        ? `found tls_client_auth, which needs an https: URL in ${nameOf(auth.url === null ? 'auth.issuer' : 'auth.url')}`
        : undefined,
  },
  {
    keys: ['auth.audience', 'auth.scope', 'auth.resource'],
    fault: ({ auth }) =>
      auth.audience === null && auth.scope === null && auth.resource === null
        ? `required; the audience to ask a token for, or scopes in ${nameOf('auth.scope')}, or both (or a resource in ${nameOf('auth.resource')})`
        : undefined,
  },
  {
    keys: ['upstream.tlsCertificateFile', 'upstream.tlsKeyFile'],
    fault: ({ upstream }) => keyPairFault(upstream, 'upstream.tlsKeyFile'),
  },
];

/** What is wrong when a setting and its twin for a file are to be given exactly once; undefined when nothing is. */
export function exactlyOne(
  value: string | null,
  file: string | null,
  what: string,
  fileKey: SettingKey,
): string | undefined {
  if (value === null && file === null) return `required; ${what}, or the file that holds it in ${nameOf(fileKey)}`;
  if (value !== null && file !== null) return `set together with ${nameOf(fileKey)}; expected only one of the two`;
  return undefined;
}

/** Whether id and secret are joined by a colon as they are: the first one ends the id (RFC 7617 §2). */
export function cannotHoldColon({ method, basicEncoding }: Settings['auth']): boolean {
  return method === 'client_secret_basic' && basicEncoding === 'raw';
}

/** What is wrong with a client id that is joined to its secret as it is. */
export function colonFault(clientId: string): string | undefined {
  return clientId.includes(':') ? 'must not hold a colon' : undefined;
}

function secretPresenceFault({ method, clientSecret, clientSecretFile }: Settings['auth']): string | undefined {
  if (SECRET_METHODS.includes(method))
    return exactlyOne(clientSecret, clientSecretFile, `the client secret for ${method}`, 'auth.clientSecretFile');
  if (clientSecret === null && clientSecretFile === null) return undefined;
  const found = clientSecret === null ? `found in ${nameOf('auth.clientSecretFile')}` : 'set';
  return `${found}, but ${methodWords(method)} sends no secret; leave it out`;
}

/** A setting that only some methods use. */
function ownSetting(key: SettingKey, methods: readonly Method[], isSet: (settings: Settings) => boolean): Rule {
  return {
    keys: [key, METHOD],
    fault: (settings) =>
      isSet(settings) && !methods.includes(settings.auth.method)
        ? `set, but ${methodWords(settings.auth.method)} does not use it; it belongs to ${methods.join(', ')}`
        : undefined,
  };
}

function methodWords(method: Method): string {
  return `${nameOf(METHOD)} ${method}`;
}

function keyPairFault(
  { tlsCertificateFile, tlsKeyFile }: Pick<Settings['auth'], 'tlsCertificateFile' | 'tlsKeyFile'>,
  keyFile: SettingKey,
): string | undefined {
  if (tlsCertificateFile !== null && tlsKeyFile === null) return `set without its key; expected ${nameOf(keyFile)} too`;
  if (tlsCertificateFile === null && tlsKeyFile !== null) return `required with ${nameOf(keyFile)}`;
  return undefined;
}
