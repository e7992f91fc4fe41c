/**
 * Resolves `routes` and `credentials` to complete settings, and checks them against each other. Without entries the top-level
 * settings are the only route and the only credential.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigProblem } from './problems.ts';
import type { ConfigEntries, ConfigEntry } from './entries.ts';
import { findEntryProblems, inheritSettings, type SettingsLevel } from './inheritance.ts';
import { findNearest } from './nearest.ts';
import type { SettingKey, Settings } from '../schema/schema.ts';
import { DEFAULT_NAME } from '../schema/schema-routes.ts';

export interface ResolvedCredential {
  readonly name: string;
  readonly settings: Settings;
}

/** One route with its complete settings; `auth` is that of its credential. */
export interface ResolvedRoute {
  readonly name: string;
  readonly pathPrefix: string;
  readonly stripPrefix: boolean;
  readonly methods: readonly string[];
  readonly credential: string;
  readonly throttleGroup: string;
  /** `throttle.maxInFlight` has an explicit value. */
  readonly isMaxInFlightGiven: boolean;
  readonly settings: Settings;
}

export interface ResolvedRoutes {
  /** The default route, if there is one, is the first. */
  readonly routes: readonly ResolvedRoute[];
  /** The credentials that a route uses. */
  readonly credentials: readonly ResolvedCredential[];
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly string[];
}

export function hasDefaultRoute(entries: ConfigEntries, given: ReadonlySet<SettingKey>): boolean {
  return entries.routes.length === 0 || given.has('upstream.baseUrl');
}

export function usesDefaultCredential(entries: ConfigEntries, given: ReadonlySet<SettingKey>): boolean {
  return hasDefaultRoute(entries, given) || entries.routes.some(({ own }) => own.get('credential') === DEFAULT_NAME);
}

const HEADERS_WITHOUT_API = 'found without upstream.baseUrl, whose API they belong to; give each route its own headers';

/** Never fails: invalid entries are resolved as far as possible, with their problems. */
export function resolveRoutes(top: SettingsLevel, entries: ConfigEntries): ResolvedRoutes {
  const problems: ConfigProblem[] = [];
  const credentials = new Map<string, ResolvedCredential>();
  const levels = new Map<string, SettingsLevel>([[DEFAULT_NAME, top]]);
  if (usesDefaultCredential(entries, top.given)) credentials.set(DEFAULT_NAME, { name: DEFAULT_NAME, ...top });
  const used = new Set(entries.routes.map(({ own }) => own.get('credential')));
  const warnings: string[] = [];
  for (const entry of entries.credentials) {
    const level = inheritSettings(top, entry);
    problems.push(...findEntryProblems(entry, level, (key) => key.startsWith('auth.')));
    if (entry.name === undefined || levels.has(entry.name)) continue;
    levels.set(entry.name, level);
    if (used.has(entry.name)) credentials.set(entry.name, { name: entry.name, settings: level.settings });
    else warnings.push(`${entry.label}: no route uses this credential, and no token is asked for with it`);
  }
  if (Object.keys(top.settings.upstream.headers).length > 0 && !hasDefaultRoute(entries, top.given))
    problems.push({ key: 'upstream.headers', message: HEADERS_WITHOUT_API });
  const routes = hasDefaultRoute(entries, top.given) ? [defaultRoute(top)] : [];
  for (const entry of entries.routes) {
    const level = inheritSettings(withAuthOf(levels.get(credentialNameOf(entry)) ?? top, top), entry);
    problems.push(...findEntryProblems(entry, level, (key) => !key.startsWith('auth.') && entry.names.has(key)));
    if (level.settings.upstream.baseUrl === null && !level.wrong.has('upstream.baseUrl'))
      problems.push(
        createEntryProblem(entry, 'baseUrl', 'required here or as upstream.baseUrl; the base URL of its API'),
      );
    routes.push(toResolvedRoute(entry, level));
    warnings.push(...findOtherOriginWarnings(entry, top.settings, level.settings));
  }
  problems.push(...findNameProblems(entries, top, [...levels.keys()]), ...findCacheFileProblems(entries, credentials));
  problems.push(...findGroupProblems(entries, routes));
  return { routes, credentials: [...credentials.values()], problems, warnings };
}

/** A route that sends the default token to a second origin is rarely intended. */
function findOtherOriginWarnings({ label, given }: ConfigEntry, top: Settings, { upstream }: Settings): string[] {
  const [usual, own] = [top.upstream.baseUrl, upstream.baseUrl];
  if (given.has('credential') || usual === null || own === null) return [];
  const { origin } = new URL(own);
  const words = `sends the token of the top-level auth to ${origin} as well; name its credential, default if that is meant`;
  return origin === new URL(usual).origin ? [] : [`${label}: ${words}`];
}

/** The top level with the `auth` of another credential. */
function withAuthOf(level: SettingsLevel, top: SettingsLevel): SettingsLevel {
  return { ...top, settings: { ...top.settings, auth: level.settings.auth } };
}

function credentialNameOf({ own }: ConfigEntry): string {
  const name = own.get('credential');
  return typeof name === 'string' ? name : DEFAULT_NAME;
}

function defaultRoute({ settings, given }: SettingsLevel): ResolvedRoute {
  return {
    name: DEFAULT_NAME,
    pathPrefix: '/',
    stripPrefix: false,
    methods: [],
    credential: DEFAULT_NAME,
    throttleGroup: DEFAULT_NAME,
    isMaxInFlightGiven: given.has('throttle.maxInFlight'),
    settings,
  };
}

function toResolvedRoute(entry: ConfigEntry, { settings, given }: SettingsLevel): ResolvedRoute {
  const { own, label } = entry;
  const name = entry.name ?? label;
  const group = own.get('throttle.group');
  return {
    name,
    pathPrefix: textOrUndefined(own.get('pathPrefix')) ?? label,
    stripPrefix: own.get('stripPrefix') === true,
    methods: own.get('methods') as readonly string[],
    credential: credentialNameOf(entry),
    throttleGroup: textOrUndefined(group) ?? name,
    isMaxInFlightGiven: given.has('throttle.maxInFlight') || entry.settings.has('throttle.maxInFlight'),
    settings,
  };
}

function textOrUndefined(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function createEntryProblem(entry: ConfigEntry, key: string, message: string): ConfigProblem {
  return { key: `${entry.label}.${key}`, message };
}

/** Names and prefixes must be unique, and the credentials that routes name must exist. */
function findNameProblems(entries: ConfigEntries, top: SettingsLevel, credentials: readonly string[]): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const checkUnique = (seen: Map<string, string>, entry: ConfigEntry, key: 'name' | 'pathPrefix'): void => {
    const value = textOrUndefined(entry.own.get(key));
    if (value === undefined) return;
    const other = seen.get(value);
    if (other !== undefined)
      problems.push(createEntryProblem(entry, key, `found ${JSON.stringify(value)}, as in ${other}`));
    else seen.set(value, `${entry.label}.${key}`);
  };
  const [routeNames, credentialNames] = [new Map<string, string>(), new Map<string, string>()];
  const prefixes = new Map<string, string>();
  if (hasDefaultRoute(entries, top.given)) prefixes.set('/', 'the route of the top-level upstream.baseUrl');
  for (const entry of entries.credentials) checkUnique(credentialNames, entry, 'name');
  for (const entry of entries.routes) {
    checkUnique(routeNames, entry, 'name');
    checkUnique(prefixes, entry, 'pathPrefix');
    const wanted = credentialNameOf(entry);
    if (credentials.includes(wanted)) continue;
    const meant = findNearest(wanted, credentials);
    const hint = meant === undefined ? `there are: ${credentials.slice(0, 10).join(', ')}` : `did you mean ${meant}?`;
    problems.push(
      createEntryProblem(entry, 'credential', `found ${JSON.stringify(wanted)}, which is not a credential; ${hint}`),
    );
  }
  return problems;
}

/** Two credentials with one file would overwrite each other's token. */
function findCacheFileProblems(
  { credentials: entries }: ConfigEntries,
  credentials: ReadonlyMap<string, ResolvedCredential>,
): ConfigProblem[] {
  const owners = new Map<string, string>();
  const own = credentials.get(DEFAULT_NAME)?.settings.auth.cacheFile ?? undefined;
  if (own !== undefined) owners.set(own, 'auth.cacheFile');
  return entries.flatMap((entry) => {
    const path = textOrUndefined(entry.settings.get('auth.cacheFile'));
    const other = path === undefined ? undefined : owners.get(path);
    if (path !== undefined) owners.set(path, `${entry.label}.cacheFile`);
    const message = `found ${JSON.stringify(path)}, as in ${other ?? ''}; expected a file for each credential`;
    return other === undefined ? [] : [createEntryProblem(entry, 'cacheFile', message)];
  });
}

/** Routes of one group share one throttle, so their throttle settings must be equal. */
function findGroupProblems({ routes: entries }: ConfigEntries, routes: readonly ResolvedRoute[]): ConfigProblem[] {
  const firsts = new Map<string, ResolvedRoute>();
  const byName = new Map(routes.map((route) => [route.name, route]));
  const offset = routes.length - entries.length;
  return routes.flatMap((route, at) => {
    const { throttleGroup: group } = route;
    const first = firsts.get(group);
    if (first === undefined) firsts.set(group, route);
    const entry = entries[at - offset];
    if (entry === undefined) return [];
    const namesake = byName.get(group);
    if (namesake !== undefined && namesake.throttleGroup !== group) {
      const elsewhere = `the route ${group} is in the group ${namesake.throttleGroup} itself: name that`;
      return [createEntryProblem(entry, 'throttle.group', `found ${JSON.stringify(group)}; ${elsewhere}`)];
    }
    const key = first === undefined ? undefined : findFirstDifference(first.settings, route.settings);
    if (key === undefined) return [];
    const message = `differs from that of the route ${first?.name ?? ''}, with which it shares the throttle ${group}`;
    return [createEntryProblem(entry, key, message)];
  });
}

function findFirstDifference(one: Settings, other: Settings): string | undefined {
  for (const section of ['throttle', 'queue'] as const) {
    const [a, b] = [one[section] as Record<string, unknown>, other[section] as Record<string, unknown>];
    const name = Object.keys(a).find((candidate) => !isDeepStrictEqual(a[candidate], b[candidate]));
    if (name !== undefined) return `${section}.${name}`;
  }
  return undefined;
}
