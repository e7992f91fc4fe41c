/**
 * Reads what an upstream's answer says about its rate limit: Retry-After (RFC 9110 §10.2.3), RateLimit and RateLimit-Policy
 * (draft-ietf-httpapi-ratelimit-headers), its older drafts, and the X- fields in use. Fields of strangers: whatever is
 * malformed is ignored, and nothing here throws. What to do about it is the governor's.
 */
import { parseDictionary, parseList } from 'structured-headers';
import { readHttpDate } from '../http-date.ts';

/** What one answer said, as far as it was understood. */
export interface RateLimitSignal {
  readonly status: number;
  /** How long the upstream says to wait, milliseconds from now; undefined when it does not say. */
  readonly statedWaitMs: number | undefined;
  /** At most this many further calls ... */
  readonly remaining: number | undefined;
  /** ... within this time, milliseconds from now. */
  readonly resetInMs: number | undefined;
  /** The fields as received, names in lower case, values cut to 200 characters: evidence for the operator. */
  readonly fields: Readonly<Record<string, string>>;
}

/** The value of a response field by its lower-case name, several lines joined by a comma; undefined when absent. */
export type ReadField = (lowerCaseName: string) => string | undefined;

interface Allowance {
  readonly remaining: number | undefined;
  readonly resetInMs: number | undefined;
}

/** Separate fields, by what their names begin with; the first family that says anything is believed. */
const FAMILIES = ['ratelimit', 'x-ratelimit', 'x-rate-limit'];
const FIELD_NAMES = [
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  ...FAMILIES.flatMap((family) => [`${family}-limit`, `${family}-remaining`, `${family}-reset`]),
];
const EVIDENCE_LENGTH = 200;
/** A longer field is not parsed: it would cost time, and no honest one is. */
const LONGEST_FIELD = 1000;
/** A wait beyond a year is garbage. */
const LONGEST_WAIT_MS = 366 * 24 * 3600 * 1000;

/**
 * @param wallNow epoch milliseconds, for fields that name a date
 * @returns all durations finite and ≥ 0. `statedWaitMs` is Retry-After, or on a 429 with nothing remaining the reset.
 */
export function readRateLimitSignal(status: number, field: ReadField, wallNow: number): RateLimitSignal {
  const fields: Record<string, string> = {};
  for (const name of FIELD_NAMES) {
    const value = field(name);
    if (value !== undefined) fields[name] = value.slice(0, EVIDENCE_LENGTH);
  }
  const parsed: ReadField = (name) => {
    const value = name in fields ? field(name)?.trim() : undefined;
    return value !== undefined && value.length <= LONGEST_FIELD ? value : undefined;
  };
  const { remaining, resetInMs } = readAllowance(parsed, wallNow);
  const untilReset = status === 429 && remaining === 0 ? resetInMs : undefined;
  return { status, statedWaitMs: readRetryAfter(parsed, wallNow) ?? untilReset, remaining, resetInMs, fields };
}

function readRetryAfter(field: ReadField, wallNow: number): number | undefined {
  const value = field('retry-after');
  if (value === undefined) return undefined;
  // However long: the digits are plain enough, and a wait cut to a year is as good as for ever.
  if (/^\d+(\.\d+)?$/.test(value)) return Math.min(Number(value) * 1000, LONGEST_WAIT_MS);
  const date = readHttpDate(value, wallNow);
  return date === undefined ? undefined : plausible(date - wallNow);
}

function readAllowance(field: ReadField, wallNow: number): Allowance {
  const combined = readCombined(field) ?? readCombinedDictionary(field, wallNow);
  if (combined !== undefined) return combined;
  for (const family of FAMILIES) {
    const remaining = readNumber(field(`${family}-remaining`));
    const resetInMs = readReset(readNumber(field(`${family}-reset`)), wallNow);
    if (remaining !== undefined || resetInMs !== undefined) return { remaining, resetInMs };
  }
  return { remaining: undefined, resetInMs: undefined };
}

/** `RateLimit: "burst";r=50;t=30`: of several quotas the one nearest to its end, and of those the longest closed. */
function readCombined(field: ReadField): Allowance | undefined {
  const windows = readWindows(field('ratelimit-policy'));
  let tightest: (Allowance & { readonly remaining: number }) | undefined;
  for (const [quota, parameters] of parseOrNothing(parseList, field('ratelimit'))) {
    const remaining: unknown = parameters.get('r');
    if (typeof remaining !== 'number' || !(remaining >= 0)) continue;
    // Without `t` the policy's window is the longest that the reset can be away.
    const seconds: unknown = parameters.get('t') ?? windows.get(String(quota));
    const resetInMs = typeof seconds === 'number' ? plausible(seconds * 1000) : undefined;
    const left = remaining - (tightest?.remaining ?? Infinity);
    if (left < 0 || (left === 0 && (resetInMs ?? 0) > (tightest?.resetInMs ?? 0))) tightest = { remaining, resetInMs };
  }
  return tightest;
}

/** `RateLimit-Policy: "burst";q=100;w=60`: the window of each policy, seconds. */
function readWindows(policy: string | undefined): Map<string, number> {
  const windows = new Map<string, number>();
  for (const [name, parameters] of parseOrNothing(parseList, policy)) {
    const seconds: unknown = parameters.get('w');
    if (typeof seconds === 'number') windows.set(String(name), seconds);
  }
  return windows;
}

/** `RateLimit: limit=10, remaining=0, reset=5`, the form of the drafts up to 07. */
function readCombinedDictionary(field: ReadField, wallNow: number): Allowance | undefined {
  const members = new Map(parseOrNothing(parseDictionary, field('ratelimit')));
  const remaining = numberOrUndefined(members.get('remaining')?.[0]);
  const resetInMs = readReset(numberOrUndefined(members.get('reset')?.[0]), wallNow);
  return remaining === undefined && resetInMs === undefined ? undefined : { remaining, resetInMs };
}

function parseOrNothing<T>(parse: (text: string) => Iterable<T>, text: string | undefined): Iterable<T> {
  if (text === undefined) return [];
  try {
    return parse(text);
  } catch {
    // RFC 9651 §4.2: a field that fails to parse is ignored as a whole.
    return [];
  }
}

function numberOrUndefined(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined;
}

function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined;
}

/** A reset is seconds from now, epoch seconds or epoch milliseconds: their sizes do not overlap below a year. */
function readReset(value: number | undefined, wallNow: number): number | undefined {
  if (value === undefined) return undefined;
  if (value * 1000 <= LONGEST_WAIT_MS) return value * 1000;
  return plausible(value * 1000 - wallNow) ?? plausible(value - wallNow);
}

function plausible(waitMs: number): number | undefined {
  return waitMs >= 0 && waitMs <= LONGEST_WAIT_MS ? waitMs : undefined;
}
