/** Caches the results of pure functions. */

const MAX_ENTRIES = 1000;
const MAX_KEY_LENGTH = 64;

/** Caches the results for the first thousand texts of at most 64 characters. */
export function memoize<V extends object | boolean>(compute: (text: string) => V): (text: string) => V {
  const cache = new Map<string, V>();
  return (text) => {
    const cached = cache.get(text);
    if (cached !== undefined) return cached;
    const value = compute(text);
    if (cache.size < MAX_ENTRIES && text.length <= MAX_KEY_LENGTH) cache.set(text, value);
    return value;
  };
}

/** Caches the last result, and returns it while the key is the same. */
export function memoizeLast<K, V>(compute: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined;
  return (key) => {
    if (last === undefined || last.key !== key) last = { key, value: compute(key) };
    return last.value;
  };
}
