/**
 * Reads what a response says about the upstream's rate limit (pure): Retry-After (RFC 9110 §10.2.3), RateLimit and RateLimit-Policy
 * (draft-ietf-httpapi-ratelimit-headers), their older drafts, and the common X- header fields. Malformed values are ignored, and
 * nothing here throws. pacing/governor.ts acts on the signal.
 */
import { MAX_PARSED_LENGTH, type ReadHeader } from '../../platform/rate-limit-fields/header-values.ts';
import { readConfiguredHints, readNamedLimits, readVendorLimits } from './hinted-quotas.ts';
import type { FieldHints } from './hint-meanings.ts';
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

const STANDARD_HEADERS = [
  'retry-after',
  ...RETRY_AFTER_MS_HEADERS,
  'ratelimit',
  'ratelimit-policy',
  ...PLAIN_QUOTA_HEADERS,
];
/** Lower-case names of the header fields that are read without a hint, but for those whose names say what they state. */
export const SIGNAL_HEADERS: ReadonlySet<string> = new Set([...STANDARD_HEADERS, ...VENDOR_FIELD_NAMES]);

/** Whether a field with this name in lower case is read without a hint. */
export function isLimitField(name: string): boolean {
  return SIGNAL_HEADERS.has(name) || parseFieldName(name) !== undefined;
}

/**
 * All durations are finite and not negative. `statedWaitMs` is Retry-After, or the reset of a refusal with nothing remaining.
 * @param fields values by lower-case name, several lines joined by a comma; others than those of limits do no harm
 * @param isRefused default: for 429 and 403
 * @param wallNow epoch milliseconds, for dates
 */
export function readRateLimitSignal(
  status: number,
  fields: ReadonlyMap<string, string>,
  wallNow: number,
  context: SignalContext = NO_CONTEXT,
  isRefused = status === 429 || status === 403,
): RateLimitSignal {
  const { hints } = context;
  const parsed = new Map<string, string>();
  const named = new Map<string, string>();
  for (const [name, value] of fields) {
    if (value.length > MAX_PARSED_LENGTH) continue;
    const isKnown = hints.has(name) || SIGNAL_HEADERS.has(name);
    (isKnown ? parsed : named).set(name, value.trim());
  }
  const configured = readConfiguredHints((name) => parsed.get(name), hints, wallNow);
  const readParsed: ReadHeader = (name) => (hints.has(name) ? undefined : parsed.get(name));
  const vendors = readVendorLimits(readParsed, wallNow);
  const byName = readNamedLimits(named, wallNow);
  const structured = readStructuredQuotas(
    readParsed('ratelimit'),
    readParsed('ratelimit-policy'),
    context.isOwnPartition,
  );
  const plain = [...readPlainQuotas(readParsed, wallNow, context.resetUnitMs), byName.quotas, vendors.quotas];
  const { remaining, resetInMs } = selectTightest([configured.quotas, structured.map(boundReset), ...plain]);
  const statedWaitMs =
    configured.waitMs ??
    readRetryAfterMs(readParsed, wallNow) ??
    byName.waitMs ??
    vendors.waitMs ??
    (isRefused && remaining === 0 ? resetInMs : undefined);
  const waitResolutionMs = statedWaitMs === undefined ? undefined : resolutionOf(statedWaitMs, parsed, wallNow);
  const quotas = mergeQuotas([configured.quotas, structured, ...plain].flat());
  return { status, statedWaitMs, waitResolutionMs, remaining, resetInMs, quotas };
}

/** True when a quota has no calls remaining. */
export function hasExhaustedQuota({ remaining, quotas }: RateLimitSignal): boolean {
  return remaining === 0 || quotas.some((quota) => quota.remaining === 0);
}

/** Whole seconds, or an instant in whole seconds, are rounded: most servers round up. */
function resolutionOf(waitMs: number, parsed: ReadonlyMap<string, string>, wallNow: number): number {
  const isWholeSeconds = waitMs % 1000 === 0 || (waitMs + wallNow) % 1000 === 0;
  const isInMs = RETRY_AFTER_MS_HEADERS.some((name) => Number(parsed.get(name)) === waitMs);
  return isWholeSeconds && !isInMs ? 1000 : 0;
}
