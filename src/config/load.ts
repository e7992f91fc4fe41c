/**
 * The story of loading: sources are read and merged, each setting is checked by its format, then all against each
 * other and the files they name; either a frozen Config comes out, or every problem at once. Nothing is thrown or logged.
 */
import { assembleConfig } from './assemble.ts';
import type { Config, ConfigProblem } from './config.ts';
import { warnOfExposedSecrets } from './exposed-secrets.ts';
import type { SettingValue } from './formats.ts';
import { findFileProblems } from './named-files.ts';
import { describeFound, problemOf } from './problems.ts';
import type { Origin } from './problems.ts';
import { FILE_TWINS, findBrokenRules } from './rules.ts';
import { CONFIG_VARIABLE, SETTINGS, completeSettings } from './schema.ts';
import type { SettingKey } from './schema.ts';
import type { Setting } from './setting.ts';
import { readConfigFile, readEnvironment } from './sources.ts';
import type { FileReading, Given } from './sources.ts';

export interface LoadOptions {
  /** The environment, usually process.env. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Path of a YAML or JSON file; default: the one that SIDECAR_CONFIG names, if any. */
  readonly file?: string | undefined;
  /** Settings that win over file and environment. */
  readonly preset?: Preset | undefined;
}

/** Settings fixed by a command, such as the sandbox's own upstream. */
export interface Preset {
  /** Shown as the origin of these values. */
  readonly name: string;
  /** null = the default, whatever file and environment say. A credential also unsets its `…File` twin, and the other way round. */
  readonly values: Readonly<Partial<Record<SettingKey, SettingValue>>>;
}

/** A setting as it applies. */
export interface Effective {
  readonly value: SettingValue;
  readonly origin: Origin;
}

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: Config;
      /** Every setting, in the order of the schema, with where it came from. Holds secrets as they are. */
      readonly effective: ReadonlyMap<SettingKey, Effective>;
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[]; readonly warnings: readonly string[] };

/** Loads the configuration: defaults < file < environment < preset. Never throws. */
export function loadConfig(options: LoadOptions): LoadResult {
  const environment = readEnvironment(options.env);
  const warnings = [...environment.warnings];
  const file = readFile(options);
  // Without the file every setting in it would seem missing: the one problem is told alone.
  if (!file.ok) return { ok: false, problems: [file.problem], warnings };

  const given = withPreset(new Map([...file.given, ...environment.given]), options.preset);
  const { values, problems: formatProblems } = checkEach(given);
  const wrong = new Set(formatProblems.map(({ key }) => key));
  const settings = completeSettings(values);
  const problems = [...formatProblems, ...findBrokenRules(settings, wrong), ...findFileProblems(settings)];
  if (problems.length > 0 || file.problems.length > 0)
    return { ok: false, problems: [...file.problems, ...inOrder(problems)], warnings };
  const effective = withDefaults(values, given);
  warnings.push(...warnOfExposedSecrets(settings, given));
  return { ok: true, config: assembleConfig(settings), effective, warnings };
}

type NamedFile =
  | {
      readonly ok: true;
      readonly given: ReadonlyMap<SettingKey, Given>;
      readonly problems: readonly ConfigProblem[];
    }
  | { readonly ok: false; readonly problem: ConfigProblem };

function readFile({ env, file }: LoadOptions): NamedFile {
  const [path, variable] = file === undefined ? [env[CONFIG_VARIABLE], CONFIG_VARIABLE] : [file, undefined];
  if (path === undefined || (path === '' && variable !== undefined))
    return { ok: true, given: new Map(), problems: [] };
  const reading: FileReading = readConfigFile(path);
  if (reading.kind === 'read') return { ok: true, ...reading.source };
  return {
    ok: false,
    problem: { key: 'configuration file', variable, message: `${JSON.stringify(path)}: ${reading.fault}` },
  };
}

function withPreset(given: ReadonlyMap<SettingKey, Given>, preset: Preset | undefined): Map<SettingKey, Given> {
  const merged = new Map(given);
  if (preset === undefined) return merged;
  const entries = Object.entries(preset.values) as [SettingKey, SettingValue][];
  for (const [key] of entries)
    for (const twin of FILE_TWINS.filter((twins) => twins.includes(key)).flat()) merged.delete(twin);
  for (const [key, value] of entries) merged.set(key, { value, origin: preset.name });
  return merged;
}

interface Checked {
  readonly values: ReadonlyMap<SettingKey, SettingValue>;
  readonly problems: readonly ConfigProblem[];
}

/** Asks each setting's format; the values that fit, and a problem for each that does not or is missing. */
function checkEach(given: ReadonlyMap<SettingKey, Given>): Checked {
  const values = new Map<SettingKey, SettingValue>();
  const problems: ConfigProblem[] = [];
  for (const [key, setting] of SETTINGS) {
    const found = given.get(key);
    if (found === undefined || found.value === null) {
      if (setting.required !== undefined) problems.push(problemOf(key, `required; ${setting.required}`));
      continue;
    }
    const checked = check(setting, found);
    if (checked.ok) values.set(key, checked.value);
    else problems.push(problemOf(key, checked.message));
  }
  return { values, problems };
}

type Check = { readonly ok: true; readonly value: SettingValue } | { readonly ok: false; readonly message: string };

function check({ format, sensitive }: Setting, { value, origin }: Given): Check {
  const assertFits: Setting['format'] = format;
  try {
    assertFits(value);
    return { ok: true, value };
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    // The environment is named by the variable beside the key; a file needs naming here.
    const where = origin.startsWith('file ') ? ` in ${origin.slice('file '.length)}` : '';
    return { ok: false, message: sensitive ? fault : `found ${describeFound(format, value)}${where}; ${fault}` };
  }
}

function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const order = [...SETTINGS.keys()] as string[];
  return problems.toSorted((a, b) => order.indexOf(a.key) - order.indexOf(b.key));
}

function withDefaults(
  values: ReadonlyMap<SettingKey, SettingValue>,
  given: ReadonlyMap<SettingKey, Given>,
): Map<SettingKey, Effective> {
  return new Map(
    [...SETTINGS].map(([key, setting]) => [
      key,
      { value: values.get(key) ?? setting.default, origin: given.get(key)?.origin ?? 'default' },
    ]),
  );
}
