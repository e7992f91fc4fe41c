/**
 * Reads the top level, and the lists `routes` and `credentials` of a file, into entries of one form, and checks the values of each.
 * resolve.ts adds the settings that an entry inherits, and checks the entries against each other.
 */
import { createSettingProblem, findValueFault, truncate } from './problems.ts';
import type { ConfigProblem, RawValue, ValueOrigin } from './problems.ts';
import type { SettingValue } from '../schema/formats/formats.ts';
import { SETTINGS, settingOf, type SettingKey } from '../schema/schema.ts';
import {
  DEFAULT_NAME,
  INHERITED_BY_CREDENTIALS,
  INHERITED_BY_ROUTES,
  ROUTE_SETTINGS,
  REFUSED_IN_ROUTES,
} from '../schema/schema-routes.ts';
import type { ListKey, RouteKey } from '../schema/schema-routes.ts';
import type { SettingDefinition, SettingTreeValues } from '../schema/setting.ts';
import { readSections } from './sections.ts';

export interface EffectiveSetting {
  readonly value: SettingValue;
  readonly origin: ValueOrigin;
}

/** The top level, or one entry of a list, with its own values. */
export interface ConfigEntry {
  /** The name in problems: `routes[1]`, `credentials.write`; empty for the top level. */
  readonly label: string;
  /** The valid values, by their top-level keys. The top level has all settings. */
  readonly values: ReadonlyMap<SettingKey, EffectiveSetting>;
  /** The settings with a value of the entry, whether it is valid or not. */
  readonly given: ReadonlySet<SettingKey | RouteKey>;
  readonly wrong: ReadonlySet<SettingKey>;
  /** Settings that only entries have; the default where missing or invalid. */
  readonly own: SettingTreeValues<typeof ROUTE_SETTINGS>;
  readonly origin: ValueOrigin;
  /** The names in problems of the settings that entries of this kind have. */
  readonly names: ReadonlyMap<SettingKey, string>;
}

export type ConfigEntries = Readonly<Record<ListKey, readonly ConfigEntry[]>>;

interface EntryKind {
  /** Key within the entry to the top-level setting of the same meaning. */
  readonly inherited: ReadonlyMap<string, SettingKey>;
  readonly own: readonly RouteKey[];
  readonly refused: ReadonlyMap<string, string>;
}

const TOP_LEVEL: EntryKind = {
  inherited: new Map([...SETTINGS.keys()].map((key) => [key, key])),
  own: [],
  refused: new Map(),
};
const KINDS: Readonly<Record<ListKey, EntryKind>> = {
  routes: {
    inherited: INHERITED_BY_ROUTES,
    own: Object.keys(ROUTE_SETTINGS) as RouteKey[],
    refused: REFUSED_IN_ROUTES,
  },
  credentials: { inherited: INHERITED_BY_CREDENTIALS, own: ['name'], refused: new Map() },
};

/** The entry `default` of both lists. A value of null is the default. */
export function readTopLevel(found: ReadonlyMap<SettingKey, RawValue>, problems: ConfigProblem[]): ConfigEntry {
  const given = new Map([...found].filter(([, { value }]) => value !== null));
  const entry = checkEntry({ label: '', found: given, origin: '' }, TOP_LEVEL, problems);
  const values = [...SETTINGS].map(([key, setting]): [SettingKey, EffectiveSetting] => {
    const value = entry.values.get(key)?.value ?? setting.default;
    return [key, { value, origin: found.get(key)?.origin ?? 'default' }];
  });
  const own = { ...entry.own, name: DEFAULT_NAME, pathPrefix: '/' };
  return { ...entry, own, values: new Map(values), names: new Map() };
}

/** Never fails. */
export function readEntries(lists: ReadonlyMap<ListKey, RawValue>, problems: ConfigProblem[]): ConfigEntries {
  const readAll = (list: ListKey): ConfigEntry[] => {
    const given = lists.get(list);
    if (given === undefined) return [];
    const { value, origin } = given;
    const kind = KINDS[list];
    const options = {
      path: origin.replace(/^file /, ''),
      keys: [...kind.own, ...kind.inherited.keys()],
      refused: kind.refused,
    };
    return splitIntoSections(list, value, problems).map(({ label, tree }) => {
      const reading = readSections(tree, { ...options, prefix: `${label}.` });
      problems.push(...reading.problems);
      const found = new Map([...reading.values].map(([local, raw]) => [local, { value: raw, origin }]));
      return checkEntry({ label, found, origin }, kind, problems);
    });
  };
  return { routes: readAll('routes'), credentials: readAll('credentials') };
}

/** Accepts a list of sections; for credentials also one section per name. */
function splitIntoSections(list: ListKey, value: unknown, problems: ConfigProblem[]) {
  const refuse = (key: string, message: string): [] => {
    problems.push({ key, message });
    return [];
  };
  if (value instanceof Map && list === 'credentials')
    return [...(value as Map<unknown, unknown>)].flatMap(([name, tree]) => {
      const label = `${list}.${truncate(String(name))}`;
      const section = tree ?? new Map<unknown, unknown>();
      if (!(section instanceof Map)) return refuse(label, NO_SECTION);
      if (section.has('name')) return refuse(`${label}.name`, 'has its name before the colon; leave this out');
      return { label, tree: new Map<unknown, unknown>([...section, ['name', String(name)]]) };
    });
  const byName = list === 'credentials' ? ', or one section for each name' : '';
  if (!Array.isArray(value)) return refuse(list, `expected a list of sections such as "- name: quotes"${byName}`);
  return value.flatMap((tree: unknown, at) => {
    const label = `${list}[${String(at)}]`;
    return tree instanceof Map ? { label, tree } : refuse(label, NO_SECTION);
  });
}

const NO_SECTION = 'expected a section with keys in it';

type FoundEntry = Pick<ConfigEntry, 'label' | 'origin'> & { readonly found: ReadonlyMap<string, RawValue> };

/** An invalid value, or a missing one that is required, is a problem. */
function checkEntry({ label, found, origin }: FoundEntry, kind: EntryKind, problems: ConfigProblem[]): ConfigEntry {
  const isTop = label === '';
  const refuse = (local: string, message: string) =>
    problems.push(isTop ? createSettingProblem(local as SettingKey, message) : { key: `${label}.${local}`, message });
  const own = kind.own.map((key) => [key, readOwnValue(key, found.get(key), (message) => refuse(key, message))]);
  const values = new Map<SettingKey, EffectiveSetting>();
  const wrong = new Set<SettingKey>();
  for (const [local, key] of kind.inherited) {
    const given = found.get(local);
    if (given === undefined) continue;
    const setting = settingOf(key);
    const raw = isTop ? given : convertFromFile(setting, given);
    const fault = findValueFault(setting, raw, isTop ? setting.env : undefined);
    if (fault === undefined) values.set(key, raw as EffectiveSetting);
    else {
      wrong.add(key);
      refuse(local, fault);
    }
  }
  return {
    label,
    values,
    wrong,
    own: { ...OWN_DEFAULTS, ...Object.fromEntries(own) } as ConfigEntry['own'],
    given: new Set([...found.keys()].map((local) => kind.inherited.get(local) ?? (local as RouteKey))),
    origin,
    names: new Map([...kind.inherited].map(([local, key]) => [key, `${label}.${local}`])),
  };
}

const OWN_DEFAULTS = Object.fromEntries(Object.entries(ROUTE_SETTINGS).map(([key, setting]) => [key, setting.default]));

/** The default when missing or invalid. */
function readOwnValue(key: RouteKey, given: RawValue | undefined, refuse: (message: string) => void): SettingValue {
  const setting: SettingDefinition = ROUTE_SETTINGS[key];
  if (given === undefined) {
    if (setting.required !== undefined) refuse(`required; ${setting.required}`);
    return setting.default;
  }
  const raw = convertFromFile(setting, given);
  const isReserved = key === 'name' && raw.value === DEFAULT_NAME;
  const fault = isReserved ? 'found default, which names the top-level settings' : findValueFault(setting, raw);
  if (fault !== undefined) refuse(fault);
  return fault === undefined ? (raw.value as SettingValue) : setting.default;
}

function convertFromFile({ format }: SettingDefinition, { value, origin }: RawValue): RawValue {
  return { value: format.fromFile(value), origin };
}

export interface EntryValue extends EffectiveSetting {
  /** The top-level setting of the same meaning; undefined when only entries have it. */
  readonly key: SettingKey | undefined;
}

/** The values of an entry, by the key within the entry, in the order of the reference. */
export function listEntryValues({ label, own, values, names, origin }: ConfigEntry): Map<string, EntryValue> {
  const listed = new Map<string, EntryValue>();
  if (label !== '')
    for (const [key, value] of Object.entries(own))
      if (value !== ROUTE_SETTINGS[key as RouteKey].default) listed.set(key, { key: undefined, value, origin });
  for (const [key, setting] of values) listed.set(names.get(key)?.slice(label.length + 1) ?? key, { key, ...setting });
  return listed;
}
