/** Answers that are asked for again and again, kept: pure functions only. */

/** Kept at most; whoever asks for others all the time has each worked out anew. */
const MAX_ENTRIES = 1000;
const MAX_KEY_LENGTH = 64;

/** `work` with its answers kept, for short texts. Bounded: the first thousand stay. */
export function memoize<V extends object | boolean>(work: (text: string) => V): (text: string) => V {
  const kept = new Map<string, V>();
  return (text) => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const worked = work(text);
    if (kept.size < MAX_ENTRIES && text.length <= MAX_KEY_LENGTH) kept.set(text, worked);
    return worked;
  };
}

/** `work` with its last answer kept: asked for the same again, it gives the same again. */
export function memoizeLast<K, V>(work: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined;
  return (key) => {
    if (last === undefined || last.key !== key) last = { key, value: work(key) };
    return last.value;
  };
}
