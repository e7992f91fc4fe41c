/**
 * Formats of several texts: lists whose entries may contain commas, and maps from names to texts. In a variable both are JSON.
 * Comma-separated lists are in formats.ts.
 */
import { format } from './formats.ts';
import type { Format, TextMap } from './formats.ts';

interface EntryOptions {
  /** Describes one entry. */
  readonly what: string;
  /** As in a format. */
  readonly check: (entry: string) => boolean | string;
  readonly show?: Format<string>['show'];
}

/** One text, or several as a JSON array (in a file also a list). */
export type OneOrMany = string | readonly string[];

/** One text, or several different ones. */
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

interface TextMapOptions {
  /** Describes the map, with an example. */
  readonly expected: string;
  /** The fault of a name; undefined when there is none. */
  readonly nameFault: (name: string) => string | undefined;
  /** The fault of a value, without quoting it. */
  readonly valueFault: (value: string) => string | undefined;
}

/** Texts by name: a section of a file, or a JSON object in a variable. The values may be secrets. */
export function textMap({ expected, nameFault, valueFault }: TextMapOptions): Format<TextMap> {
  return format({
    expected,
    check: (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      for (const [name, text] of Object.entries(value) as [string, unknown][]) {
        const fault = typeof text === 'string' ? (nameFault(name) ?? valueFault(text)) : 'must be a text in quotes';
        if (fault !== undefined) return `${JSON.stringify(name)}: ${fault}`;
      }
      return true;
    },
    fromText: (text) => parseJson(text) ?? text,
    fromFile: (value) => (value instanceof Map ? (Object.fromEntries(value) as unknown) : value),
    schema: { type: 'object', additionalProperties: { type: 'string', minLength: 1 } },
  });
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
