/** The settings that init writes. They are validated with the rules of loading before a file is written. */
import type { ConfigProblem } from '../../config/load/problems.ts';
import { loadConfig } from '../../config/load/load.ts';
import { settingOf, type SettingKey } from '../../config/schema/schema.ts';
import { COMMANDS, OPTIONS } from '../command-table.ts';

export const INIT_SETTING_OPTIONS = COMMANDS.init.options.flatMap((option) => {
  const spec = OPTIONS[option];
  return 'setting' in spec ? [{ option, key: spec.setting }] : [];
});

/** A setting that init writes; those without an option are read from a curl command. */
export type InitSettingKey =
  | (typeof INIT_SETTING_OPTIONS)[number]['key']
  | Extract<
      SettingKey,
      | `auth.${'method' | 'grantType' | 'bodyFormat' | 'tokenFile' | 'resource' | 'extraParameters' | 'extraHeaders'}`
      | `${'auth' | 'upstream'}.${'tlsCertificateFile' | 'tlsKeyFile'}`
      | `upstream.${'tokenHeader' | 'tokenPrefix' | 'headers' | 'query'}`
    >;

/** Texts as in the environment; none is the secret itself. */
export type InitSettings = ReadonlyMap<InitSettingKey, string>;

/** Where the client secret, or the token of method `static`, is stored. */
export type SecretLocation =
  | { readonly kind: 'new-file'; readonly path: string; readonly secret: string }
  /** In the file that a setting names, or there is none. */
  | { readonly kind: 'file' }
  /** In SIDECAR_CLIENT_SECRET when the sidecar runs. */
  | { readonly kind: 'environment' };

export function secretFileKey(settings: InitSettings): 'auth.clientSecretFile' | 'auth.tokenFile' {
  return settings.get('auth.method') === 'static' ? 'auth.tokenFile' : 'auth.clientSecretFile';
}

/** Whether the method of authentication has neither a client secret nor a token: a key in the query is a parameter like others. */
export function hasNoSecret(settings: InitSettings): boolean {
  const method = settings.get('auth.method') ?? '';
  return method === 'static' ? settings.has('upstream.query') : /^(?:none|tls_client_auth)$/.test(method);
}

/** The problems of the settings, missing ones included, in the order of the reference. */
export function findSettingProblems(settings: InitSettings, secret: SecretLocation): readonly ConfigProblem[] {
  const given = [...settings].map(([key, text]) => [key, settingOf(key).format.fromText(text)] as const);
  // A placeholder satisfies the rules that require a secret.
  const inMemory = { 'new-file': secret.kind === 'new-file' ? secret.secret : '', environment: 'later' };
  const values =
    secret.kind === 'file' || secretFileKey(settings) === 'auth.tokenFile'
      ? given
      : [...given, ['auth.clientSecret', inMemory[secret.kind]] as const];
  const loaded = loadConfig({ env: {}, preset: { name: 'init', values: Object.fromEntries(values) } });
  if (loaded.ok) return [];
  // A key in the query is in a file when it is written, and then needs no token.
  return loaded.problems.filter(({ key }) => key !== 'auth.tokenFile' || !settings.has('upstream.query'));
}

export function findFaultOf(key: InitSettingKey | 'auth.clientSecret', settings: InitSettings, secret: SecretLocation) {
  return findSettingProblems(settings, secret).find((problem) => problem.key === key)?.message;
}

/** The option of a setting, such as `--rate`; the key itself when it has none. */
export function optionNameFor(key: string): string {
  const found = INIT_SETTING_OPTIONS.find((option) => option.key === key);
  return found === undefined ? key : `--${found.option}`;
}
