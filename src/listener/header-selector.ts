/**
 * The values of the few header fields that the listener reads, found in one pass over the raw fields: parsed ones hide repetitions
 * (RFC 9112 §3.2). Pure.
 */

/** By lower-case name, in the order received; a name that did not come is absent. */
export type HeaderValues = ReadonlyMap<string, readonly string[]>;

/** @param names in lower case @returns selects their values from a flat list [name, value, …] */
export function createHeaderSelector(names: Iterable<string>): (rawHeaders: readonly string[]) => HeaderValues {
  // By length: most fields are passed over without a lower-case copy of their name.
  const namesByLength: (string[] | undefined)[] = [];
  for (const name of new Set(names)) (namesByLength[name.length] ??= []).push(name);
  return (rawHeaders) => {
    const values = new Map<string, string[]>();
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      const rawName = rawHeaders[index] ?? '';
      const sameLength = namesByLength[rawName.length];
      if (sameLength === undefined) continue;
      const name = rawName.toLowerCase();
      if (!sameLength.includes(name)) continue;
      const value = rawHeaders[index + 1] ?? '';
      const earlier = values.get(name);
      if (earlier === undefined) values.set(name, [value]);
      else earlier.push(value);
    }
    return values;
  };
}
