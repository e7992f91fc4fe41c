/**
 * Compares the active configuration with one that was read later, key by key, and says which changes a running process can apply.
 * composition/reload.ts applies them.
 */
import { isDeepStrictEqual } from 'node:util';
import { listEntryValues, type ConfigEntry } from './load/entries.ts';
import { isTextList, type SettingValue } from './schema/formats/formats.ts';
import type { LoadedConfig } from './load/load.ts';
import { settingOf, type SettingKey } from './schema/schema.ts';
import { ROUTE_SETTINGS, type ListKey, type RouteKey } from './schema/schema-routes.ts';

export interface SettingChange {
  /** As in a file; in an entry after the entry's name: `routes.quotes.throttle.rate`. */
  readonly key: string;
  /** False: only a restart applies it. */
  readonly isLive: boolean;
  /** The old value, the new value and its origin; undefined unless live, since other settings may be secrets. */
  readonly words: string | undefined;
}

/** A fleet has one value for all replicas, fixed when a replica joins. */
const FLEET_WIDE_SETTINGS: ReadonlySet<SettingKey> = new Set<SettingKey>([
  'throttle.rate',
  'throttle.maxRate',
  'throttle.burst',
  'throttle.maxInFlight',
]);

/** Every difference: top-level settings in the order of the reference, then entries in their own order. */
export function findChanges(before: LoadedConfig, after: LoadedConfig): SettingChange[] {
  const isFleet = before.config.fleet !== undefined;
  const isLive = (key: SettingKey): boolean => settingOf(key).isLive && !(isFleet && FLEET_WIDE_SETTINGS.has(key));
  const [oldLists, newLists] = [listEntriesByKey(before), listEntriesByKey(after)];
  return newLists.flatMap((newEntries, list) => {
    const oldEntries = oldLists[list] ?? newEntries;
    const keys = new Set([...oldEntries.keys(), ...newEntries.keys()]);
    return [...keys].flatMap((key) => {
      const [oldEntry, newEntry] = [oldEntries.get(key), newEntries.get(key)];
      // A new or removed entry needs a restart.
      if (oldEntry === undefined || newEntry === undefined) return [{ key, isLive: false, words: undefined }];
      return compareEntries(key === '' ? '' : `${key}.`, oldEntry, newEntry, isLive);
    });
  });
}

/** The top level, the credentials and the routes, each by key: `routes.quotes`. Valid entries have unique names. */
function listEntriesByKey({ top, entries }: LoadedConfig): readonly ReadonlyMap<string, ConfigEntry>[] {
  const byKey = (list: ListKey): Map<string, ConfigEntry> =>
    new Map(entries[list].map((entry) => [`${list}.${entry.own.name ?? entry.label}`, entry]));
  return [new Map([['', top]]), byKey('credentials'), byKey('routes')];
}

function compareEntries(
  prefix: string,
  before: ConfigEntry,
  after: ConfigEntry,
  isLive: (key: SettingKey) => boolean,
): SettingChange[] {
  const [oldValues, newValues] = [listEntryValues(before), listEntryValues(after)];
  const paths = new Set([...oldValues.keys(), ...newValues.keys()]);
  return [...paths].flatMap((path) => {
    const [one, other] = [oldValues.get(path), newValues.get(path)];
    if (isDeepStrictEqual(one?.value, other?.value)) return [];
    const setting = (one ?? other)?.key;
    const isKeyLive = setting === undefined ? ROUTE_SETTINGS[path as RouteKey].isLive : isLive(setting);
    const key = prefix + path;
    const change = `${formatChangedValue(one?.value)} → ${formatChangedValue(other?.value)}`;
    const words = isKeyLive ? `${key}: ${change} (${other?.origin ?? after.origin})` : undefined;
    return [{ key, isLive: isKeyLive, words }];
  });
}

function formatChangedValue(value: SettingValue = null): string {
  if (value === null) return 'not set';
  if (isTextList(value)) return value.join(',') || 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
