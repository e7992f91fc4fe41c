/** `bearer-sidecar config`: the effective configuration as YAML with masked secrets and origins, or its problems. */
import { Document, isMap, isSeq, YAMLSeq, type Node } from 'yaml';
import {
  listEntryValues,
  type ConfigEntries,
  type ConfigEntry,
  type EffectiveSetting,
} from '../config/load/entries.ts';
import { loadConfig, type LoadOptions } from '../config/load/load.ts';
import { findNearest } from '../config/load/nearest.ts';
import { truncate, formatWarnings, toSingleLine } from '../config/load/problems.ts';
import { listSections } from '../config/load/sections.ts';
import type { SettingValue } from '../config/schema/formats/formats.ts';
import { LIST_KEYS } from '../config/schema/schema-routes.ts';
import { SETTINGS, type SettingKey } from '../config/schema/schema.ts';
import { maskSetting } from '../config/displayed-settings.ts';
import { describeLoadFailure } from './load-failure.ts';

/** What a command prints; command-line.ts writes it. */
export interface CommandOutput {
  /** 2: wrong usage or invalid settings. */
  readonly exitCode: 0 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param part the key or section to print. Default: all */
export function renderConfig(options: LoadOptions, part?: string): CommandOutput {
  const isIncluded: KeyFilter = (key) => part === undefined || key === part || key.startsWith(`${part}.`);
  if (part !== undefined && ![...SETTINGS.keys(), ...LIST_KEYS].some(isIncluded))
    return { exitCode: 2, stdout: '', stderr: `bearer-sidecar: ${toSingleLine(describeUnknownKey(part))}\n` };
  const loaded = loadConfig(options);
  const warnings = formatWarnings(loaded.warnings);
  return loaded.ok
    ? { exitCode: 0, stdout: renderSettingsYaml(loaded.effective, loaded.entries, isIncluded), stderr: warnings }
    : { exitCode: 2, stdout: '', stderr: warnings + describeLoadFailure(options, loaded.problems) };
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
  isIncluded: KeyFilter,
): string {
  const document = new Document({});
  for (const [key, { value, origin }] of effective) {
    if (!isIncluded(key)) continue;
    const isFallback = key === 'auth.caFile' && value === null && effective.get('upstream.caFile')?.value !== null;
    const node = createNode(document, key, value);
    node.comment = ` ${toSingleLine(origin)}${isFallback ? ', as upstream.caFile' : ''}`;
    document.setIn(key.split('.'), node);
  }
  for (const list of LIST_KEYS.filter(isIncluded))
    if (entries[list].length > 0) document.set(list, renderEntries(document, entries[list]));
  return document.toString({ lineWidth: 0 });
}

function createNode(document: Document, key: SettingKey | undefined, value: SettingValue) {
  // A client id is no secret: here its reader compares it with the one that the partner gave out.
  const isShown = key === undefined || key === 'auth.clientId';
  const node = document.createNode(isShown ? value : maskSetting(key, value));
  if (isSeq(node) || isMap(node)) node.flow = true;
  return node;
}

/** The own settings of each entry; inherited ones stand at the top level. */
function renderEntries(document: Document, entries: readonly ConfigEntry[]): Node {
  const list = new YAMLSeq();
  for (const entry of entries) {
    const section = new Document({});
    for (const [path, { key, value }] of listEntryValues(entry))
      section.setIn(path.split('.'), createNode(document, key, value));
    list.add(section.contents);
  }
  const [first] = entries;
  list.commentBefore = ` ${toSingleLine(first?.origin ?? '')}; other settings of an entry are as above`;
  return list;
}
