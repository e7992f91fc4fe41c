/**
 * `bearer-sidecar config`: the effective configuration as YAML, secrets masked, with where each value came from; or the
 * problems that stand in the way. Writes nothing itself: main prints the texts and exits.
 */
import { Document, isSeq } from 'yaml';
import type { SettingValue } from '../config/formats.ts';
import { loadConfig } from '../config/load.ts';
import type { Effective, LoadOptions } from '../config/load.ts';
import { formatProblems, formatWarnings, onOneLine } from '../config/problems.ts';
import { settingOf } from '../config/schema.ts';
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
    ? { exitCode: 0, stdout: renderSettings(loaded.effective), stderr: warnings }
    : { exitCode: 2, stdout: '', stderr: warnings + formatProblems(loaded.problems) };
}

function renderSettings(effective: ReadonlyMap<SettingKey, Effective>): string {
  const document = new Document({});
  for (const [key, { value, origin }] of effective) {
    const node = document.createNode(masked(key, value));
    node.comment = ` ${onOneLine(origin)}${fallsBack(key, effective) ? ', as upstream.caFile' : ''}`;
    if (isSeq(node)) node.flow = true;
    document.setIn(key.split('.'), node);
  }
  return document.toString({ lineWidth: 0 });
}

/** True for the one setting that takes another's value when it has none. */
function fallsBack(key: SettingKey, effective: ReadonlyMap<SettingKey, Effective>): boolean {
  return (
    key === 'auth.caFile' && effective.get(key)?.value === null && effective.get('upstream.caFile')?.value !== null
  );
}

function masked(key: SettingKey, value: SettingValue): SettingValue {
  const { sensitive, format } = settingOf(key);
  if (sensitive && value !== null) return MASK;
  return typeof value === 'string' ? format.show(value) : value;
}
