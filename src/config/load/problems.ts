/** The texts of configuration problems and warnings, one line each. */
import { maskPasswords } from '../../platform/secret-redaction.ts';
import { settingOf, type SettingKey } from '../schema/schema.ts';
import type { SettingDefinition } from '../schema/setting.ts';

/** Where a value came from: `default`, `file PATH`, `environment VARIABLE`, `flag --NAME` or the name of a preset. */
export type ValueOrigin = string;

/** An unchecked value; null: the default. */
export interface RawValue {
  readonly value: unknown;
  readonly origin: ValueOrigin;
}

const MAX_SHOWN_LENGTH = 100;

export interface ConfigProblem {
  /** Dotted key, or the name of a file or argument. */
  readonly key: string;
  /** The environment variable that sets it, if any. */
  readonly variable?: string | undefined;
  /** Found and expected value; never a secret. */
  readonly message: string;
}

export type SettingProblem = ConfigProblem & { readonly key: SettingKey };

export function createSettingProblem(key: SettingKey, message: string): SettingProblem {
  return { key, variable: settingOf(key).env, message };
}

/** A key with the variable that sets it: `auth.scope (SIDECAR_SCOPE)`. */
export function formatSettingName(key: SettingKey): string {
  return `${key} (${settingOf(key).env})`;
}

/** The fault of a value, in words; undefined when there is none. @param variable that the problem names already */
export function findValueFault(
  { format, sensitive }: Pick<SettingDefinition, 'format' | 'sensitive'>,
  { value, origin }: RawValue,
  variable?: string,
): string | undefined {
  const assertFits: SettingDefinition['format'] = format;
  try {
    assertFits(value);
    return undefined;
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    // The problem names the setting's own variable; only a file, a flag or a shared variable must be added.
    const [, source] = /^(?:file|environment|flag) (.+)$/s.exec(origin) ?? [];
    const where = source === undefined || source === variable ? '' : ` in ${source}`;
    return sensitive ? fault : `found ${describeFound(format, value)}${where}; ${fault}`;
  }
}

/** Masks a secret. */
function describeFound(format: SettingDefinition['format'], value: unknown): string {
  if (typeof value === 'string') return truncate(JSON.stringify(maskPasswords(format.show(value))));
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value))
    return value.every((entry) => typeof entry === 'string')
      ? truncate(JSON.stringify(maskPasswords(value.map((entry) => format.show(entry)).join(','))))
      : 'a list';
  return typeof value === 'object' && value !== null ? 'a section' : 'something else';
}

/** What an editor, or a tool that keeps quotes (docker's --env-file), leaves at the ends of a value; undefined without it. */
export function describeEnds(value: string): string | undefined {
  if (value !== value.trim()) return 'begins or ends with a blank';
  return /^(["'])[^]*\1$/.test(value) && value.length > 1 ? 'is in quotes' : undefined;
}

/** Shortens a text to the length of a line. */
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

/** Escapes characters that would start a new line or reorder this one, for texts from outside such as paths. */
export function toSingleLine(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
