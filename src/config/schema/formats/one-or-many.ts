/**
 * Formats of settings that hold several texts: lists whose entries may hold commas, and maps from names to texts. In a
 * variable both are written in JSON. Lists of plain names are in formats.ts.
 */
import { format } from './formats.ts';
import type { Format, TextMap } from './formats.ts';

interface EntryOptions {
  /** What one entry is, in words. */
  readonly what: string;
  /** True when fine, or words. */
  readonly check: (entry: string) => boolean | string;
  readonly show?: Format<string>['show'];
}

/** One text stays as it is; several are a JSON array, in a file also a list. */
export type OneOrMany = string | readonly string[];

/** One text, or several, each once. */
export function oneOrMany({ what, check, show = (text) => text }: EntryOptions): Format<OneOrMany> {
  const expected = `${what}; several as a JSON array`;
  const fault = (entry: unknown): string | undefined => {
    if (typeof entry === 'number' || typeof entry === 'boolean') return `expected ${what}; write it in quotes`;
    const verdict = typeof entry === 'string' ? check(entry) : false;
    return verdict === true ? undefined : verdict === false ? `expected ${what}` : verdict;
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
  });
}

/** As a list, whether one or several; not set is none. */
export function toList(value: OneOrMany | null): readonly string[] {
  return typeof value === 'string' ? [value] : (value ?? []);
}

interface TextMapOptions {
  /** What the map says, in words, with an example. */
  readonly expected: string;
  /** What is wrong with a name; undefined when nothing is. */
  readonly nameFault: (name: string) => string | undefined;
  /** What is wrong with a value, without showing it. */
  readonly valueFault: (value: string) => string | undefined;
}

/** Names with their values: a section of a file, or a JSON object in a variable. The values may be secrets. */
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
  });
}

/** Undefined when it is none. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's words quote the text, which may be a secret; the format's own say what is expected.
    return undefined;
  }
}
