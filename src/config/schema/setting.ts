/** One entry of the schema, a convict leaf with `required` and described formats, and the types derived from a tree of them. */
import { text, type Format, type SettingValue } from './formats/formats.ts';

export interface SettingDefinition<T extends SettingValue = SettingValue> {
  /** What it does, in full sentences. */
  readonly doc: string;
  readonly format: Format<NonNullable<T>>;
  /** null: not set. */
  readonly default: T;
  /** The environment variable that sets it. Default: `variableOfPath` of its key. */
  readonly env?: string;
  /** null is valid without asking the format. */
  readonly nullable: boolean;
  /** True: the value is never shown. */
  readonly sensitive: boolean;
  /** True: a running process applies a change. Such a setting is no secret, names no file and opens no connection. */
  readonly isLive: boolean;
  /** Set for a required setting: describes the value to give. */
  readonly required?: string;
}

export interface Setting extends SettingDefinition {
  readonly env: string;
}

type Description = Pick<SettingDefinition, 'doc' | 'env' | 'required'> &
  Partial<Pick<SettingDefinition, 'sensitive' | 'isLive'>>;

/** The default of a map. */
export const NO_ENTRIES = {};

export function setting<T extends NonNullable<SettingValue>>(
  format: Format<T>,
  value: NoInfer<T>,
  description: Description,
): SettingDefinition<T> {
  return { format, default: value, nullable: false, sensitive: false, isLive: false, ...description };
}

export function settingWithoutDefault<T extends NonNullable<SettingValue>>(
  format: Format<T>,
  description: Description,
): SettingDefinition<T | null> {
  // The format never sees null.
  return { format, default: null, nullable: true, sensitive: false, isLive: false, ...description };
}

/** The path of a file, without a default. */
export function fileSetting(description: Description): SettingDefinition<string | null> {
  return settingWithoutDefault(text('a path'), description);
}

export type SettingTreeValues<Node> = {
  readonly [K in keyof Node]: Node[K] extends SettingDefinition<infer T> ? T : SettingTreeValues<Node[K]>;
};

export type SettingTreeKeys<Node, Prefix extends string = ''> = {
  [K in keyof Node & string]: Node[K] extends { readonly doc: string }
    ? `${Prefix}${K}`
    : SettingTreeKeys<Node[K], `${Prefix}${K}.`>;
}[keyof Node & string];
