/**
 * `bearer-sidecar config`: the effective configuration as YAML, secrets masked, with where each value came from; or the
 * problems that stand in the way. Writes nothing itself: main prints the texts and exits.
 */
import { Document, isMap, isSeq, YAMLSeq } from 'yaml';
import type { Node } from 'yaml';
import { writtenIn } from '../config/entries.ts';
import type { Entries, Entry } from '../config/entries.ts';
import type { SettingValue } from '../config/formats.ts';
import { loadConfig } from '../config/load.ts';
import type { Effective, LoadOptions } from '../config/load.ts';
import { formatProblems, formatWarnings, onOneLine } from '../config/problems.ts';
import { isTextMap, settingOf } from '../config/schema.ts';
import type { SettingKey } from '../config/schema.ts';
import { MASK } from '../config/url.ts';

/** What a command leaves for main to do. */
export interface CommandOutput {
  /** 0 = fine, 2 = the configuration is invalid. */
  readonly exitCode: 0 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/** Loads the configuration and prints it, or one line per problem. */
export function printConfig(options: LoadOptions): CommandOutput {
  const loaded = loadConfig(options);
  const warnings = formatWarnings(loaded.warnings);
  return loaded.ok
    ? { exitCode: 0, stdout: renderSettings(loaded.effective, loaded.entries), stderr: warnings }
    : { exitCode: 2, stdout: '', stderr: warnings + formatProblems(loaded.problems) };
}

function renderSettings(effective: ReadonlyMap<SettingKey, Effective>, entries: Entries): string {
  const document = new Document({});
  for (const [key, { value, origin }] of effective) {
    const node = document.createNode(masked(key, value));
    node.comment = ` ${onOneLine(origin)}${fallsBack(key, effective) ? ', as upstream.caFile' : ''}`;
    if (isSeq(node) || isMap(node)) node.flow = true;
    document.setIn(key.split('.'), node);
  }
  for (const list of ['credentials', 'routes'] as const)
    if (entries[list].length > 0) document.set(list, renderEntries(document, entries[list]));
  return document.toString({ lineWidth: 0 });
}

/** What each says itself; what it takes from the top level stands there. */
function renderEntries(document: Document, entries: readonly Entry[]): Node {
  const list = new YAMLSeq();
  for (const entry of entries) {
    const section = new Document({});
    for (const [path, { key, value }] of writtenIn(entry)) {
      const node = document.createNode(key === undefined ? value : masked(key, value));
      if (isSeq(node) || isMap(node)) node.flow = true;
      section.setIn(path.split('.'), node);
    }
    list.add(section.contents);
  }
  const [first] = entries;
  list.commentBefore = ` ${onOneLine(first?.origin ?? '')}; what an entry does not say itself is as above`;
  return list;
}

/** True for the one setting that takes another's value when it has none. */
function fallsBack(key: SettingKey, effective: ReadonlyMap<SettingKey, Effective>): boolean {
  return (
    key === 'auth.caFile' && effective.get(key)?.value === null && effective.get('upstream.caFile')?.value !== null
  );
}

function masked(key: SettingKey, value: SettingValue): SettingValue {
  const { sensitive, format } = settingOf(key);
  if (value === null) return value;
  // Of a map the names are no secret.
  if (isTextMap(value)) return Object.fromEntries(Object.keys(value).map((name) => [name, MASK]));
  if (sensitive) return MASK;
  if (Array.isArray(value)) return (value as readonly string[]).map((entry) => format.show(entry));
  return typeof value === 'string' ? format.show(value) : value;
}
