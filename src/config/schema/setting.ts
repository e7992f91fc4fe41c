/** One entry of the schema, a convict leaf with `required` and described formats, and the types derived from a tree of them. */
import type { Format, SettingValue } from './formats/formats.ts';

/** One setting. */
export interface Setting<T extends SettingValue = SettingValue> {
  /** What it does, in full sentences. */
  readonly doc: string;
  readonly format: Format<NonNullable<T>>;
  /** null: not set. */
  readonly default: T;
  /** The environment variable that sets it. */
  readonly env: string;
  /** null is valid without asking the format. */
  readonly nullable: boolean;
  /** True: the value is never shown. */
  readonly sensitive: boolean;
  /** Set for a required setting: describes the value to give. */
  readonly required?: string;
}

type SettingDefinition<T extends SettingValue> = Pick<Setting<T>, 'doc' | 'format' | 'env'> & {
  readonly sensitive?: boolean;
  readonly required?: string;
};

/** A setting with a default. */
export function setting<T extends NonNullable<SettingValue>>(
  given: SettingDefinition<T> & { readonly default: NoInfer<T> },
): Setting<T> {
  return { nullable: false, sensitive: false, ...given };
}

/** A setting without a default. */
export function settingWithoutDefault<T extends NonNullable<SettingValue>>(
  given: SettingDefinition<T>,
): Setting<T | null> {
  // The format never sees null.
  return { default: null, nullable: true, sensitive: false, ...given };
}

/** The values that a tree of settings describes. */
export type SettingTreeValues<Node> = {
  -readonly [K in keyof Node]: Node[K] extends Setting<infer T> ? T : SettingTreeValues<Node[K]>;
};

/** The dotted keys of a tree of settings. */
export type SettingTreeKeys<Node, Prefix extends string = ''> = {
  [K in keyof Node & string]: Node[K] extends { readonly env: string }
    ? `${Prefix}${K}`
    : SettingTreeKeys<Node[K], `${Prefix}${K}.`>;
}[keyof Node & string];
