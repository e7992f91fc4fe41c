/**
 * Reads what a response says about the upstream's rate limit (pure): Retry-After (RFC 9110 §10.2.3), RateLimit and RateLimit-Policy
 * (draft-ietf-httpapi-ratelimit-headers), their older drafts, and the common X- header fields. Malformed values are ignored, and
 * nothing here throws. pacing/governor.ts acts on the signal.
 */
import { leftOf, type MadeAt } from '../../platform/origin-clock.ts';
import { MAX_PARSED_LENGTH, type ReadHeader } from '../../platform/rate-limit-fields/header-values.ts';
import {
  readConfiguredHints,
  readNamedLimits,
  readVendorLimits,
  type FieldHints,
  type HintedLimits,
} from './hinted-quotas.ts';
import { PLAIN_QUOTA_HEADERS } from '../../platform/rate-limit-fields/plain-quotas.ts';
import { mergeQuotas, type StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';
import {
  boundReset,
  readPlainQuotas,
  readRetryAfterMs,
  RETRY_AFTER_MS_HEADERS,
  selectTightest,
} from '../../platform/rate-limit-fields/stated-wait.ts';
import { readStructuredQuotas, type IsOwnPartition } from '../../platform/rate-limit-fields/structured-quotas.ts';
import { parseFieldName, VENDOR_FIELD_NAMES } from './vendor-fields.ts';

/** The rate-limit information of one response. */
export interface RateLimitSignal {
  readonly status: number;
  /** Stated wait, milliseconds from now; undefined when none is stated. */
  readonly statedWaitMs: number | undefined;
  /** The wait may end this much earlier, milliseconds: 1000 when it was stated in whole seconds, 0 when it is exact. Default 0. */
  readonly waitResolutionMs?: number | undefined;
  /** Further calls that are allowed until the reset. */
  readonly remaining: number | undefined;
  /** Milliseconds from now. */
  readonly resetInMs: number | undefined;
  /** All stated request quotas, at most 8, each once. */
  readonly quotas: readonly StatedQuota[];
}

/** Known from earlier responses, see observed-signal-context.ts. */
export interface SignalContext {
  readonly isOwnPartition: IsOwnPartition;
  /** Unit of a reset that is a duration, milliseconds. */
  readonly resetUnitMs: number;
  /** `throttle.hints`. A field that is named there has no other meaning. */
  readonly hints: FieldHints;
}

/** Without earlier responses: partitions are ours, resets are in seconds. */
const NO_CONTEXT: SignalContext = { isOwnPartition: () => true, resetUnitMs: 1000, hints: new Map() };

const VENDOR_FIELDS: ReadonlySet<string> = new Set(VENDOR_FIELD_NAMES);
const NO_LIMITS: HintedLimits = { quotas: [], waitMs: undefined };
/** Lower-case names of the header fields that are read without a hint, but for those whose names say what they state. */
export const SIGNAL_HEADERS: ReadonlySet<string> = new Set([
  'retry-after',
  ...RETRY_AFTER_MS_HEADERS,
  'ratelimit',
  'ratelimit-policy',
  ...PLAIN_QUOTA_HEADERS,
  ...VENDOR_FIELDS,
]);

/** Whether a field with this name in lower case is read without a hint. */
export function isLimitField(name: string): boolean {
  return SIGNAL_HEADERS.has(name) || parseFieldName(name) !== undefined;
}

/**
 * All durations are finite and not negative. `statedWaitMs` is Retry-After, or the reset of a refusal with nothing remaining.
 * @param fields values by lower-case name, several lines joined by a comma; others than those of limits do no harm
 * @param isRefused default: for 429 and 403
 * @param made when the origin made the response
 */
export function readRateLimitSignal(
  status: number,
  fields: ReadonlyMap<string, string>,
  made: MadeAt,
  context: SignalContext = NO_CONTEXT,
  isRefused = status === 429 || status === 403,
): RateLimitSignal {
  const { hints, isOwnPartition } = context;
  const texts = new Map<string, string>();
  for (const [name, value] of fields) if (value.length <= MAX_PARSED_LENGTH) texts.set(name, value.trim());
  const configured = readConfiguredHints((name) => texts.get(name), hints, made);
  // Each field has one meaning: the configured one, or by its name.
  const read: ReadHeader = (name) => (hints.has(name) ? undefined : texts.get(name));
  const isVendors = (name: string): boolean => VENDOR_FIELDS.has(name) && !hints.has(name);
  const vendors = [...texts.keys()].some(isVendors) ? readVendorLimits(read, made) : NO_LIMITS;
  const byName = readNamedLimits(
    [...texts].filter(([name]) => !hints.has(name) && !SIGNAL_HEADERS.has(name)),
    made,
  );
  const structured = readStructuredQuotas(read('ratelimit'), read('ratelimit-policy'), isOwnPartition);
  const plain = [...readPlainQuotas(read, made, context.resetUnitMs), [...byName.quotas, ...vendors.quotas]];
  const tightest = selectTightest([configured.quotas, structured.map(boundReset), ...plain]);
  const waitMs =
    configured.waitMs ??
    readRetryAfterMs(read, made) ??
    byName.waitMs ??
    vendors.waitMs ??
    (isRefused && tightest.remaining === 0 ? tightest.resetInMs : undefined);
  const waitResolutionMs = waitMs === undefined ? undefined : resolutionOf(waitMs, fields, made.ownAt);
  const { remaining, resetInMs } = ageQuota(tightest, made);
  const quotas = mergeQuotas([configured.quotas, structured, ...plain].flat()).map((quota) => ageQuota(quota, made));
  return { status, statedWaitMs: leftOf(waitMs, made), waitResolutionMs, remaining, resetInMs, quotas };
}

/** What is left of a quota; nothing is known of the calls remaining in a window that has ended since the response was made. */
function ageQuota({ quota, windowMs, remaining, resetInMs, field }: StatedQuota, made: MadeAt): StatedQuota {
  const hasEnded = (resetInMs ?? windowMs ?? Infinity) < made.ageMs;
  return { quota, windowMs, remaining: hasEnded ? undefined : remaining, resetInMs: leftOf(resetInMs, made), field };
}

/** True when a quota has no calls remaining. */
export function hasExhaustedQuota({ remaining, quotas }: RateLimitSignal): boolean {
  return remaining === 0 || quotas.some((quota) => quota.remaining === 0);
}

/** Whole seconds, or an instant in whole seconds, are rounded: most servers round up. */
function resolutionOf(waitMs: number, fields: ReadonlyMap<string, string>, ownAt: number): number {
  const isWholeSeconds = waitMs % 1000 === 0 || (waitMs + ownAt) % 1000 === 0;
  const isInMs = RETRY_AFTER_MS_HEADERS.some((name) => Number(fields.get(name)) === waitMs);
  return isWholeSeconds && !isInMs ? 1000 : 0;
}

/**
 * One replica's part of a signal: counts are divided and rounded down, so that all parts together never exceed them; waits stay.
 * @param replicas at least 1
 */
export function divideSignal(signal: RateLimitSignal, replicas: number): RateLimitSignal {
  if (replicas === 1) return signal;
  const part = (count: number | undefined): number | undefined =>
    count === undefined ? undefined : Math.floor(count / replicas);
  return {
    ...signal,
    remaining: part(signal.remaining),
    quotas: signal.quotas.map((stated) => ({
      ...stated,
      // With a quota smaller than the number of replicas, each replica has one call in several windows.
      ...(stated.quota === undefined ? {} : divideQuota(stated.quota, stated.windowMs, replicas)),
      remaining: part(stated.remaining),
    })),
  };
}

function divideQuota(quota: number, windowMs: number | undefined, replicas: number) {
  if (quota >= replicas) return { quota: Math.floor(quota / replicas), windowMs };
  return { quota: 1, windowMs: windowMs === undefined ? undefined : (windowMs * replicas) / quota };
}
