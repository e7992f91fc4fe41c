/**
 * What an entry of `routes` or `credentials` takes from the top level: its own value, else the top-level one, and settings that only
 * make sense together are taken together or not at all. No client's secret goes to another client's server that way.
 */
import type { ConfigProblem } from '../config.ts';
import type { ConfigEntry } from './entries.ts';
import { findFileProblems } from './named-files.ts';
import { formatSettingName } from './problems.ts';
import type { SettingProblem } from './problems.ts';
import { findBrokenRules } from '../rules/rules.ts';
import { replaceSettings, SETTINGS, settingOf } from '../schema/schema.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';
import { INHERITED_WITH_OWN_SERVER, NEVER_INHERITED, INHERITED_TOGETHER } from '../schema/schema-routes.ts';

/** The settings that entries take from. */
export interface SettingsLevel {
  readonly settings: Settings;
  /** Those that somebody gave. */
  readonly given: ReadonlySet<SettingKey>;
  /** Those whose value is no good: told of already. */
  readonly wrong: ReadonlySet<SettingKey>;
}

/** What holds for an entry: as a top level of its own, of which `given` says what it took over. */
export function inheritSettings(top: SettingsLevel, entry: ConfigEntry): SettingsLevel {
  const dropped = new Set([...SETTINGS.keys()].filter((key) => isNotInherited(key, entry)));
  const defaults = [...dropped].map((key) => [key, settingOf(key).default] as const);
  const isTaken = (key: SettingKey): boolean => !dropped.has(key) && !isOwnSetting(key, entry);
  return {
    settings: replaceSettings(top.settings, [...defaults, ...entry.settings]),
    given: new Set([...top.given].filter(isTaken)),
    wrong: new Set([...[...top.wrong].filter(isTaken), ...entry.wrong]),
  };
}

function isOwnSetting(key: SettingKey, { settings, wrong }: ConfigEntry): boolean {
  return settings.has(key) || wrong.has(key);
}

function isNotInherited(key: SettingKey, entry: ConfigEntry): boolean {
  if (isOwnSetting(key, entry)) return false;
  const isCredential = entry.label.startsWith('credentials');
  const hasOwnServer = isOwnSetting('auth.url', entry) || isOwnSetting('auth.issuer', entry);
  if (isCredential && hasOwnServer && key.startsWith('auth.')) return !INHERITED_WITH_OWN_SERVER.includes(key);
  if (isCredential && NEVER_INHERITED.includes(key)) return true;
  return INHERITED_TOGETHER.some((group) => group.includes(key) && group.some((other) => isOwnSetting(other, entry)));
}

/**
 * The rules that are broken and the files that cannot be used, by the names that they have in the entry.
 * @param isAsked whether the rules that are put to a key matter here
 */
export function findEntryProblems(
  entry: ConfigEntry,
  { settings, given, wrong }: SettingsLevel,
  isAsked: (key: SettingKey) => boolean,
): ConfigProblem[] {
  const found = [
    ...findBrokenRules(settings, wrong, isAsked),
    ...findFileProblems(settings, (key) => entry.settings.has(key)),
  ];
  return found.map((problem) => renameKeysInProblem(problem, entry, given));
}

/** What was taken over keeps the name that it has where it was given. */
function renameKeysInProblem(
  problem: SettingProblem,
  entry: ConfigEntry,
  given: ReadonlySet<SettingKey>,
): ConfigProblem {
  let { message } = problem;
  for (const key of SETTINGS.keys()) {
    const name = given.has(key) ? undefined : entry.nameOf(key);
    if (name !== undefined) message = message.replaceAll(formatSettingName(key), name);
  }
  const key = given.has(problem.key) ? undefined : entry.nameOf(problem.key);
  return key === undefined ? { ...problem, message } : { key, variable: undefined, message };
}
