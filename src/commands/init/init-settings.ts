/** The settings that init writes. They are validated with the rules of loading before a file is written. */
import type { ConfigProblem } from '../../config/load/problems.ts';
import { loadConfig } from '../../config/load/load.ts';
import { settingOf } from '../../config/schema/schema.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import type { OptionName } from '../command-table.ts';

/** Options of init that are settings. */
export const SETTING_OPTIONS = {
  'base-url': 'upstream.baseUrl',
  'auth-url': 'auth.url',
  'auth-issuer': 'auth.issuer',
  'token-path': 'auth.tokenPath',
  'client-id': 'auth.clientId',
  'client-secret-file': 'auth.clientSecretFile',
  audience: 'auth.audience',
  scope: 'auth.scope',
  rate: 'throttle.rate',
} as const satisfies Partial<Record<OptionName, SettingKey>>;

/** A setting that init writes; those without an option are read from a curl command. */
export type InitSettingKey =
  | (typeof SETTING_OPTIONS)[keyof typeof SETTING_OPTIONS]
  | Extract<
      SettingKey,
      | `auth.${'method' | 'grantType' | 'bodyFormat' | 'tokenFile' | 'resource' | 'extraParameters' | 'extraHeaders'}`
      | `upstream.${'tokenHeader' | 'tokenPrefix' | 'headers'}`
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

/** The setting that names the file of what is secret. */
export function secretFileKey(settings: InitSettings): 'auth.clientSecretFile' | 'auth.tokenFile' {
  return settings.get('auth.method') === 'static' ? 'auth.tokenFile' : 'auth.clientSecretFile';
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
  return loaded.ok ? [] : loaded.problems;
}

/** The message of the problem of one setting; undefined when it is valid. */
export function findFaultOf(
  key: InitSettingKey | 'auth.clientSecret',
  settings: InitSettings,
  secret: SecretLocation,
): string | undefined {
  return findSettingProblems(settings, secret).find((problem) => problem.key === key)?.message;
}

/** The option of a setting, such as `--rate`; the key itself when it has none. */
export function optionNameFor(key: string): string {
  const found = Object.entries(SETTING_OPTIONS).find(([, setting]) => setting === key)?.[0];
  return found === undefined ? key : `--${found}`;
}
