/**
 * Reads what an upstream's answer says about its rate limit: Retry-After (RFC 9110 §10.2.3), RateLimit and RateLimit-Policy
 * (draft-ietf-httpapi-ratelimit-headers), its older drafts, and the X- fields in use. Fields of strangers: whatever is
 * malformed is ignored, and nothing here throws. What to do about it is the governor's.
 */
import { MAX_WAIT_MS, readMsUntilDate, readNumber, type ReadHeader } from './header-values.ts';
import { HEADER_FAMILIES, PLAIN_QUOTA_HEADERS, readFamilyQuotas, readUnitQuotas } from './plain-quotas.ts';
import { mergeQuotas, type StatedQuota } from './stated-quota.ts';
import { readDictionaryQuota, readStructuredQuotas, type IsOwnPartition } from './structured-quotas.ts';

/** What one answer said, as far as it was understood. */
export interface RateLimitSignal {
  readonly status: number;
  /** How long the upstream says to wait, milliseconds from now; undefined when it does not say. */
  readonly statedWaitMs: number | undefined;
  /** At most this many further calls ... */
  readonly remaining: number | undefined;
  /** ... within this time, milliseconds from now. */
  readonly resetInMs: number | undefined;
  /** Every quota of requests that it stated, at most 8, each once. */
  readonly quotas: readonly StatedQuota[];
  /** The fields as received, names in lower case, values cut to 200 characters: evidence for the operator. */
  readonly fields: Readonly<Record<string, string>>;
}

/** What no single answer tells. */
export interface SignalContext {
  readonly isOwnPartition: IsOwnPartition;
  /** What one unit of a reset that is a plain number means, milliseconds. */
  readonly resetUnitMs: number;
}

/** Nothing known but this answer: partitions are ours, resets are in seconds. */
const NO_CONTEXT: SignalContext = { isOwnPartition: () => true, resetUnitMs: 1000 };

/** Milliseconds; read where there is no Retry-After. */
const RETRY_AFTER_MS_HEADERS = ['retry-after-ms', 'x-ms-retry-after-ms'];
const SIGNAL_HEADERS = [
  'retry-after',
  ...RETRY_AFTER_MS_HEADERS,
  'ratelimit',
  'ratelimit-policy',
  ...PLAIN_QUOTA_HEADERS,
];
/** Values in evidence are cut to this many characters. */
export const MAX_EVIDENCE_LENGTH = 200;
/** A longer field is not parsed: it would cost time, and no honest one is. */
const MAX_PARSED_LENGTH = 1000;

/**
 * @param wallNow epoch milliseconds, for fields that name a date
 * @returns all durations finite and ≥ 0. `statedWaitMs` is Retry-After, or on a 429 or 403 with nothing remaining the reset.
 */
export function readRateLimitSignal(
  status: number,
  field: ReadHeader,
  wallNow: number,
  context: SignalContext = NO_CONTEXT,
): RateLimitSignal {
  const fields: Record<string, string> = {};
  const parsed = new Map<string, string>();
  for (const name of SIGNAL_HEADERS) {
    const value = field(name);
    if (value === undefined) continue;
    fields[name] = value.slice(0, MAX_EVIDENCE_LENGTH);
    if (value.length <= MAX_PARSED_LENGTH) parsed.set(name, value.trim());
  }
  const read: ReadHeader = (name) => parsed.get(name);
  const sources = readQuotas(read, wallNow, context);
  const { remaining, resetInMs } = selectTightest(sources);
  const isRefused = status === 429 || status === 403;
  const statedWaitMs = readRetryAfter(read, wallNow) ?? (isRefused && remaining === 0 ? resetInMs : undefined);
  return { status, statedWaitMs, remaining, resetInMs, quotas: mergeQuotas(sources.flat()), fields };
}

/** True when one of the quotas has nothing left. */
export function hasExhaustedQuota({ remaining, quotas }: RateLimitSignal): boolean {
  return remaining === 0 || quotas.some((quota) => quota.remaining === 0);
}

function readRetryAfter(field: ReadHeader, wallNow: number): number | undefined {
  const value = field('retry-after');
  if (value !== undefined) {
    // However long: the digits are plain enough, and a wait cut to a year is as good as for ever.
    if (/^\d+(\.\d+)?$/.test(value)) return Math.min(Number(value) * 1000, MAX_WAIT_MS);
    const wait = readMsUntilDate(value, wallNow);
    if (wait !== undefined) return wait;
  }
  for (const name of RETRY_AFTER_MS_HEADERS) {
    const waitMs = readNumber(field(name));
    if (waitMs !== undefined) return Math.min(waitMs, MAX_WAIT_MS);
  }
  return undefined;
}

type QuotaSources = readonly (readonly StatedQuota[])[];

/** By source, those to be believed first. */
function readQuotas(field: ReadHeader, wallNow: number, context: SignalContext): QuotaSources {
  const rateLimit = field('ratelimit');
  const dictionary = readDictionaryQuota(rateLimit, wallNow);
  return [
    readStructuredQuotas(rateLimit, field('ratelimit-policy'), context.isOwnPartition),
    dictionary === undefined ? [] : [dictionary],
    ...HEADER_FAMILIES.map((family) => readFamilyQuotas(field, family, wallNow, context.resetUnitMs)),
    readUnitQuotas(field),
  ];
}

/** Of the first source that says what is left: the quota nearest to its end, and of those the longest closed. */
function selectTightest([structured = [], ...others]: QuotaSources): StatedQuota {
  // Without `t` the policy's window is the longest that the reset can be away.
  const bounded = structured.map((quota) =>
    quota.remaining === undefined ? quota : { ...quota, resetInMs: quota.resetInMs ?? quota.windowMs },
  );
  for (const quotas of [bounded, ...others]) {
    const telling = quotas.filter(({ remaining, resetInMs }) => remaining !== undefined || resetInMs !== undefined);
    const [first, ...rest] = telling;
    if (first !== undefined) return rest.reduce((one, other) => (isTighter(other, one) ? other : one), first);
  }
  return {};
}

function isTighter(one: StatedQuota, other: StatedQuota): boolean {
  const left = (one.remaining ?? Infinity) - (other.remaining ?? Infinity);
  return left < 0 || (one.remaining === other.remaining && (one.resetInMs ?? 0) > (other.resetInMs ?? 0));
}
