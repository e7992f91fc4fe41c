/**
 * Compares the active configuration with one that was read later, key by key, and says which changes a running process can apply.
 * composition/reload.ts applies them.
 */
import { isDeepStrictEqual } from 'node:util';
import { listEntryValues, type ConfigEntry } from './load/entries.ts';
import { isTextList, type SettingValue } from './schema/formats/formats.ts';
import type { EffectiveSetting, LoadedConfig } from './load/load.ts';
import type { ValueOrigin } from './load/problems.ts';
import { settingOf, type SettingKey } from './schema/schema.ts';
import { ROUTE_SETTINGS, type RouteKey } from './schema/schema-routes.ts';

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
  const isLive: LiveSettingTest = (key) => settingOf(key).isLive && !(isFleet && FLEET_WIDE_SETTINGS.has(key));
  const { entries } = before;
  return [
    ...findTopLevelChanges(before.effective, after.effective, isLive),
    ...findEntryChanges('credentials', entries.credentials, after.entries.credentials, isLive),
    ...findEntryChanges('routes', entries.routes, after.entries.routes, isLive),
  ];
}

type LiveSettingTest = (key: SettingKey) => boolean;

function findTopLevelChanges(
  before: ReadonlyMap<SettingKey, EffectiveSetting>,
  after: ReadonlyMap<SettingKey, EffectiveSetting>,
  isLive: LiveSettingTest,
): SettingChange[] {
  return [...after].flatMap(([key, { value, origin }]) => {
    const oldValue = before.get(key)?.value ?? null;
    return isDeepStrictEqual(oldValue, value) ? [] : [describeChange(key, isLive(key), { oldValue, value, origin })];
  });
}

function findEntryChanges(
  list: string,
  before: readonly ConfigEntry[],
  after: readonly ConfigEntry[],
  isLive: LiveSettingTest,
): SettingChange[] {
  const [oldEntries, newEntries] = [indexByName(before), indexByName(after)];
  const names = new Set([...oldEntries.keys(), ...newEntries.keys()]);
  return [...names].flatMap((name) => {
    const [oldEntry, newEntry] = [oldEntries.get(name), newEntries.get(name)];
    const key = `${list}.${name}`;
    // A new or removed entry needs a restart.
    if (oldEntry === undefined || newEntry === undefined) return [{ key, isLive: false, words: undefined }];
    return compareEntries(key, oldEntry, newEntry, isLive);
  });
}

function compareEntries(
  label: string,
  before: ConfigEntry,
  after: ConfigEntry,
  isLive: LiveSettingTest,
): SettingChange[] {
  const [oldValues, newValues] = [listEntryValues(before), listEntryValues(after)];
  const keys = new Set([...oldValues.keys(), ...newValues.keys()]);
  return [...keys].flatMap((key) => {
    const [one, other] = [oldValues.get(key), newValues.get(key)];
    if (isDeepStrictEqual(one?.value, other?.value)) return [];
    const setting = (one ?? other)?.key;
    const isKeyLive = setting === undefined ? ROUTE_SETTINGS[key as RouteKey].isLive : isLive(setting);
    const values = { oldValue: one?.value ?? null, value: other?.value ?? null, origin: after.origin };
    return [describeChange(`${label}.${key}`, isKeyLive, values)];
  });
}

/** Valid entries have unique names. */
function indexByName(entries: readonly ConfigEntry[]): Map<string, ConfigEntry> {
  return new Map(entries.map((entry) => [entry.name ?? entry.label, entry]));
}

interface ChangedValue {
  readonly oldValue: SettingValue;
  readonly value: SettingValue;
  readonly origin: ValueOrigin;
}

function describeChange(key: string, isLive: boolean, { oldValue, value, origin }: ChangedValue): SettingChange {
  return {
    key,
    isLive,
    words: isLive ? `${key}: ${formatChangedValue(oldValue)} → ${formatChangedValue(value)} (${origin})` : undefined,
  };
}

function formatChangedValue(value: SettingValue): string {
  if (value === null) return 'not set';
  if (isTextList(value)) return value.join(',') || 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
