/** What a rule between settings looks like. The rules themselves are in rules.ts and, for the authorization server, in rules-auth.ts. */
import type { SettingKey, Settings } from '../schema/schema.ts';

/** A tie between settings. */
export interface SettingsRule {
  /** The settings looked at; the problem is put to the first. */
  readonly keys: readonly [SettingKey, ...SettingKey[]];
  /** What is wrong; undefined when nothing is. */
  readonly fault: (settings: Settings) => string | undefined;
}
