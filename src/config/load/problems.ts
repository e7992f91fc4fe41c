/**
 * Words of configuration problems: how a refused value is shown, where it came from, one line each for stderr.
 */
import type { ConfigProblem } from '../config.ts';
import type { Format, SettingValue } from '../schema/formats/formats.ts';
import type { SettingKey } from '../schema/schema.ts';
import { settingOf } from '../schema/schema.ts';

/** Where a value came from, as shown to people: `default`, `file PATH`, `environment VARIABLE` or a preset's name. */
export type ValueOrigin = string;

const MAX_SHOWN_LENGTH = 100;

/** A problem that is put to a setting. */
export type SettingProblem = ConfigProblem & { readonly key: SettingKey };

/** A problem of one setting. */
export function createSettingProblem(key: SettingKey, message: string): SettingProblem {
  return { key, variable: settingOf(key).env, message };
}

/** A key with the variable that sets it: `auth.scope (SIDECAR_SCOPE)`. */
export function formatSettingName(key: SettingKey): string {
  return `${key} (${settingOf(key).env})`;
}

/** What was found, in words; of a secret nothing. */
export function describeFound(format: Format<NonNullable<SettingValue>>, value: unknown): string {
  if (typeof value === 'string') return truncate(JSON.stringify(format.show(value)));
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value))
    return value.every((entry) => typeof entry === 'string')
      ? truncate(JSON.stringify(value.map((entry) => format.show(entry)).join(',')))
      : 'a list';
  return value instanceof Map ? 'a section' : 'something else';
}

/** Text cut to a length that fits a line. */
export function truncate(text: string): string {
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text;
}

/** One line per problem, each ended by a line feed: `bearer-sidecar: KEY (VARIABLE): MESSAGE`. */
export function formatProblems(problems: readonly ConfigProblem[]): string {
  return problems.map((problem) => formatLine(describeProblem(problem))).join('');
}

/** On one line: `KEY (VARIABLE): MESSAGE`. */
export function describeProblem({ key, variable, message }: ConfigProblem): string {
  return toSingleLine(`${key}${variable === undefined ? '' : ` (${variable})`}: ${message}`);
}

/** One line per warning, each ended by a line feed. */
export function formatWarnings(warnings: readonly string[]): string {
  return warnings.map((warning) => formatLine(`warning: ${warning}`)).join('');
}

function formatLine(text: string): string {
  return `bearer-sidecar: ${toSingleLine(text)}\n`;
}

/** Text from outside, such as a path, with what would start a new line or reorder this one written as an escape. */
export function toSingleLine(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
