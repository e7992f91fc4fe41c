/**
 * Loads the configuration: reads and merges the sources, checks each setting by its format, then checks all settings against each
 * other and the files they name. Returns a frozen Config, or all problems together.
 */
import { readAmbientProxies } from './ambient-proxies.ts';
import { assembleConfig, type Config } from '../config.ts';
import type { ConfigProblem, RawValue } from './problems.ts';
import { readEntries, readTopLevel, type ConfigEntries, type ConfigEntry } from './entries.ts';
import type { SettingValue } from '../schema/formats/formats.ts';
import { readFlags, type FlagSetting } from './flags.ts';
import { resolveEntries } from './resolve.ts';
import { findReplicaWarnings, VALUE_AND_FILE_KEYS } from '../rules/rules.ts';
import { CONFIG_VARIABLE, SETTINGS, type SettingKey } from '../schema/schema.ts';
import { readConfigFile, readEnvironment, type ConfigSource } from './sources.ts';

export interface LoadOptions {
  /** The environment, usually process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Path of a YAML or JSON file; default: the one that SIDECAR_CONFIG names, if any. */
  readonly file?: string | undefined;
  /** Settings of the command line, in its order. Default: none. */
  readonly flags?: readonly FlagSetting[] | undefined;
  /** Settings that override file, environment and flags. */
  readonly preset?: Preset | undefined;
}

/** Settings fixed by a command, such as the sandbox's own upstream. */
export interface Preset {
  /** Shown as the origin of these values. */
  readonly name: string;
  /** null: the default. */
  readonly values: Readonly<Partial<Record<SettingKey, SettingValue>>>;
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: Config;
  /** Every setting of the top level with its origin, in the order of the schema. Contains secrets. */
  readonly effective: ConfigEntry['values'];
  readonly top: ConfigEntry;
  /** The own settings of `routes` and `credentials`. Contains secrets. */
  readonly entries: ConfigEntries;
  /** There is a configuration file, and it names no setting. */
  readonly isFileEmpty: boolean;
  readonly warnings: readonly string[];
}

export type LoadResult =
  | LoadedConfig
  | { readonly ok: false; readonly problems: readonly ConfigProblem[]; readonly warnings: readonly string[] };

export function hasConfigFile({ env, file }: LoadOptions): boolean {
  return file !== undefined || (env[CONFIG_VARIABLE] ?? '') !== '';
}

/** Loads the configuration: defaults < file < environment < flags < preset. Never throws. */
export function loadConfig(options: LoadOptions): LoadResult {
  const environment = readEnvironment(options.env);
  const warnings = [...environment.warnings];
  const file = readNamedFile(options);
  // Without the file every setting in it would seem missing: only this problem is reported.
  if ('message' in file) return { ok: false, problems: [file], warnings };
  const flags = readFlags(options.flags ?? []);
  // The same holds for a flag that cannot be used.
  if (flags.problems.length > 0) return { ok: false, problems: flags.problems, warnings };

  const fixed = Object.entries(options.preset?.values ?? {}) as [SettingKey, SettingValue][];
  const preset = new Map(fixed.map(([key, value]) => [key, { value, origin: options.preset?.name ?? '' }]));
  warnings.push(...findUnusedFlags(flags.given, preset));
  const own = mergeLayers([file.given, environment.given, flags.given, preset]);
  const ambient = readAmbientProxies(options.env, own);
  warnings.push(...ambient.warnings);
  const given = new Map([...ambient.given, ...own]);
  const [topProblems, entryProblems]: [ConfigProblem[], ConfigProblem[]] = [[], []];
  const top = readTopLevel(given, topProblems);
  const entries = readEntries(options.preset === undefined ? file.lists : new Map(), entryProblems);
  const resolved = resolveEntries(top, entries);
  warnings.push(...resolved.warnings, ...findReplicaWarnings(resolved.routes, options.env));
  const problems = [
    ...file.problems,
    ...environment.problems,
    ...sortProblems([...topProblems, ...resolved.topProblems]),
    ...entryProblems,
    ...resolved.problems,
  ];
  // A problem of an inherited setting is found once per entry.
  const different = new Map(problems.map((problem) => [JSON.stringify([problem.key, problem.message]), problem]));
  if (problems.length > 0) return { ok: false, problems: [...different.values()], warnings };
  const isFileEmpty = hasConfigFile(options) && file.given.size + file.lists.size === 0;
  return { ok: true, config: assembleConfig(resolved), effective: top.values, top, entries, isFileEmpty, warnings };
}

const NO_FILE: Pick<ConfigSource, 'given' | 'lists' | 'problems'> = {
  given: new Map(),
  lists: new Map(),
  problems: [],
};

/** The settings of the file; the problem when it cannot be read. */
function readNamedFile({ env, file: named }: LoadOptions): typeof NO_FILE | ConfigProblem {
  const [path, variable] = named === undefined ? [env[CONFIG_VARIABLE], CONFIG_VARIABLE] : [named, undefined];
  if (path === undefined || (path === '' && variable !== undefined)) return NO_FILE;
  const file = readConfigFile(path);
  if (typeof file !== 'string') return file;
  return { key: 'configuration file', variable, message: `${JSON.stringify(path)}: ${file}` };
}

type Layer = ReadonlyMap<SettingKey, RawValue>;

/** Later layers win. A value or its file replaces the pair of an earlier layer. */
function mergeLayers(layers: readonly Layer[]): Map<SettingKey, RawValue> {
  const merged = new Map<SettingKey, RawValue>();
  for (const layer of layers) {
    for (const pair of VALUE_AND_FILE_KEYS)
      if (pair.some((key) => layer.has(key))) for (const key of pair) merged.delete(key);
    for (const [key, raw] of layer) merged.set(key, raw);
  }
  return merged;
}

/** A variable may be meant for another command; a flag is meant for this one. */
function findUnusedFlags(flags: Layer, preset: Layer): string[] {
  return [...flags].flatMap(([key, { origin }]) => {
    const name = preset.get(key)?.origin;
    return name === undefined ? [] : [`${origin.replace(/^flag /, '')} is ignored: ${name} sets ${key} itself`];
  });
}

function sortProblems(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const order = [...SETTINGS.keys()] as string[];
  return problems.toSorted((a, b) => order.indexOf(a.key) - order.indexOf(b.key));
}
