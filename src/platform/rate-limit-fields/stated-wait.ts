/**
 * Reads how long a response asks its client to wait (pure): Retry-After (RFC 9110 §10.2.3), and the tightest of the quotas that the standard
 * and the common X- header fields state. Whether that wait is obeyed is decided by the callers.
 */
import { MAX_WAIT_MS, readMsUntilDate, readNumber, type ReadHeader } from './header-values.ts';
import { HEADER_FAMILIES, readFamilyQuotas, readUnitQuotas } from './plain-quotas.ts';
import type { StatedQuota } from './stated-quota.ts';
import { readDictionaryQuota, readStructuredQuotas } from './structured-quotas.ts';

/** In milliseconds; read when there is no usable Retry-After. */
export const RETRY_AFTER_MS_HEADERS = ['retry-after-ms', 'x-ms-retry-after-ms'];

/** `Retry-After` (RFC 9110 §10.2.3) or its forms in milliseconds; undefined when absent, unreadable or in the past. */
export function readRetryAfterMs(readHeader: ReadHeader, wallNow: number): number | undefined {
  const value = readHeader('retry-after');
  if (value !== undefined) {
    // A number of any length is meant as a wait; it is cut to a year.
    if (/^\d+(\.\d+)?$/.test(value)) return Math.min(Number(value) * 1000, MAX_WAIT_MS);
    const wait = readMsUntilDate(value, wallNow);
    if (wait !== undefined) return wait;
  }
  for (const name of RETRY_AFTER_MS_HEADERS) {
    const waitMs = readNumber(readHeader(name));
    if (waitMs !== undefined) return Math.min(waitMs, MAX_WAIT_MS);
  }
  return undefined;
}

type QuotaSources = readonly (readonly StatedQuota[])[];

/** By source, in order of precedence. @param resetUnitMs unit of a reset that is a duration, milliseconds */
export function readPlainQuotas(readHeader: ReadHeader, wallNow: number, resetUnitMs = 1000): QuotaSources {
  const dictionary = readDictionaryQuota(readHeader('ratelimit'), wallNow);
  return [
    dictionary === undefined ? [] : [dictionary],
    ...HEADER_FAMILIES.map((family) => readFamilyQuotas(readHeader, family, wallNow, resetUnitMs)),
    readUnitQuotas(readHeader),
  ];
}

/** Without `t` the reset can be as far away as the policy's window is long. */
export function boundReset(quota: StatedQuota): StatedQuota {
  return quota.remaining === undefined ? quota : { ...quota, resetInMs: quota.resetInMs ?? quota.windowMs };
}

/** In the first source with a remaining count or a reset: the quota with fewest calls remaining, among equals the latest reset. */
export function selectTightest(sources: QuotaSources): StatedQuota {
  for (const quotas of sources) {
    const [first, ...rest] = quotas.filter(
      ({ remaining, resetInMs }) => remaining !== undefined || resetInMs !== undefined,
    );
    if (first !== undefined) return rest.reduce((one, other) => (isTighter(other, one) ? other : one), first);
  }
  return {};
}

function isTighter(one: StatedQuota, other: StatedQuota): boolean {
  const difference = (one.remaining ?? Infinity) - (other.remaining ?? Infinity);
  return difference < 0 || (one.remaining === other.remaining && (one.resetInMs ?? 0) > (other.resetInMs ?? 0));
}

/** Milliseconds until the reset of the tightest quota, unless calls remain: then the response is not due to a quota. */
export function readResetMs(readHeader: ReadHeader, wallNow: number): number | undefined {
  const structured = readStructuredQuotas(readHeader('ratelimit'), readHeader('ratelimit-policy'), () => true);
  const sources = [structured.map(boundReset), ...readPlainQuotas(readHeader, wallNow)];
  const { remaining = 0, resetInMs } = selectTightest(sources);
  return remaining === 0 ? resetInMs : undefined;
}
