/**
 * Reads the settings that stand on the command line: `--rate 5`, `--set throttle.rate=5`. Every user of the machine sees the arguments
 * of a process, so that secrets are refused here. Other values are checked where those of all sources are.
 */
import { createSettingProblem, findValueFault, formatSettingName, truncate } from './problems.ts';
import type { ConfigProblem, RawValue } from './problems.ts';
import { MASK } from '../../platform/secret-redaction.ts';
import { VALUE_AND_FILE_KEYS } from '../rules/rules.ts';
import { isTextList } from '../schema/formats/formats.ts';
import { LIST_KEYS } from '../schema/schema-routes.ts';
import { REMOVED_SETTINGS, SETTINGS, settingOf, type SettingKey } from '../schema/schema.ts';
import { findMeantKey } from './sections.ts';
import type { ConfigSource } from './sources.ts';

export interface FlagSetting {
  /** The option that gave it: `--rate`, `--set`. */
  readonly flag: string;
  /** Known for an option of its own; with `--set` any text. */
  readonly key: string;
  /** As in an environment variable; not empty. */
  readonly text: string;
}

/** The last value of each key; unknown keys and secrets are problems. Never fails. */
export function readFlags(flags: readonly FlagSetting[]): Pick<ConfigSource, 'given' | 'problems'> {
  const given = new Map<SettingKey, RawValue>();
  const problems: ConfigProblem[] = [];
  for (const { flag, key, text } of flags) {
    if (!isSettingKey(key)) {
      problems.push({ key: flag, message: describeUnknownKey(key) });
      continue;
    }
    const setting = settingOf(key);
    const raw = { value: setting.format.fromText(text), origin: `flag ${flag}` };
    if (isSecret(key, raw.value)) {
      // A base URL with a password is invalid in a variable too.
      const fault = setting.sensitive ? undefined : findValueFault(setting, raw, setting.env);
      problems.push(createSettingProblem(key, fault ?? describeExposure(key, flag)));
    } else given.set(key, raw);
  }
  return { given, problems };
}

function isSettingKey(key: string): key is SettingKey {
  return SETTINGS.has(key as SettingKey);
}

function describeUnknownKey(key: string): string {
  const shown = JSON.stringify(truncate(key));
  if (LIST_KEYS.some((list) => key === list || key.startsWith(`${list}.`) || key.startsWith(`${list}[`)))
    return `${shown} can be set in a configuration file only`;
  const instead = REMOVED_SETTINGS.get(key);
  if (instead !== undefined) return `${shown} ${instead}`;
  const keys = [...SETTINGS.keys()];
  const first = keys.find((known) => known.startsWith(`${key}.`));
  if (first !== undefined) return `${shown} is a section; expected a key in it, such as ${first}`;
  const meant = [...SETTINGS].find(([, { env }]) => env === key)?.[0] ?? findMeantKey(key, keys);
  return `unknown key ${shown}; ${meant === undefined ? 'bearer-sidecar config shows all of them' : `did you mean ${meant}?`}`;
}

/** Whether some or all of the value is masked wherever it is printed. The client id is shown by `config` and `check`. */
function isSecret(key: SettingKey, value: unknown): boolean {
  const { sensitive, format } = settingOf(key);
  if (sensitive) return key !== 'auth.clientId';
  const texts = typeof value === 'string' ? [value] : isTextList(value) ? value : [];
  return texts.some((text) => format.show(text).includes(MASK));
}

function describeExposure(key: SettingKey, flag: string): string {
  const file = VALUE_AND_FILE_KEYS.find(([value]) => value === key)?.[1];
  const what = settingOf(key).sensitive ? 'a secret' : 'a value with a password or another secret part';
  const other = file === undefined ? 'in a configuration file' : `in a file that ${formatSettingName(file)} names`;
  return `found ${what} in ${flag}, and the process list shows arguments; expected it in the variable ${settingOf(key).env}, or ${other}`;
}
