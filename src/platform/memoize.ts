/** Caches the results of pure functions. */

const MAX_ENTRIES = 1000;
const MAX_KEY_LENGTH = 64;

/**
 * Caches the results for the first thousand texts of at most 64 characters. A loop over many texts looks into `known`, the results so far, before
 * it calls `find`, which costs no call.
 */
export function memoize<V extends object | boolean>(compute: (text: string) => V) {
  const known = new Map<string, V>();
  const find = (text: string): V => {
    const value = known.get(text) ?? compute(text);
    if (known.size < MAX_ENTRIES && text.length <= MAX_KEY_LENGTH) known.set(text, value);
    return value;
  };
  return { known: known as ReadonlyMap<string, V>, find };
}

/** Caches the last result, and returns it while the key is the same. */
export function memoizeLast<K, V>(compute: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined;
  return (key) => {
    if (last === undefined || last.key !== key) last = { key, value: compute(key) };
    return last.value;
  };
}
