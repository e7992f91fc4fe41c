/**
 * Loads the configuration: reads and merges the sources, checks each setting by its format, then checks all settings against each
 * other and the files they name. Returns a frozen Config, or all problems together.
 */
import { readAmbientProxies } from './ambient-proxies.ts';
import { assembleConfig, type Config } from '../config.ts';
import { checkValue } from './check-value.ts';
import { createSettingProblem, type ConfigProblem, type SettingProblem, type ValueOrigin } from './problems.ts';
import { readEntries, type ConfigEntries } from './entries.ts';
import type { SettingValue } from '../schema/formats/formats.ts';
import { readFlags, type FlagSetting } from './flags.ts';
import type { SettingsLevel } from './inheritance.ts';
import { findFileProblems } from './named-files.ts';
import { findReplicaWarnings } from './replica-warnings.ts';
import { hasDefaultRoute, resolveRoutes, usesDefaultCredential } from './routes.ts';
import { VALUE_AND_FILE_KEYS, findBrokenRules } from '../rules/rules.ts';
import { CONFIG_VARIABLE, SETTINGS, completeSettings, type SettingKey } from '../schema/schema.ts';
import { readConfigFile, readEnvironment, type ConfigSource, type RawValue } from './sources.ts';

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

export interface EffectiveSetting {
  readonly value: SettingValue;
  readonly origin: ValueOrigin;
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: Config;
  /** Every setting with its origin, in the order of the schema. Contains secrets. */
  readonly effective: ReadonlyMap<SettingKey, EffectiveSetting>;
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

  const preset = listPresetValues(options.preset);
  warnings.push(...findUnusedFlags(flags.given, preset));
  const own = mergeLayers([file.given, environment.given, flags.given, preset]);
  const ambient = readAmbientProxies(options.env, own);
  warnings.push(...ambient.warnings);
  const given = new Map([...ambient.given, ...own]);
  const entries = readEntries(options.preset === undefined ? file.lists : new Map());
  const top = checkTopLevel(given, entries);
  const resolved = resolveRoutes(top, entries);
  warnings.push(...resolved.warnings, ...findReplicaWarnings(resolved.routes, options.env));
  const problems = [
    ...file.problems,
    ...environment.problems,
    ...sortProblems(top.problems),
    ...entries.problems,
    ...resolved.problems,
  ];
  if (problems.length > 0) return { ok: false, problems: removeDuplicates(problems), warnings };
  const effective = listEffectiveSettings(top.values, given);
  const isFileEmpty = hasConfigFile(options) && file.given.size + file.lists.size === 0;
  return { ok: true, config: assembleConfig(top.settings, resolved), effective, entries, isFileEmpty, warnings };
}

interface CheckedTopLevel extends SettingsLevel {
  readonly values: ReadonlyMap<SettingKey, SettingValue>;
  readonly problems: readonly ConfigProblem[];
}

/** Checks the top-level settings. Settings that only entries need are not required here. */
function checkTopLevel(given: ReadonlyMap<SettingKey, RawValue>, entries: ConfigEntries): CheckedTopLevel {
  const names = new Set([...given].filter(([, { value }]) => value !== null).map(([key]) => key));
  const { values, problems } = checkValues(
    given,
    (key) => key !== 'upstream.baseUrl' || hasDefaultRoute(entries, names),
  );
  const wrong = new Set(problems.map(({ key }) => key));
  const settings = completeSettings(values);
  const appliesTo = (key: SettingKey): boolean => !key.startsWith('auth.') || usesDefaultCredential(entries, names);
  const found = [...problems, ...findBrokenRules(settings, wrong, appliesTo), ...findFileProblems(settings)];
  return { settings, given: names, wrong, values, problems: found };
}

/** A problem of an inherited setting is found once per entry. */
function removeDuplicates(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return [...new Map(problems.map((problem) => [JSON.stringify([problem.key, problem.message]), problem])).values()];
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
  if (file.kind === 'read') return file.value;
  return { key: 'configuration file', variable, message: `${JSON.stringify(path)}: ${file.fault}` };
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

function listPresetValues(preset: Preset | undefined): Layer {
  if (preset === undefined) return new Map();
  const entries = Object.entries(preset.values) as [SettingKey, SettingValue][];
  return new Map(entries.map(([key, value]) => [key, { value, origin: preset.name }]));
}

/** A variable may be meant for another command; a flag is meant for this one. */
function findUnusedFlags(flags: Layer, preset: Layer): string[] {
  return [...flags].flatMap(([key, { origin }]) => {
    const fixed = preset.get(key);
    return fixed === undefined
      ? []
      : [`${origin.replace(/^flag /, '')} is ignored: ${fixed.origin} sets ${key} itself`];
  });
}

interface CheckedValues {
  readonly values: ReadonlyMap<SettingKey, SettingValue>;
  readonly problems: readonly SettingProblem[];
}

/**
 * Checks each value with its setting's format; a value that is invalid or missing is a problem.
 * @param isNeeded whether a required setting must have a value
 */
function checkValues(given: ReadonlyMap<SettingKey, RawValue>, isNeeded: (key: SettingKey) => boolean): CheckedValues {
  const values = new Map<SettingKey, SettingValue>();
  const problems: SettingProblem[] = [];
  for (const [key, setting] of SETTINGS) {
    const found = given.get(key);
    if (found === undefined || found.value === null) {
      if (setting.required !== undefined && isNeeded(key))
        problems.push(createSettingProblem(key, `required; ${setting.required}`));
      continue;
    }
    const checked = checkValue(setting, found);
    if (checked.ok) values.set(key, checked.value);
    else problems.push(createSettingProblem(key, checked.message));
  }
  return { values, problems };
}

function sortProblems(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const order = [...SETTINGS.keys()] as string[];
  return problems.toSorted((a, b) => order.indexOf(a.key) - order.indexOf(b.key));
}

function listEffectiveSettings(
  values: ReadonlyMap<SettingKey, SettingValue>,
  given: ReadonlyMap<SettingKey, RawValue>,
): Map<SettingKey, EffectiveSetting> {
  return new Map(
    [...SETTINGS].map(([key, setting]) => [
      key,
      { value: values.get(key) ?? setting.default, origin: given.get(key)?.origin ?? 'default' },
    ]),
  );
}
