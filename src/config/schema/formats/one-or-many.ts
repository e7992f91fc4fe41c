/**
 * Formats of several texts: lists whose entries may contain commas, and maps from names to texts. In a variable both are JSON.
 * Comma-separated lists are in formats.ts.
 */
import { format, type Format, type JsonSchema, type SecretMap, type SettingMap, type TextMap } from './formats.ts';

interface EntryOptions {
  readonly what: string;
  /** As in a format. */
  readonly check: (entry: string) => boolean | string;
  readonly show?: Format<string>['show'];
}

/** One text, or several as a JSON array (in a file also a list). */
export type OneOrMany = string | readonly string[];

export function oneOrMany({ what, check, show = (text) => text }: EntryOptions): Format<OneOrMany> {
  const expected = `${what}; several as a JSON array`;
  const fault = (entry: unknown): string | undefined => {
    if (typeof entry === 'number' || typeof entry === 'boolean') return `expected ${what}; write it in quotes`;
    const result = typeof entry === 'string' ? check(entry) : false;
    return result === true ? undefined : result === false ? `expected ${what}` : result;
  };
  return format({
    expected,
    check: (value) => {
      if (!Array.isArray(value)) return typeof value === 'object' ? false : (fault(value) ?? true);
      const entries = value as unknown[];
      const wrong = entries.find((entry) => fault(entry) !== undefined);
      if (wrong !== undefined)
        return `entry ${typeof wrong === 'string' ? JSON.stringify(show(wrong)) : 'of another kind'}: ${fault(wrong) ?? ''}`;
      if (entries.length === 0) return 'expected at least one';
      return new Set(entries).size === entries.length || 'expected each entry once';
    },
    fromText: (text) => (text.trimStart().startsWith('[') ? (parseJson(text) ?? text) : text),
    show,
    schema: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, uniqueItems: true },
      ],
    },
  });
}

/** As a list; empty when not set. */
export function toList(value: OneOrMany | null): readonly string[] {
  return typeof value === 'string' ? [value] : (value ?? []);
}

interface MapOptions<T> {
  /** Describes the map, with an example. */
  readonly expected: string;
  /** The fault of a name; undefined when there is none. */
  readonly nameFault: (name: string) => string | undefined;
  /** The fault of a value, without quoting it. */
  readonly valueFault: (value: T) => string | undefined;
}

/** Texts by name: a section of a file, or a JSON object in a variable. The values may be secrets. */
export function textMap({ valueFault, ...options }: MapOptions<string>): Format<TextMap> {
  const faultOf = (value: unknown) => (typeof value === 'string' ? valueFault(value) : 'must be a text in quotes');
  return map({ ...options, valueFault: faultOf }, { type: 'string', minLength: 1 });
}

/** As `textMap`; a value may also be the name of a file that holds it: `{ file: /run/secrets/key }`. */
export function secretMap({ valueFault, ...options }: MapOptions<string>): Format<SecretMap> {
  const faultOf = (value: unknown): string | undefined => {
    if (typeof value === 'string') return valueFault(value);
    return isFileReference(value) ? undefined : 'must be a text in quotes, or { file: PATH }';
  };
  const file = { type: 'object', properties: { file: { type: 'string', minLength: 1 } } };
  return map(
    { ...options, valueFault: faultOf },
    {
      anyOf: [
        { type: 'string', minLength: 1 },
        { ...file, required: ['file'], additionalProperties: false },
      ],
    },
  );
}

function isFileReference(value: unknown): boolean {
  const { file, ...rest } = isObject(value) ? value : {};
  return typeof file === 'string' && file !== '' && !/\p{Cc}/u.test(file) && Object.keys(rest).length === 0;
}

/** The members of a JSON object, with values of any kind. */
export function jsonObject(options: Omit<MapOptions<unknown>, 'valueFault'>): Format<SettingMap> {
  return map({ ...options, valueFault: () => undefined }, true);
}

function map<T extends SettingMap>(
  { expected, nameFault, valueFault }: MapOptions<unknown>,
  valueSchema: JsonSchema | true,
): Format<T> {
  return format({
    expected,
    check: (value) => {
      if (!isObject(value)) return false;
      for (const [name, one] of Object.entries(value)) {
        const fault = nameFault(name) ?? valueFault(one);
        if (fault !== undefined) return `${JSON.stringify(name)}: ${fault}`;
      }
      return true;
    },
    fromText: (text) => parseJson(text) ?? text,
    fromFile: toPlainValue,
    schema: { type: 'object', additionalProperties: valueSchema },
  });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The sections of a file are maps. */
function toPlainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([name, one]) => [name, toPlainValue(one)]));
}

/** Undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's message quotes the text, which may be a secret.
    return undefined;
  }
}
