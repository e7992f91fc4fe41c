/**
 * `bearer-sidecar config`: the effective configuration as YAML, secrets masked, with where each value came from; or the
 * problems that stand in the way. Writes nothing itself: main prints the texts and exits.
 */
import { Document, isMap, isSeq, YAMLSeq } from 'yaml';
import type { Node } from 'yaml';
import { writtenIn } from '../config/load/entries.ts';
import type { Entries, Entry } from '../config/load/entries.ts';
import { loadConfig } from '../config/load/load.ts';
import type { Effective, LoadOptions } from '../config/load/load.ts';
import { nearest } from '../config/load/nearest.ts';
import { cut, formatProblems, formatWarnings, onOneLine } from '../config/load/problems.ts';
import { SETTINGS } from '../config/schema/schema.ts';
import type { SettingKey } from '../config/schema/schema.ts';
import { maskSetting } from '../config/shown-settings.ts';

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
export function printConfig(options: LoadOptions, part?: string): CommandOutput {
  const isAsked: IsAsked = (key) => part === undefined || key === part || key.startsWith(`${part}.`);
  if (part !== undefined && ![...SETTINGS.keys(), ...LISTS].some(isAsked))
    return { exitCode: 2, stdout: '', stderr: `bearer-sidecar: ${onOneLine(unknownPart(part))}\n` };
  const loaded = loadConfig(options);
  const warnings = formatWarnings(loaded.warnings);
  return loaded.ok
    ? { exitCode: 0, stdout: renderSettings(loaded.effective, loaded.entries, isAsked), stderr: warnings }
    : { exitCode: 2, stdout: '', stderr: warnings + formatProblems(loaded.problems) };
}

type IsAsked = (key: string) => boolean;

const LISTS = ['credentials', 'routes'] as const;

function unknownPart(part: string): string {
  const sections = [...SETTINGS.keys()].map((key) => key.slice(0, Math.max(0, key.lastIndexOf('.'))));
  const meant = nearest(part, [...SETTINGS.keys(), ...new Set(sections), ...LISTS]);
  const hint = meant === undefined ? 'bearer-sidecar config shows all of them' : `did you mean ${meant}?`;
  return `unknown key ${JSON.stringify(cut(part))}; ${hint}`;
}

function renderSettings(effective: ReadonlyMap<SettingKey, Effective>, entries: Entries, isAsked: IsAsked): string {
  const document = new Document({});
  for (const [key, { value, origin }] of effective) {
    if (!isAsked(key)) continue;
    const node = document.createNode(maskSetting(key, value));
    node.comment = ` ${onOneLine(origin)}${fallsBack(key, effective) ? ', as upstream.caFile' : ''}`;
    if (isSeq(node) || isMap(node)) node.flow = true;
    document.setIn(key.split('.'), node);
  }
  for (const list of LISTS.filter(isAsked))
    if (entries[list].length > 0) document.set(list, renderEntries(document, entries[list]));
  return document.toString({ lineWidth: 0 });
}

/** What each says itself; what it takes from the top level stands there. */
function renderEntries(document: Document, entries: readonly Entry[]): Node {
  const list = new YAMLSeq();
  for (const entry of entries) {
    const section = new Document({});
    for (const [path, { key, value }] of writtenIn(entry)) {
      const node = document.createNode(key === undefined ? value : maskSetting(key, value));
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
