/**
 * `bearer-sidecar config`: the effective configuration as YAML, secrets masked, with where each value came from; or the
 * problems that stand in the way. Writes nothing itself: main prints the texts and exits.
 */
import { Document, isMap, isSeq, YAMLSeq } from 'yaml';
import type { Node } from 'yaml';
import { listEntryValues } from '../config/load/entries.ts';
import type { ConfigEntries, ConfigEntry } from '../config/load/entries.ts';
import { loadConfig } from '../config/load/load.ts';
import type { EffectiveSetting, LoadOptions } from '../config/load/load.ts';
import { findNearest } from '../config/load/nearest.ts';
import { truncate, formatProblems, formatWarnings, toSingleLine } from '../config/load/problems.ts';
import { listSections } from '../config/load/sections.ts';
import { LIST_KEYS } from '../config/schema/schema-routes.ts';
import { SETTINGS } from '../config/schema/schema.ts';
import type { SettingKey } from '../config/schema/schema.ts';
import { maskSetting } from '../config/displayed-settings.ts';

/** What a command leaves for main to do. */
export interface CommandOutput {
  /** 0 = fine, 2 = the configuration is invalid. */
  readonly exitCode: 0 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Loads the configuration and prints it, or one line per problem.
 * @param part a key or section to print alone. Default: everything
 */
export function renderConfig(options: LoadOptions, part?: string): CommandOutput {
  const isAsked: KeyFilter = (key) => part === undefined || key === part || key.startsWith(`${part}.`);
  if (part !== undefined && ![...SETTINGS.keys(), ...LIST_KEYS].some(isAsked))
    return { exitCode: 2, stdout: '', stderr: `bearer-sidecar: ${toSingleLine(describeUnknownKey(part))}\n` };
  const loaded = loadConfig(options);
  const warnings = formatWarnings(loaded.warnings);
  return loaded.ok
    ? { exitCode: 0, stdout: renderSettingsYaml(loaded.effective, loaded.entries, isAsked), stderr: warnings }
    : { exitCode: 2, stdout: '', stderr: warnings + formatProblems(loaded.problems) };
}

type KeyFilter = (key: string) => boolean;

function describeUnknownKey(part: string): string {
  const meant = findNearest(part, [...SETTINGS.keys(), ...listSections(SETTINGS.keys()), ...LIST_KEYS]);
  const hint = meant === undefined ? 'bearer-sidecar config shows all of them' : `did you mean ${meant}?`;
  return `unknown key ${JSON.stringify(truncate(part))}; ${hint}`;
}

function renderSettingsYaml(
  effective: ReadonlyMap<SettingKey, EffectiveSetting>,
  entries: ConfigEntries,
  isAsked: KeyFilter,
): string {
  const document = new Document({});
  for (const [key, { value, origin }] of effective) {
    if (!isAsked(key)) continue;
    const node = document.createNode(maskSetting(key, value));
    node.comment = ` ${toSingleLine(origin)}${isFallbackCaFile(key, effective) ? ', as upstream.caFile' : ''}`;
    if (isSeq(node) || isMap(node)) node.flow = true;
    document.setIn(key.split('.'), node);
  }
  for (const list of LIST_KEYS.filter(isAsked))
    if (entries[list].length > 0) document.set(list, renderEntries(document, entries[list]));
  return document.toString({ lineWidth: 0 });
}

/** What each says itself; what it takes from the top level stands there. */
function renderEntries(document: Document, entries: readonly ConfigEntry[]): Node {
  const list = new YAMLSeq();
  for (const entry of entries) {
    const section = new Document({});
    for (const [path, { key, value }] of listEntryValues(entry)) {
      const node = document.createNode(key === undefined ? value : maskSetting(key, value));
      if (isSeq(node) || isMap(node)) node.flow = true;
      section.setIn(path.split('.'), node);
    }
    list.add(section.contents);
  }
  const [first] = entries;
  list.commentBefore = ` ${toSingleLine(first?.origin ?? '')}; what an entry does not say itself is as above`;
  return list;
}

/** True for the one setting that takes another's value when it has none. */
function isFallbackCaFile(key: SettingKey, effective: ReadonlyMap<SettingKey, EffectiveSetting>): boolean {
  return (
    key === 'auth.caFile' && effective.get(key)?.value === null && effective.get('upstream.caFile')?.value !== null
  );
}
