/**
 * What init wants to know, and whether the answers make a configuration: the rules are those of loading, asked in memory before a
 * file is written.
 */
import { loadConfig } from '../../config/load/load.ts';
import { settingOf } from '../../config/schema/schema.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import type { OptionName } from '../command-table.ts';

/** Options of init that are settings. */
export const SETTING_OPTIONS = {
  'base-url': 'upstream.baseUrl',
  'auth-url': 'auth.url',
  'token-path': 'auth.tokenPath',
  'client-id': 'auth.clientId',
  'client-secret-file': 'auth.clientSecretFile',
  audience: 'auth.audience',
  scope: 'auth.scope',
  rate: 'throttle.rate',
} as const satisfies Partial<Record<OptionName, SettingKey>>;

/** A setting that init writes. */
export type AnsweredKey = (typeof SETTING_OPTIONS)[keyof typeof SETTING_OPTIONS];

/** Settings as the environment would hold them; none of them is the secret itself. */
export type Answers = ReadonlyMap<AnsweredKey, string>;

/** Where the client secret is to be. */
export type SecretLocation =
  /** In a file that is to be written. */
  | { readonly kind: 'new-file'; readonly path: string; readonly secret: string }
  /** In the file that the answers name. */
  | { readonly kind: 'file' }
  /** In SIDECAR_CLIENT_SECRET, when the sidecar runs. */
  | { readonly kind: 'environment' };

/** One answer that will not do. */
export interface AnswerFault {
  readonly key: string;
  /** What was found and what is expected; never a secret. */
  readonly message: string;
}

/** Everything that stands in the way, in the order of the reference; what is not answered yet too. */
export function findAnswerFaults(answers: Answers, secret: SecretLocation): readonly AnswerFault[] {
  const given = [...answers].map(([key, text]) => [key, settingOf(key).format.fromText(text)] as const);
  // Some secret there will be: of the rules only those that ask for one care.
  const inMemory = { 'new-file': secret.kind === 'new-file' ? secret.secret : '', environment: 'later' };
  const values = secret.kind === 'file' ? given : [...given, ['auth.clientSecret', inMemory[secret.kind]] as const];
  const loaded = loadConfig({ env: {}, preset: { name: 'init', values: Object.fromEntries(values) } });
  return loaded.ok ? [] : loaded.problems;
}

/** What is wrong with one of them, in words. */
export function findFaultOf(
  key: AnsweredKey | 'auth.clientSecret',
  answers: Answers,
  secret: SecretLocation,
): string | undefined {
  return findAnswerFaults(answers, secret).find((fault) => fault.key === key)?.message;
}

/** How the option of a key is written; the key where it has none. */
export function optionNameFor(key: string): string {
  const found = Object.entries(SETTING_OPTIONS).find(([, setting]) => setting === key)?.[0];
  return found === undefined ? key : `--${found}`;
}
