/** Flattens the sections of a configuration file into dotted keys, and reports unknown keys. Values are not checked here. */
import { truncate, type ConfigProblem } from './problems.ts';
import { findNearest } from './nearest.ts';

export interface SectionOptions {
  /** The path of the file, for messages. */
  readonly path: string;
  /** Precedes the keys in problems, such as `routes[1].`; empty at the top level. */
  readonly prefix: string;
  readonly keys: readonly string[];
  /** Keys with a refusal of their own. Default: none. */
  readonly refused?: ReadonlyMap<string, string>;
}

/** The values by dotted key, without the prefix; empty values and null are left out. @typeParam K the keys of `options` */
export function readSections<K extends string>(
  tree: ReadonlyMap<unknown, unknown>,
  options: SectionOptions & { readonly keys: readonly K[] },
) {
  const values = new Map<K, unknown>();
  const problems: ConfigProblem[] = [];
  const known: ReadonlySet<string> = new Set(options.keys);
  const visit = (section: ReadonlyMap<unknown, unknown>, above: string): void => {
    for (const [name, raw] of section) {
      const key = `${above}${String(name)}`;
      const fault = String(name).includes('.')
        ? `unknown key in ${options.path}; ${NO_DOTS_MESSAGE}`
        : options.refused?.get(key);
      const firstKey = options.keys.find((candidate) => candidate.startsWith(`${key}.`));
      if (fault === undefined && known.has(key)) {
        if (raw !== null) values.set(key as K, raw);
      } else if (fault === undefined && firstKey !== undefined && raw instanceof Map) {
        visit(raw, `${key}.`);
      } else if (fault !== undefined || firstKey === undefined || raw !== null) {
        const message =
          fault ?? (firstKey === undefined ? describeUnknownKey(key, options) : describeMissingKeys(firstKey, options));
        problems.push({ key: truncate(options.prefix + key), message });
      }
    }
  };
  visit(tree, '');
  return { values, problems };
}

/** With dots in keys a setting could appear twice without being a YAML duplicate. */
const NO_DOTS_MESSAGE = 'expected sections with keys in them, not dots';

function describeMissingKeys(firstKey: string, { path, prefix }: SectionOptions): string {
  return `found no keys in ${path}; expected a section with keys such as ${prefix}${firstKey}`;
}

function describeUnknownKey(key: string, { path, prefix, keys }: SectionOptions): string {
  const meant = findMeantKey(key, keys);
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

/** The key or section that `key` probably misspells, or its name in another section; undefined when there is none. */
export function findMeantKey(key: string, keys: readonly string[]): string | undefined {
  return findNearest(key, [...keys, ...listSections(keys)]) ?? findSameLastName(key, keys);
}

function findSameLastName(key: string, keys: readonly string[]): string | undefined {
  const last = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  const matches = keys.filter((candidate) => last(candidate) === last(key));
  return matches.length === 1 ? matches[0] : undefined;
}
