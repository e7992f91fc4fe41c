/**
 * Completes each entry with the settings that it inherits, and checks the entries by themselves and against each other. Settings that
 * belong together are inherited together or not at all, so that the secret of one client never goes to the server of another.
 */
import { isDeepStrictEqual } from 'node:util';
import { createSettingProblem, formatSettingName, type ConfigProblem, type SettingProblem } from './problems.ts';
import type { ConfigEntries, ConfigEntry } from './entries.ts';
import { findFileProblems } from './named-files.ts';
import { findNearest } from './nearest.ts';
import { findBrokenRules } from '../rules/rules.ts';
import type { SettingValue } from '../schema/formats/formats.ts';
import { completeSettings, SETTINGS, settingOf, type SettingKey, type Settings } from '../schema/schema.ts';
import {
  DEFAULT_NAME,
  INHERITED_TOGETHER,
  INHERITED_WITH_OWN_SERVER,
  NEVER_INHERITED,
} from '../schema/schema-routes.ts';

/** An entry with its own and its inherited settings. */
export interface ResolvedEntry {
  readonly entry: ConfigEntry;
  readonly settings: Settings;
  /** The entry that gives a setting: this one, or the top level; none for a default. */
  readonly givenBy: ReadonlyMap<SettingKey, ConfigEntry>;
  /** The valid values, without defaults. */
  readonly values: ReadonlyMap<SettingKey, SettingValue>;
}

export interface ResolvedEntries {
  readonly top: ResolvedEntry;
  /** The top level, if it is a route, is the first. */
  readonly routes: readonly ResolvedEntry[];
  /** The credentials that a route uses. */
  readonly credentials: readonly ResolvedEntry[];
  /** By the settings of the top level itself. */
  readonly topProblems: readonly ConfigProblem[];
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly string[];
}

/** Their values are secrets of the API of the top level. */
const SECRETS_OF_API = ['headers', 'query'] as const;

/** Never fails: invalid entries are resolved as far as possible, with their problems. */
export function resolveEntries(topEntry: ConfigEntry, entries: ConfigEntries): ResolvedEntries {
  const top = inheritSettings(undefined, topEntry);
  const isRoute = entries.routes.length === 0 || topEntry.given.has('upstream.baseUrl');
  const routeEntries = isRoute ? [topEntry, ...entries.routes] : entries.routes;
  const used = new Set(routeEntries.map(({ own }) => own.credential));
  const isCredential = used.has(DEFAULT_NAME);
  const topProblems = findEntryProblems(top, (key) => isCredential || !key.startsWith('auth.'));
  if (isRoute && !topEntry.given.has('upstream.baseUrl'))
    topProblems.push(
      createSettingProblem('upstream.baseUrl', `required; ${settingOf('upstream.baseUrl').required ?? ''}`),
    );

  const [problems, warnings]: [ConfigProblem[], string[]] = [[], []];
  const credentials = new Map([[DEFAULT_NAME, top]]);
  for (const entry of entries.credentials) {
    const credential = inheritSettings(top, entry);
    problems.push(...findEntryProblems(credential, (key) => key.startsWith('auth.')));
    const { name } = entry.own;
    if (name === null || credentials.has(name)) continue;
    credentials.set(name, credential);
    if (!used.has(name))
      warnings.push(`${entry.label}: no route uses this credential, and no token is asked for with it`);
  }
  for (const name of isRoute ? [] : SECRETS_OF_API)
    if (Object.keys(top.settings.upstream[name]).length > 0)
      problems.push({
        key: `upstream.${name}`,
        message: `found without upstream.baseUrl, whose API they belong to; give each route its own ${name}`,
      });
  const routes = routeEntries.map((entry) => (entry === topEntry ? top : inheritSettings(top, entry)));
  for (const route of routes.filter((one) => one !== top)) {
    problems.push(...findEntryProblems(route, (key) => route.entry.names.has(key)), ...findMissingUrl(route));
    warnings.push(...findOtherOriginWarnings(route, top));
  }
  problems.push(...findNameProblems(routeEntries, entries.credentials, [...credentials.keys()]));
  problems.push(...findCacheFileProblems(entries.credentials, isCredential ? top.settings.auth.cacheFile : null));
  problems.push(...findGroupProblems(routes));
  problems.push(...[...credentials].flatMap((named) => findMissingTokenFile(named, routes)));
  const usedCredentials = [...credentials].flatMap(([name, credential]) => (used.has(name) ? credential : []));
  return { top, routes, credentials: usedCredentials, topProblems, problems, warnings };
}

/** @param top undefined for the top level itself */
function inheritSettings(top: ResolvedEntry | undefined, entry: ConfigEntry): ResolvedEntry {
  const isKept = ([key]: readonly [SettingKey, unknown]): boolean => top === undefined || isInherited(key, entry, top);
  const values = new Map([...(top?.values ?? [])].filter(isKept));
  const givenBy = new Map([...(top?.givenBy ?? [])].filter(isKept));
  for (const key of SETTINGS.keys()) {
    if (!entry.given.has(key)) continue;
    givenBy.set(key, entry);
    if (!entry.wrong.has(key)) values.set(key, entry.values.get(key)?.value ?? null);
  }
  return { entry, values, givenBy, settings: completeSettings(values) };
}

/** Also true for settings that the entry then overrides. */
function isInherited(key: SettingKey, entry: ConfigEntry, top: ResolvedEntry): boolean {
  if (entry.given.has(key)) return true;
  // Another API may carry out a repeated call twice, key or no key.
  if (key === 'retry.idempotencyKey.header' || SECRETS_OF_API.some((name) => key === `upstream.${name}`))
    return !isOtherOrigin(entry, top);
  const isCredential = entry.label.startsWith('credentials');
  const hasOwnServer = entry.given.has('auth.url') || entry.given.has('auth.issuer');
  if (isCredential && hasOwnServer && key.startsWith('auth.')) return INHERITED_WITH_OWN_SERVER.includes(key);
  if (isCredential && NEVER_INHERITED.includes(key)) return false;
  return !INHERITED_TOGETHER.some((group) => group.includes(key) && group.some((other) => entry.given.has(other)));
}

function isOtherOrigin({ given, values }: ConfigEntry, { settings }: ResolvedEntry): boolean {
  const own = values.get('upstream.baseUrl')?.value;
  const [a, b] = [own, settings.upstream.baseUrl].map((url) => typeof url === 'string' && new URL(url).origin);
  return given.has('upstream.baseUrl') && a !== b;
}

/**
 * The broken rules and the unusable files, named by the keys of the entry; inherited settings keep their top-level names.
 * @param appliesTo whether the rules of a key apply to the entry
 */
function findEntryProblems(resolved: ResolvedEntry, appliesTo: (key: SettingKey) => boolean): ConfigProblem[] {
  const { entry, settings, givenBy } = resolved;
  const wrong = new Set([...givenBy].flatMap(([key, owner]) => (owner.wrong.has(key) ? key : [])));
  const found: SettingProblem[] = [
    ...findBrokenRules(settings, wrong, appliesTo),
    ...findFileProblems(settings, (key) => entry.values.has(key)),
  ];
  return nameSettings(resolved, found);
}

function nameSettings({ entry, givenBy }: ResolvedEntry, found: readonly SettingProblem[]): ConfigProblem[] {
  const nameOf = (key: SettingKey): string | undefined =>
    (givenBy.get(key) ?? entry) === entry ? entry.names.get(key) : undefined;
  return found.map((problem) => {
    let { message } = problem;
    for (const key of SETTINGS.keys()) {
      const name = nameOf(key);
      if (name !== undefined) message = message.replaceAll(formatSettingName(key), name);
    }
    const key = nameOf(problem.key);
    return key === undefined ? { ...problem, message } : { key, message };
  });
}

function findMissingUrl({ entry, settings, givenBy }: ResolvedEntry): ConfigProblem[] {
  return settings.upstream.baseUrl === null && !givenBy.has('upstream.baseUrl')
    ? [createEntryProblem(entry, 'baseUrl', 'required here or as upstream.baseUrl; the base URL of its API')]
    : [];
}

/** Whether the query of its routes has the only key. */
export function lacksTokenFile({ settings: { auth } }: ResolvedEntry): boolean {
  return auth.method === 'static' && auth.tokenFile === null;
}

/** The first file among a route's query parameters, which is read in place of a token file. */
export function findKeyFile({ settings: { upstream } }: ResolvedEntry): string | undefined {
  return Object.values(upstream.query).find((value) => typeof value === 'object')?.file;
}

function findMissingTokenFile(
  [name, credential]: readonly [name: string, credential: ResolvedEntry],
  routes: readonly ResolvedEntry[],
): ConfigProblem[] {
  const users = routes.filter(({ entry }) => entry.own.credential === name);
  const isGiven = !lacksTokenFile(credential) || credential.givenBy.has('auth.tokenFile');
  if (isGiven || users.every(findKeyFile)) return [];
  const message = `required by ${formatSettingName('auth.method')} static; the file of the token, unless upstream.query has the key in a file`;
  return nameSettings(credential, [createSettingProblem('auth.tokenFile', message)]);
}

/** A route that sends the default token to a second origin is rarely intended. */
function findOtherOriginWarnings({ entry, settings }: ResolvedEntry, top: ResolvedEntry): string[] {
  const [usual, own] = [top.settings.upstream.baseUrl, settings.upstream.baseUrl];
  if (entry.given.has('credential') || usual === null || own === null) return [];
  const { origin } = new URL(own);
  const words = `sends the token of the top-level auth to ${origin} as well; name its credential, default if that is meant`;
  return origin === new URL(usual).origin ? [] : [`${entry.label}: ${words}`];
}

function createEntryProblem({ label }: ConfigEntry, key: string, message: string): ConfigProblem {
  return { key: `${label}.${key}`, message };
}

/** Names, and prefixes with each of their methods, must be unique, and the credentials that routes name must exist. */
function findNameProblems(
  routes: readonly ConfigEntry[],
  credentials: readonly ConfigEntry[],
  known: readonly string[],
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const checkUnique = (
    seen: Map<string, string>,
    entry: ConfigEntry,
    key: 'name' | 'pathPrefix',
    value = entry.own[key],
  ): void => {
    if (value === null) return;
    const other = seen.get(value);
    if (other !== undefined)
      problems.push(createEntryProblem(entry, key, `found ${JSON.stringify(value)}, as in ${other}`));
    else seen.set(value, entry.label === '' ? 'the route of the top-level upstream.baseUrl' : `${entry.label}.${key}`);
  };
  const [routeNames, credentialNames] = [new Map<string, string>(), new Map<string, string>()];
  const prefixes = new Map<string, string>();
  for (const entry of credentials) checkUnique(credentialNames, entry, 'name');
  for (const entry of routes) {
    checkUnique(routeNames, entry, 'name');
    const { pathPrefix, methods } = entry.own;
    if (methods.length === 0) checkUnique(prefixes, entry, 'pathPrefix');
    for (const method of new Set(methods))
      checkUnique(prefixes, entry, 'pathPrefix', pathPrefix && `${method} ${pathPrefix}`);
    const wanted = entry.own.credential;
    if (known.includes(wanted)) continue;
    const meant = findNearest(wanted, known);
    const hint = meant === undefined ? `there are: ${known.slice(0, 10).join(', ')}` : `did you mean ${meant}?`;
    const message = `found ${JSON.stringify(wanted)}, which is not a credential; ${hint}`;
    problems.push(createEntryProblem(entry, 'credential', message));
  }
  return problems;
}

/** Two credentials with one file would overwrite each other's token. */
function findCacheFileProblems(credentials: readonly ConfigEntry[], topFile: string | null): ConfigProblem[] {
  const owners = new Map<SettingValue, string>();
  if (topFile !== null) owners.set(topFile, 'auth.cacheFile');
  return credentials.flatMap((entry) => {
    const path = entry.values.get('auth.cacheFile')?.value;
    if (path === undefined) return [];
    const other = owners.get(path);
    owners.set(path, `${entry.label}.cacheFile`);
    const message = `found ${JSON.stringify(path)}, as in ${other ?? ''}; expected a file for each credential`;
    return other === undefined ? [] : [createEntryProblem(entry, 'cacheFile', message)];
  });
}

/** The name of a route, or what stands for it where it is invalid. */
function nameOf({ own, label }: ConfigEntry): string {
  return own.name ?? label;
}

/** The name of the throttle of a route. */
export function throttleGroupOf(entry: ConfigEntry): string {
  return entry.own['throttle.group'] ?? nameOf(entry);
}

/** Routes of one group share one throttle, so their throttle settings must be equal. */
function findGroupProblems(routes: readonly ResolvedEntry[]): ConfigProblem[] {
  const firsts = new Map<string, ResolvedEntry>();
  const byName = new Map(routes.map(({ entry }) => [nameOf(entry), throttleGroupOf(entry)]));
  return routes.flatMap((route) => {
    const { entry, settings } = route;
    const group = throttleGroupOf(entry);
    const first = firsts.get(group);
    if (first === undefined) firsts.set(group, route);
    if (entry.label === '') return [];
    const groupOfNamesake = byName.get(group);
    if (groupOfNamesake !== undefined && groupOfNamesake !== group) {
      const elsewhere = `the route ${group} is in the group ${groupOfNamesake} itself: name that`;
      return [createEntryProblem(entry, 'throttle.group', `found ${JSON.stringify(group)}; ${elsewhere}`)];
    }
    const key = first && findFirstDifference(first.settings, settings);
    if (first === undefined || key === undefined) return [];
    const message = `differs from that of the route ${nameOf(first.entry)}, with which it shares the throttle ${group}`;
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
