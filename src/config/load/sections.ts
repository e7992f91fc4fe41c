/**
 * Flattens sections of a configuration file into dotted keys, and says which keys nobody knows and what was probably meant.
 * Whether a value is any good is not judged here.
 */
import type { ConfigProblem } from '../config.ts';
import { findNearest } from './nearest.ts';
import { truncate } from './problems.ts';

export interface SectionOptions {
  /** The file, for words. */
  readonly path: string;
  /** What stands before the keys in problems, such as `routes[1].`; empty at the top level. */
  readonly prefix: string;
  /** Every key there is. */
  readonly keys: readonly string[];
  /** Keys that are refused with words of their own. Default: none. */
  readonly refused?: ReadonlyMap<string, string>;
}

export interface SectionReadResult<K extends string> {
  /** By dotted key, without the prefix. A key with nothing (or null) after it is left out. */
  readonly values: ReadonlyMap<K, unknown>;
  readonly problems: readonly ConfigProblem[];
}

/** @typeParam K the keys of `terms` */
export function readSections<K extends string>(
  tree: ReadonlyMap<unknown, unknown>,
  terms: SectionOptions & { readonly keys: readonly K[] },
): SectionReadResult<K> {
  const values = new Map<K, unknown>();
  const problems: ConfigProblem[] = [];
  const known: ReadonlySet<string> = new Set(terms.keys);
  const visit = (section: ReadonlyMap<unknown, unknown>, above: string): void => {
    for (const [name, raw] of section) {
      const key = `${above}${String(name)}`;
      const fault = String(name).includes('.')
        ? `unknown key in ${terms.path}; ${NO_DOTS_MESSAGE}`
        : terms.refused?.get(key);
      const firstKey = terms.keys.find((candidate) => candidate.startsWith(`${key}.`));
      if (fault === undefined && known.has(key)) {
        if (raw !== null) values.set(key as K, raw);
      } else if (fault === undefined && firstKey !== undefined && raw instanceof Map) {
        visit(raw, `${key}.`);
      } else if (fault !== undefined || firstKey === undefined || raw !== null) {
        const message =
          fault ?? (firstKey === undefined ? describeUnknownKey(key, terms) : describeMissingKeys(firstKey, terms));
        problems.push({ key: truncate(terms.prefix + key), variable: undefined, message });
      }
    }
  };
  visit(tree, '');
  return { values, problems };
}

/** Accepted, a dot could say the same setting twice without being a duplicate. */
const NO_DOTS_MESSAGE = 'expected sections with keys in them, not dots';

function describeMissingKeys(firstKey: string, { path, prefix }: SectionOptions): string {
  return `found no keys in ${path}; expected a section with keys such as ${prefix}${firstKey}`;
}

function describeUnknownKey(key: string, { path, prefix, keys }: SectionOptions): string {
  const meant = findNearest(key, [...keys, ...listSections(keys)]) ?? findSameLastName(key, keys);
  return `unknown key in ${path}${meant === undefined ? '' : `; did you mean ${prefix}${meant}?`}`;
}

/** The sections of dotted keys, each once: `listen` and `listen.requiredHeader` of `listen.requiredHeader.name`. */
export function listSections(keys: Iterable<string>): Set<string> {
  return new Set(
    [...keys].flatMap((key) => {
      const above = key.split('.').slice(0, -1);
      return above.map((_, depth) => above.slice(0, depth + 1).join('.'));
    }),
  );
}

/** A right name in a wrong section. */
function findSameLastName(key: string, keys: readonly string[]): string | undefined {
  const last = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  const matches = keys.filter((candidate) => last(candidate) === last(key));
  return matches.length === 1 ? matches[0] : undefined;
}
