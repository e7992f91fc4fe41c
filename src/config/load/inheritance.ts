/**
 * Completes an entry of `routes` or `credentials` with top-level settings. Settings that belong together are inherited together
 * or not at all, so that the secret of one client never goes to the server of another.
 */
import { formatSettingName, type ConfigProblem, type SettingProblem } from './problems.ts';
import type { ConfigEntry } from './entries.ts';
import { findFileProblems } from './named-files.ts';
import { findBrokenRules } from '../rules/rules.ts';
import { replaceSettings, SETTINGS, settingOf, type SettingKey, type Settings } from '../schema/schema.ts';
import { INHERITED_WITH_OWN_SERVER, NEVER_INHERITED, INHERITED_TOGETHER } from '../schema/schema-routes.ts';

export interface SettingsLevel {
  readonly settings: Settings;
  /** Settings with an explicit value. */
  readonly given: ReadonlySet<SettingKey>;
  /** Settings with an invalid value, which is reported already. */
  readonly wrong: ReadonlySet<SettingKey>;
}

/** The settings that apply to an entry; `given` and `wrong` then refer to inherited settings too. */
export function inheritSettings(top: SettingsLevel, entry: ConfigEntry): SettingsLevel {
  const dropped = new Set([...SETTINGS.keys()].filter((key) => isNotInherited(key, entry, top)));
  const defaults = [...dropped].map((key) => [key, settingOf(key).default] as const);
  const isInherited = (key: SettingKey): boolean => !dropped.has(key) && !isOwnSetting(key, entry);
  return {
    settings: replaceSettings(top.settings, [...defaults, ...entry.settings]),
    given: new Set([...top.given].filter(isInherited)),
    wrong: new Set([...[...top.wrong].filter(isInherited), ...entry.wrong]),
  };
}

function isOwnSetting(key: SettingKey, { settings, wrong }: ConfigEntry): boolean {
  return settings.has(key) || wrong.has(key);
}

function isNotInherited(key: SettingKey, entry: ConfigEntry, top: SettingsLevel): boolean {
  if (isOwnSetting(key, entry)) return false;
  // The values are secrets of the API of the top level; and another API may carry out a repeated call twice, key or no key.
  if (key === 'upstream.headers' || key === 'retry.idempotencyKey.header') return isOtherOrigin(entry, top);
  const isCredential = entry.label.startsWith('credentials');
  const hasOwnServer = isOwnSetting('auth.url', entry) || isOwnSetting('auth.issuer', entry);
  if (isCredential && hasOwnServer && key.startsWith('auth.')) return !INHERITED_WITH_OWN_SERVER.includes(key);
  if (isCredential && NEVER_INHERITED.includes(key)) return true;
  return INHERITED_TOGETHER.some((group) => group.includes(key) && group.some((other) => isOwnSetting(other, entry)));
}

function isOtherOrigin(entry: ConfigEntry, { settings }: SettingsLevel): boolean {
  const own = entry.settings.get('upstream.baseUrl');
  const [a, b] = [own, settings.upstream.baseUrl].map((url) => typeof url === 'string' && new URL(url).origin);
  return isOwnSetting('upstream.baseUrl', entry) && a !== b;
}

/**
 * The broken rules and the unusable files, named by the keys of the entry.
 * @param appliesTo whether the rules of a key apply to the entry
 */
export function findEntryProblems(
  entry: ConfigEntry,
  { settings, given, wrong }: SettingsLevel,
  appliesTo: (key: SettingKey) => boolean,
): ConfigProblem[] {
  const found = [
    ...findBrokenRules(settings, wrong, appliesTo),
    ...findFileProblems(settings, (key) => entry.settings.has(key)),
  ];
  return found.map((problem) => renameKeysInProblem(problem, entry, given));
}

/** Inherited settings keep their top-level names. */
function renameKeysInProblem(
  problem: SettingProblem,
  entry: ConfigEntry,
  given: ReadonlySet<SettingKey>,
): ConfigProblem {
  let { message } = problem;
  for (const key of SETTINGS.keys()) {
    const name = given.has(key) ? undefined : entry.names.get(key);
    if (name !== undefined) message = message.replaceAll(formatSettingName(key), name);
  }
  const key = given.has(problem.key) ? undefined : entry.names.get(problem.key);
  return key === undefined ? { ...problem, message } : { key, message };
}
