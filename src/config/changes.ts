/**
 * What differs between the configuration in force and one that was read later, key by key, and which of it a running process can
 * take over. It changes nothing itself; what follows from a difference is sidecar/reload.ts's.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Entry } from './load/entries.ts';
import { writtenIn } from './load/entries.ts';
import type { SettingValue } from './schema/formats/formats.ts';
import type { Effective, LoadResult } from './load/load.ts';
import type { Origin } from './load/problems.ts';
import type { SettingKey } from './schema/schema.ts';
import type { RouteKey } from './schema/schema-routes.ts';

/** A configuration that was loaded and is fine. */
export type Loaded = Extract<LoadResult, { readonly ok: true }>;

/** One key that has another value now. */
export interface Change {
  /** As in a file; of an entry behind its name: `routes.quotes.throttle.rate`. */
  readonly key: string;
  /** False: only a restart takes it over. */
  readonly isLive: boolean;
  /** What it was and what it is, with where that comes from; undefined unless live, since others may be secrets. */
  readonly words: string | undefined;
}

/** What a running process takes over, wherever it stands. None of these is a secret, names a file or opens a connection. */
const LIVE: ReadonlySet<SettingKey> = new Set<SettingKey>([
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
const LIVE_OF_ROUTES: ReadonlySet<RouteKey> = new Set<RouteKey>(['pathPrefix', 'stripPrefix', 'methods']);

/** Of these a fleet has one for all replicas, agreed upon when a replica joins. */
const AGREED_IN_A_FLEET: ReadonlySet<SettingKey> = new Set<SettingKey>([
  'throttle.rate',
  'throttle.maxRate',
  'throttle.burst',
  'throttle.maxInFlight',
]);

/** Whether a change of this setting needs no restart, where it is this process's own. */
export function isLive(key: SettingKey): boolean {
  return LIVE.has(key);
}

/** The same of a key that only a route has. */
export function isLiveOfRoutes(key: RouteKey): boolean {
  return LIVE_OF_ROUTES.has(key);
}

/** Every difference, in the order of the documentation, then that of the entries. */
export function findChanges(before: Loaded, after: Loaded): Change[] {
  const isLiveHere: IsLive =
    before.config.fleet === undefined ? isLive : (key) => isLive(key) && !AGREED_IN_A_FLEET.has(key);
  const { entries } = before;
  return [
    ...changesAtTheTop(before.effective, after.effective, isLiveHere),
    ...changesOfEntries('credentials', entries.credentials, after.entries.credentials, isLiveHere),
    ...changesOfEntries('routes', entries.routes, after.entries.routes, isLiveHere),
  ];
}

type IsLive = (key: SettingKey) => boolean;

function changesAtTheTop(
  before: ReadonlyMap<SettingKey, Effective>,
  after: ReadonlyMap<SettingKey, Effective>,
  isLiveHere: IsLive,
): Change[] {
  return [...after].flatMap(([key, { value, origin }]) => {
    const former = before.get(key)?.value ?? null;
    return isDeepStrictEqual(former, value) ? [] : [describe(key, isLiveHere(key), { former, value, origin })];
  });
}

function changesOfEntries(
  list: string,
  before: readonly Entry[],
  after: readonly Entry[],
  isLiveHere: IsLive,
): Change[] {
  const [former, latter] = [byName(before), byName(after)];
  const names = new Set([...former.keys(), ...latter.keys()]);
  return [...names].flatMap((name) => {
    const [one, other] = [former.get(name), latter.get(name)];
    const key = `${list}.${name}`;
    // To be there or not is nothing that a running process takes over.
    if (one === undefined || other === undefined) return [{ key, isLive: false, words: undefined }];
    return changesWithin(key, one, other, isLiveHere);
  });
}

function changesWithin(label: string, before: Entry, after: Entry, isLiveHere: IsLive): Change[] {
  const [former, latter] = [writtenIn(before), writtenIn(after)];
  const keys = new Set([...former.keys(), ...latter.keys()]);
  return [...keys].flatMap((key) => {
    const [one, other] = [former.get(key), latter.get(key)];
    if (isDeepStrictEqual(one?.value, other?.value)) return [];
    const setting = (one ?? other)?.key;
    const live = setting === undefined ? isLiveOfRoutes(key as RouteKey) : isLiveHere(setting);
    const values = { former: one?.value ?? null, value: other?.value ?? null, origin: after.origin };
    return [describe(`${label}.${key}`, live, values)];
  });
}

/** Entries that are fine have names, each its own. */
function byName(entries: readonly Entry[]): Map<string, Entry> {
  return new Map(entries.map((entry) => [entry.name ?? entry.label, entry]));
}

interface Values {
  readonly former: SettingValue;
  readonly value: SettingValue;
  readonly origin: Origin;
}

function describe(key: string, live: boolean, { former, value, origin }: Values): Change {
  return { key, isLive: live, words: live ? `${key}: ${shown(former)} → ${shown(value)} (${origin})` : undefined };
}

function shown(value: SettingValue): string {
  if (value === null) return 'not set';
  if (Array.isArray(value)) return value.join(',') || 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
