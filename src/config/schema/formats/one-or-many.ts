/**
 * Formats of several texts: lists whose entries may contain commas, and maps from names to texts. In a variable both are JSON.
 * Comma-separated lists are in formats.ts.
 */
import { tryRead } from '../../../platform/try-read.ts';
import { isJsonObject } from '../../../token/endpoint/json-object.ts';
import { format, type Format, type JsonSchema } from './formats.ts';
import type { SecretMap, SettingMap, SettingValue } from './formats.ts';

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

/** The fault of a name or of a value, which is not quoted; undefined when there is none. */
type FindFault<T> = (found: T) => string | undefined;

/** Secrets by name, each a text or the name of a file that holds it: `{ file: /run/secrets/key }`. */
export function secretMap(
  what: string,
  example: string,
  nameFault: FindFault<string>,
  valueFault: FindFault<string>,
): Format<SecretMap> {
  const faultOf = (value: unknown): string | undefined => {
    if (typeof value === 'string') return valueFault(value);
    return isFileReference(value) ? undefined : 'must be a text in quotes, or { file: PATH }';
  };
  const text = { type: 'string', minLength: 1 };
  const file = { type: 'object', properties: { file: text }, required: ['file'], additionalProperties: false };
  return map(what, example, nameFault, faultOf, { anyOf: [text, file] });
}

function isFileReference(value: unknown): boolean {
  const { file, ...rest } = isJsonObject(value) ? value : {};
  return typeof file === 'string' && file !== '' && !/\p{Cc}/u.test(file) && Object.keys(rest).length === 0;
}

/** Values by name: a section of a file, or a JSON object in a variable. @param example a JSON object @param valueFault default: none has one */
export function map<T extends SettingMap>(
  what: string,
  example: string,
  nameFault: FindFault<string>,
  valueFault: FindFault<unknown> = () => undefined,
  valueSchema: JsonSchema | true = true,
): Format<T> {
  return format({
    expected: `${what}; as a variable a JSON object such as ${example}`,
    check: (value) => {
      if (!isJsonObject(value)) return false;
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

/** The sections of a file are maps. */
function toPlainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlainValue);
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([name, one]) => [name, toPlainValue(one)]));
}

/** An entry of a list of sections, unchecked. */
export type RawSection = Readonly<Record<string, unknown>>;

interface SectionListOptions {
  readonly noun: 'limit' | 'rule';
  readonly maxEntries: number;
  readonly members: readonly string[];
  /** The members that an entry must have, in words. */
  readonly required: string;
  /** A JSON array of valid entries. */
  readonly example: string;
  /** What to write instead of a value that is no section. */
  readonly section: string;
  readonly schema: JsonSchema;
  /** Fills in what an entry leaves out. */
  readonly complete: (entry: RawSection) => RawSection;
  /** An addition to the number of an entry. */
  readonly describe: (entry: RawSection) => string;
  readonly findFault: (entry: RawSection, earlier: readonly RawSection[]) => string | undefined;
}

/** A list of sections in a file, a JSON array in a variable. The fault names every entry that is wrong. */
export function sectionList<T extends readonly unknown[] & SettingValue>(options: SectionListOptions): Format<T> {
  const { noun, maxEntries, members, schema, findFault } = options;
  const faultOf = (entry: unknown, earlier: readonly unknown[]): string | undefined => {
    if (!isJsonObject(entry)) return `expected a section with ${options.section}`;
    const unknown = Object.keys(entry).find((name) => !members.includes(name));
    return unknown === undefined
      ? findFault(entry, earlier.filter(isJsonObject))
      : `unknown member ${JSON.stringify(unknown.slice(0, 40))}; expected ${members.join(', ')}`;
  };
  const complete = (value: unknown): unknown => {
    if (!Array.isArray(value)) return value;
    return value.map((entry: unknown) => {
      const given: unknown = entry instanceof Map ? Object.fromEntries(entry) : entry;
      return isJsonObject(given) ? options.complete(given) : given;
    });
  };
  return format({
    expected: `a list of { ${members.join(', ')} }, of which ${options.required} required; in a variable a JSON array such as ${options.example}`,
    check: (value) => {
      if (!Array.isArray(value)) return false;
      if (value.length > maxEntries) return `expected at most ${String(maxEntries)} ${noun}s`;
      const faults = value.flatMap((entry: unknown, at) => {
        const fault = faultOf(entry, value.slice(0, at));
        const name = isJsonObject(entry) ? options.describe(entry) : '';
        return fault === undefined ? [] : `${noun} ${String(at + 1)}${name}: ${fault}`;
      });
      return faults.length === 0 || faults.join('; ');
    },
    fromText: (text) => complete(parseJson(text) ?? text),
    fromFile: complete,
    schema: { type: 'array', items: schema, maxItems: maxEntries },
  });
}

/** Undefined when the text is not JSON. */
function parseJson(text: string): unknown {
  return tryRead(() => JSON.parse(text) as unknown);
}
