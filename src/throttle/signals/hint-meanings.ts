/**
 * What `throttle.hints` may say about a header field (pure): the closed set of meanings with their units, and the meaning that a
 * field's name suggests, for proposals to the operator. How values are read is in hinted-quotas.ts.
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

/** Digits of an instant: epoch seconds have ten, epoch milliseconds thirteen. */
const EPOCH = /^\d{10}(?:\d{3})?(?:\.\d+)?$/;
/** Units other than requests: a remainder of these says nothing about the next call. */
const OTHER_UNIT = /token|byte|concurren|cost|point|credit|size/;

/** The meaning that name and value suggest; undefined when they suggest none. A suggestion only: the operator decides. */
export function suggestMeaning(lowerCaseName: string, value: string): HintMeaning | undefined {
  if (OTHER_UNIT.test(lowerCaseName)) return undefined;
  const isNumber = /^\d+(?:\.\d+)?$/.test(value);
  const inMs = /(?:-ms|milliseconds|millis)$/.test(lowerCaseName);
  if (/reset|renew|refresh/.test(lowerCaseName)) {
    if (!isNumber || EPOCH.test(value)) return 'resetAt';
    return inMs ? 'resetInMs' : 'resetIn';
  }
  if (!isNumber) return undefined;
  if (/retry|back-?off|wait/.test(lowerCaseName)) return inMs ? 'retryAfterMs' : 'retryAfter';
  if (/window|interval|period/.test(lowerCaseName)) return inMs ? 'windowMs' : 'window';
  if (/remain|left|avail/.test(lowerCaseName)) return 'remaining';
  return /used|count/.test(lowerCaseName) ? undefined : /limit|quota|max/.test(lowerCaseName) ? 'limit' : undefined;
}
