/** Settings as text, with every secret masked. */
import { listEntryValues } from './load/entries.ts';
import { isTextList, type SettingValue } from './schema/formats/formats.ts';
import type { LoadedConfig } from './load/load.ts';
import { settingOf, type SettingKey } from './schema/schema.ts';
import { isJsonObject } from '../token/endpoint/json-object.ts';
import { MASK } from '../platform/secret-redaction.ts';

export function maskSetting(key: SettingKey, value: SettingValue): SettingValue {
  const { sensitive, format } = settingOf(key);
  if (value === null) return value;
  // Neither the names in a map nor the paths of files are secret.
  if (sensitive && isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, typeof one === 'object' ? one : MASK]));
  if (sensitive) return MASK;
  if (isTextList(value)) return value.map((entry) => format.show(entry));
  return typeof value === 'string' ? format.show(value) : value;
}

/**
 * Every setting in the order of the reference, then the own settings of `credentials` and `routes`. A key is as in a file, in an entry after
 * the entry's label: `routes[1].throttle.rate`; an origin is `default`, `file PATH`, `environment VARIABLE` or the name of a preset.
 */
export function listDisplayedSettings({ top, entries }: LoadedConfig) {
  return [top, ...entries.credentials, ...entries.routes].flatMap((entry) =>
    [...listEntryValues(entry)].map(([path, { key, value, origin }]) => ({
      key: entry === top ? path : `${entry.label}.${path}`,
      value: formatValue(key === undefined ? value : maskSetting(key, value)),
      origin,
    })),
  );
}

function formatValue(value: SettingValue): string {
  if (value === null) return 'none';
  if (isTextList(value)) return value.length === 0 ? 'none' : value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
