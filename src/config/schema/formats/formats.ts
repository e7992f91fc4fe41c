/**
 * Strict formats for the schema: each describes the accepted values and checks one. convict's own coercions are not used, since
 * they read `no` as true and `10s` as 10. Checks that need several settings or files are in rules/ and load/named-files.ts.
 */
import { maskPasswords } from '../../../platform/secret-redaction.ts';
import type { DeclaredLimit } from '../../../throttle/declared/declared-limit.ts';
import type { RefusalRule } from '../../../throttle/refusal-rule.ts';

export type TextMap = Readonly<Record<string, string>>;

export type TextOrFile = string | { readonly file: string };

/** Secrets by name. */
export type SecretMap = Readonly<Record<string, TextOrFile>>;

export type SettingMap = Readonly<Record<string, unknown>>;

/** The value of a setting before it is assembled into a Config; null: not set. */
export type SettingValue =
  | string
  | number
  | boolean
  | readonly string[]
  | readonly RefusalRule[]
  | readonly DeclaredLimit[]
  | SettingMap
  | null;

/** A part of a JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A convict format: throws an Error with the fault, or with what is expected. */
export interface Format<T> {
  (value: unknown): asserts value is T;
  /** The accepted values, as text that follows "expected". */
  readonly expected: string;
  /** Converts the text of an environment variable; other text is returned unchanged, and the check refuses it. */
  readonly fromText: (text: string) => unknown;
  /** Converts a value of a parsed file. Default: unchanged. */
  readonly fromFile: (value: unknown) => unknown;
  /** The value without secrets. Default: unchanged. */
  readonly show: (text: string) => string;
  /** What a file may hold. It accepts every valid value; some invalid ones too, where JSON Schema cannot say more. */
  readonly schema: JsonSchema;
}

type FormatOptions = Pick<Format<never>, 'expected' | 'schema'> &
  Partial<Pick<Format<never>, 'fromText' | 'fromFile' | 'show'>> & {
    /** True: valid. False: `expected` describes the fault. A string: the fault. */
    readonly check: (value: unknown) => boolean | string;
  };

export function format<T>({ check, ...described }: FormatOptions): Format<T> {
  const assertFits = (value: unknown): asserts value is T => {
    const result = check(value);
    if (result === true) return;
    throw new Error(result === false ? `expected ${described.expected}` : result);
  };
  const unchanged = <V>(value: V): V => value;
  return Object.assign(assertFits, { fromText: unchanged, fromFile: unchanged, show: unchanged, ...described });
}

const INTEGER = /^(?:0|[1-9][0-9]*)$/;
const DECIMAL = /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;

/** A number in plain decimal digits. */
function numeric<T>(
  digits: RegExp,
  expected: string,
  isAllowed: (value: unknown) => boolean,
  schema: JsonSchema,
): Format<T> {
  return format({
    expected,
    check: (value) =>
      typeof value === 'string' && digits.test(value) ? `expected ${expected}, without quotes` : isAllowed(value),
    fromText: (text) => (digits.test(text) ? Number(text) : text),
    schema,
  });
}

/** Both bounds are included. */
export function wholeNumber(min: number, max: number): Format<number> {
  const isAllowed = (value: unknown) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
  const schema = { type: 'integer', minimum: min, maximum: max };
  return numeric(INTEGER, `a whole number from ${String(min)} to ${String(max)}`, isAllowed, schema);
}

const MAX_RATE = 1_000_000;
const PERMITS = `a number of permits per second above 0 and up to ${String(MAX_RATE)} (decimals allowed)`;
const PERMITS_SCHEMA = { type: 'number', exclusiveMinimum: 0, maximum: MAX_RATE };

function isPermits(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value <= MAX_RATE;
}

export const permitsPerSecond: Format<number> = numeric(DECIMAL, PERMITS, isPermits, PERMITS_SCHEMA);

export const permitsPerSecondOrAuto: Format<number | 'auto'> = numeric(
  DECIMAL,
  `auto, or ${PERMITS}`,
  (value) => value === 'auto' || isPermits(value),
  { anyOf: [{ const: 'auto' }, PERMITS_SCHEMA] },
);

/** A share: 0 to 1, both included. */
export const fraction: Format<number> = numeric(
  DECIMAL,
  'a number from 0 to 1 (decimals allowed)',
  (value) => typeof value === 'number' && value >= 0 && value <= 1,
  { type: 'number', minimum: 0, maximum: 1 },
);

export const booleanValue: Format<boolean> = boolean('true or false', () => false, { type: 'boolean' });

export const booleanOrAuto: Format<boolean | 'auto'> = boolean('auto, true or false', (value) => value === 'auto', {
  anyOf: [{ const: 'auto' }, { type: 'boolean' }],
});

function boolean<T>(expected: string, isOther: (value: unknown) => boolean, schema: JsonSchema): Format<T> {
  return format({
    expected,
    check: (value) =>
      value === 'true' || value === 'false'
        ? `expected ${expected}, without quotes`
        : typeof value === 'boolean' || isOther(value),
    fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
    schema,
  });
}

/** One of a closed set of words, case-sensitive. */
export function oneOf<const T extends string>(words: readonly T[]): Format<T> {
  return format({
    expected: `one of ${words.join(', ')}`,
    check: (value) => words.some((word) => word === value),
    schema: { enum: words },
  });
}

interface TextOptions extends Pick<FormatOptions, 'expected' | 'show'> {
  /** As in a format. */
  readonly check: (text: string) => boolean | string;
  /** What JSON Schema can say of it. */
  readonly pattern: string;
}

export function checkedText({ check, pattern, ...described }: TextOptions): Format<string> {
  return format({
    ...described,
    check: (value) => typeof value === 'string' && check(value),
    schema: { type: 'string', pattern },
  });
}

/** Text that may look like a number or a boolean, which a file then needs in quotes. */
export function quotedText({ expected, check, pattern }: TextOptions): Format<string> {
  return format({
    expected,
    check: (value) =>
      typeof value === 'number' || typeof value === 'boolean'
        ? `expected ${expected}; write it in quotes`
        : typeof value === 'string' && check(value),
    schema: { type: 'string', pattern },
  });
}

/** Text that matches a pattern, which may have no flag but `u`: JSON Schema has none. */
export function matching(pattern: RegExp, expected: string): Format<string> {
  return quotedText({ expected, check: (text) => pattern.test(text), pattern: pattern.source });
}

export function text(what: string): Format<string> {
  return matching(/^\P{Cc}+$/u, `${what} without control characters`);
}

/** Several values: comma-separated text, or an array in a file. Every entry must pass `checkEntry`. */
export function list(
  what: string,
  minEntries: number,
  checkEntry: (entry: string) => boolean | string,
): Format<readonly string[]> {
  const split = (value: string): string[] => (value.trim() === '' ? [] : value.split(',').map((part) => part.trim()));
  return format({
    expected: `${what}, separated by commas or as an array`,
    check: (value) => {
      if (!isTextList(value)) return false;
      if (value.length < minEntries) return `expected at least ${String(minEntries)} of: ${what}`;
      for (const entry of value) {
        const result = checkEntry(entry);
        if (result !== true)
          return `entry ${JSON.stringify(maskPasswords(entry))}: ${result === false ? `expected ${what}` : result}`;
      }
      return true;
    },
    fromText: split,
    fromFile: (value) => (typeof value === 'string' ? split(value) : value),
    schema: {
      anyOf: [
        { type: 'string', ...(minEntries > 0 ? { minLength: 1 } : {}) },
        { type: 'array', items: { type: 'string' }, minItems: minEntries },
      ],
    },
  });
}

/** Whether the value is a list of texts; an empty list is one. */
export function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
