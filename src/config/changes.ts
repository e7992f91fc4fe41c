/**
 * What differs between the configuration in force and one that was read later, key by key, and which of it a running process can
 * take over. It changes nothing itself; what follows from a difference is sidecar/reload.ts's.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigEntry } from './load/entries.ts';
import { listEntryValues } from './load/entries.ts';
import type { SettingValue } from './schema/formats/formats.ts';
import type { EffectiveSetting, LoadResult } from './load/load.ts';
import type { ValueOrigin } from './load/problems.ts';
import type { SettingKey } from './schema/schema.ts';
import type { RouteKey } from './schema/schema-routes.ts';

/** A configuration that was loaded and is fine. */
export type LoadedConfig = Extract<LoadResult, { readonly ok: true }>;

/** One key that has another value now. */
export interface SettingChange {
  /** As in a file; of an entry behind its name: `routes.quotes.throttle.rate`. */
  readonly key: string;
  /** False: only a restart takes it over. */
  readonly isLive: boolean;
  /** What it was and what it is, with where that comes from; undefined unless live, since others may be secrets. */
  readonly words: string | undefined;
}

/** What a running process takes over, wherever it stands. None of these is a secret, names a file or opens a connection. */
const LIVE_SETTINGS: ReadonlySet<SettingKey> = new Set<SettingKey>([
  'upstream.requestTimeoutMs',
  'upstream.bodyIdleTimeoutMs',
  'throttle.rate',
  'throttle.maxRate',
  'throttle.burst',
  'throttle.maxInFlight',
  'throttle.maxStreams',
  'throttle.maxPauseMs',
  'queue.max',
  'queue.timeoutMs',
  'request.deadlineMs',
  'retry.attempts',
  'retry.unsafeOn429',
  'retry.trustIdempotencyKey',
  'retry.replayBufferBytes',
  'retry.replayTotalBytes',
  'log.level',
]);

/** The same of what only a route has: which requests take it, not what they meet there. */
const LIVE_ROUTE_SETTINGS: ReadonlySet<RouteKey> = new Set<RouteKey>(['pathPrefix', 'stripPrefix', 'methods']);

/** Of these a fleet has one for all replicas, agreed upon when a replica joins. */
const FLEET_WIDE_SETTINGS: ReadonlySet<SettingKey> = new Set<SettingKey>([
  'throttle.rate',
  'throttle.maxRate',
  'throttle.burst',
  'throttle.maxInFlight',
]);

/** Whether a change of this setting needs no restart, where it is this process's own. */
export function isLiveSetting(key: SettingKey): boolean {
  return LIVE_SETTINGS.has(key);
}

/** The same of a key that only a route has. */
export function isLiveRouteSetting(key: RouteKey): boolean {
  return LIVE_ROUTE_SETTINGS.has(key);
}

/** Every difference, in the order of the documentation, then that of the entries. */
export function findChanges(before: LoadedConfig, after: LoadedConfig): SettingChange[] {
  const isLiveHere: LiveSettingTest =
    before.config.fleet === undefined ? isLiveSetting : (key) => isLiveSetting(key) && !FLEET_WIDE_SETTINGS.has(key);
  const { entries } = before;
  return [
    ...findTopLevelChanges(before.effective, after.effective, isLiveHere),
    ...findEntryChanges('credentials', entries.credentials, after.entries.credentials, isLiveHere),
    ...findEntryChanges('routes', entries.routes, after.entries.routes, isLiveHere),
  ];
}

type LiveSettingTest = (key: SettingKey) => boolean;

function findTopLevelChanges(
  before: ReadonlyMap<SettingKey, EffectiveSetting>,
  after: ReadonlyMap<SettingKey, EffectiveSetting>,
  isLiveHere: LiveSettingTest,
): SettingChange[] {
  return [...after].flatMap(([key, { value, origin }]) => {
    const former = before.get(key)?.value ?? null;
    return isDeepStrictEqual(former, value) ? [] : [describeChange(key, isLiveHere(key), { former, value, origin })];
  });
}

function findEntryChanges(
  list: string,
  before: readonly ConfigEntry[],
  after: readonly ConfigEntry[],
  isLiveHere: LiveSettingTest,
): SettingChange[] {
  const [former, latter] = [indexByName(before), indexByName(after)];
  const names = new Set([...former.keys(), ...latter.keys()]);
  return [...names].flatMap((name) => {
    const [one, other] = [former.get(name), latter.get(name)];
    const key = `${list}.${name}`;
    // To be there or not is nothing that a running process takes over.
    if (one === undefined || other === undefined) return [{ key, isLive: false, words: undefined }];
    return compareEntries(key, one, other, isLiveHere);
  });
}

function compareEntries(
  label: string,
  before: ConfigEntry,
  after: ConfigEntry,
  isLiveHere: LiveSettingTest,
): SettingChange[] {
  const [former, latter] = [listEntryValues(before), listEntryValues(after)];
  const keys = new Set([...former.keys(), ...latter.keys()]);
  return [...keys].flatMap((key) => {
    const [one, other] = [former.get(key), latter.get(key)];
    if (isDeepStrictEqual(one?.value, other?.value)) return [];
    const setting = (one ?? other)?.key;
    const live = setting === undefined ? isLiveRouteSetting(key as RouteKey) : isLiveHere(setting);
    const values = { former: one?.value ?? null, value: other?.value ?? null, origin: after.origin };
    return [describeChange(`${label}.${key}`, live, values)];
  });
}

/** Entries that are fine have names, each its own. */
function indexByName(entries: readonly ConfigEntry[]): Map<string, ConfigEntry> {
  return new Map(entries.map((entry) => [entry.name ?? entry.label, entry]));
}

interface ChangedValue {
  readonly former: SettingValue;
  readonly value: SettingValue;
  readonly origin: ValueOrigin;
}

function describeChange(key: string, live: boolean, { former, value, origin }: ChangedValue): SettingChange {
  return {
    key,
    isLive: live,
    words: live ? `${key}: ${formatChangedValue(former)} → ${formatChangedValue(value)} (${origin})` : undefined,
  };
}

function formatChangedValue(value: SettingValue): string {
  if (value === null) return 'not set';
  if (Array.isArray(value)) return value.join(',') || 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
