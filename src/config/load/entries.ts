/**
 * Reads the lists `routes` and `credentials` of a file into entries, and checks each entry's own settings. inheritance.ts adds the
 * settings of the top level; routes.ts checks the entries against each other.
 */
import { checkValue } from './check-value.ts';
import { truncate, type ConfigProblem } from './problems.ts';
import type { SettingValue } from '../schema/formats/formats.ts';
import { settingOf, type SettingKey } from '../schema/schema.ts';
import {
  DEFAULT_NAME,
  INHERITED_BY_CREDENTIALS,
  INHERITED_BY_ROUTES,
  ROUTE_SETTINGS,
  REFUSED_IN_ROUTES,
} from '../schema/schema-routes.ts';
import type { ListKey, RouteKey } from '../schema/schema-routes.ts';
import type { SettingDefinition } from '../schema/setting.ts';
import { readSections } from './sections.ts';
import type { RawValue } from './sources.ts';

/** One entry with its own valid settings. */
export interface ConfigEntry {
  /** Its name in problems: `routes[1]`, `credentials.write`. */
  readonly label: string;
  /** Undefined when missing or invalid, which is a problem of its own. */
  readonly name: string | undefined;
  /** Its settings, by their top-level keys. */
  readonly settings: ReadonlyMap<SettingKey, SettingValue>;
  /** Its settings with an invalid value. */
  readonly wrong: ReadonlySet<SettingKey>;
  /** Settings that only entries have; the default where missing or invalid. */
  readonly own: ReadonlyMap<RouteKey, SettingValue>;
  /** The keys of `own` that the entry contains. */
  readonly given: ReadonlySet<RouteKey>;
  readonly origin: string;
  /** The names in problems of the settings that entries of this kind have. */
  readonly names: ReadonlyMap<SettingKey, string>;
}

export interface ConfigEntries {
  readonly routes: readonly ConfigEntry[];
  readonly credentials: readonly ConfigEntry[];
  readonly problems: readonly ConfigProblem[];
}

/** Never fails. */
export function readEntries(lists: ReadonlyMap<ListKey, RawValue>): ConfigEntries {
  const problems: ConfigProblem[] = [];
  const readAll = (list: ListKey, kind: EntryKind): ConfigEntry[] => {
    const given = lists.get(list);
    if (given === undefined) return [];
    return splitIntoSections(list, given.value, problems).map((part) => readEntry(part, given.origin, kind, problems));
  };
  return { routes: readAll('routes', ROUTE_KIND), credentials: readAll('credentials', CREDENTIAL_KIND), problems };
}

interface EntrySection {
  readonly label: string;
  readonly tree: ReadonlyMap<unknown, unknown>;
}

/** Accepts a list of sections; for credentials also one section per name. */
function splitIntoSections(list: ListKey, value: unknown, problems: ConfigProblem[]): EntrySection[] {
  const isByName = value instanceof Map && list === 'credentials';
  const found: [label: string, name: string | undefined, tree: unknown][] = isByName
    ? [...(value as Map<unknown, unknown>)].map(([name, tree]) => [
        `${list}.${truncate(String(name))}`,
        String(name),
        tree,
      ])
    : Array.isArray(value)
      ? value.map((tree: unknown, at) => [`${list}[${String(at)}]`, undefined, tree])
      : [];
  const expected = `a list of sections such as "- name: quotes"${list === 'credentials' ? ', or one section for each name' : ''}`;
  if (!isByName && !Array.isArray(value)) problems.push({ key: list, message: `expected ${expected}` });
  return found.flatMap(([label, name, tree]) => {
    const section = tree === null && name !== undefined ? new Map<unknown, unknown>() : tree;
    if (section instanceof Map && !(name !== undefined && section.has('name')))
      return [{ label, tree: name === undefined ? section : new Map([...section, ['name', name]]) }];
    const message =
      section instanceof Map ? 'has its name before the colon; leave this out' : 'expected a section with keys in it';
    problems.push({ key: section instanceof Map ? `${label}.name` : label, message });
    return [];
  });
}

interface EntryKind {
  /** Key within the entry to the top-level setting of the same meaning. */
  readonly inherited: ReadonlyMap<string, SettingKey>;
  readonly own: readonly RouteKey[];
  readonly refused: ReadonlyMap<string, string>;
}

const ROUTE_KIND: EntryKind = {
  inherited: INHERITED_BY_ROUTES,
  own: Object.keys(ROUTE_SETTINGS) as RouteKey[],
  refused: REFUSED_IN_ROUTES,
};
const CREDENTIAL_KIND: EntryKind = { inherited: INHERITED_BY_CREDENTIALS, own: ['name'], refused: new Map() };

/** The values in an entry, by the key within the entry, in the order of the reference. */
export function listEntryValues({ own, settings, label, names }: ConfigEntry): Map<string, EntryValue> {
  const written = new Map<string, EntryValue>();
  for (const [key, value] of own)
    if (value !== ROUTE_SETTINGS[key].default) written.set(key, { key: undefined, value });
  for (const [key, value] of settings) written.set((names.get(key) ?? key).slice(label.length + 1), { key, value });
  return written;
}

export interface EntryValue {
  /** The top-level setting of the same meaning; undefined when only entries have it. */
  readonly key: SettingKey | undefined;
  readonly value: SettingValue;
}

type AddProblem = (key: string, message: string) => void;

function readEntry(
  { label, tree }: EntrySection,
  origin: string,
  kind: EntryKind,
  problems: ConfigProblem[],
): ConfigEntry {
  const path = origin.replace(/^file /, '');
  const keys = [...kind.own, ...kind.inherited.keys()];
  const reading = readSections(tree, { path, prefix: `${label}.`, keys, refused: kind.refused });
  problems.push(...reading.problems);
  const refuse: AddProblem = (key, message) => problems.push({ key: `${label}.${key}`, message });
  const find = (key: string): RawValue | undefined =>
    reading.values.has(key) ? { value: reading.values.get(key), origin } : undefined;
  const own = new Map(kind.own.map((key) => [key, readOwnValue(key, find(key), refuse)]));
  const names = new Map([...kind.inherited].map(([local, key]) => [key, `${label}.${local}`]));
  const name = own.get('name');
  return {
    label,
    name: typeof name === 'string' ? name : undefined,
    ...readInherited(kind, find, refuse),
    own,
    given: new Set(kind.own.filter((key) => reading.values.has(key))),
    origin,
    names,
  };
}

function readInherited(
  kind: EntryKind,
  find: (key: string) => RawValue | undefined,
  refuse: AddProblem,
): Pick<ConfigEntry, 'settings' | 'wrong'> {
  const settings = new Map<SettingKey, SettingValue>();
  const wrong = new Set<SettingKey>();
  for (const [local, key] of kind.inherited) {
    const found = find(local);
    if (found === undefined) continue;
    const checked = checkFromFile(settingOf(key), found);
    if (checked.ok) settings.set(key, checked.value);
    else {
      wrong.add(key);
      refuse(local, checked.message);
    }
  }
  return { settings, wrong };
}

/** The default when missing or invalid; an invalid value is a problem. */
function readOwnValue(key: RouteKey, found: RawValue | undefined, refuse: AddProblem): SettingValue {
  const setting: SettingDefinition = ROUTE_SETTINGS[key];
  if (found === undefined) {
    if (setting.required !== undefined) refuse(key, `required; ${setting.required}`);
    return setting.default;
  }
  const checked = checkFromFile(setting, found);
  if (checked.ok && !(key === 'name' && checked.value === DEFAULT_NAME)) return checked.value;
  refuse(key, checked.ok ? 'found default, which names the top-level settings' : checked.message);
  return setting.default;
}

function checkFromFile(setting: SettingDefinition, found: RawValue) {
  return checkValue({ ...setting, env: undefined }, { ...found, value: setting.format.fromFile(found.value) });
}
