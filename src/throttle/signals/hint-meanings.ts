/**
 * What `throttle.hints` may say about a header field (pure): the closed set of meanings with their units. How values are read is in
 * hinted-quotas.ts.
 */

/** The meanings that `throttle.hints` knows; a name that ends in `Ms` counts milliseconds, `resetIn`, `retryAfter` and `window` count seconds. */
export const HINT_MEANINGS = [
  'remaining',
  'limit',
  'resetAt',
  'resetIn',
  'resetInMs',
  'retryAfter',
  'retryAfterMs',
  'window',
  'windowMs',
] as const;

export type HintMeaning = (typeof HINT_MEANINGS)[number];

/** Meanings by the lower-case names of header fields, in the configured order. */
export type FieldHints = ReadonlyMap<string, HintMeaning>;

/** The hints of a configuration, whose names may be in any case. */
export function createFieldHints(configured: Readonly<Record<string, string>>): FieldHints {
  const hints = new Map<string, HintMeaning>();
  for (const [name, meaning] of Object.entries(configured)) {
    const known = HINT_MEANINGS.find((one) => one === meaning);
    if (known !== undefined) hints.set(name.toLowerCase(), known);
  }
  return hints;
}
