/**
 * Reads the quotas in separate fields, one number each (pure): RateLimit-Limit, -Remaining and -Reset of the drafts up to 06,
 * the X- forms of the same, and Kong's X-RateLimit-Limit-Minute and the like. Resets come as durations, as epochs and as dates.
 */
import { plausibleWaitMs, readMsUntilDate, readNumber, resetInMsOf, type ReadHeader } from './header-values.ts';
import type { StatedQuota } from './stated-quota.ts';
import { readLimitField } from './structured-quotas.ts';

/** What the names begin with. */
export const HEADER_FAMILIES = ['ratelimit', 'x-ratelimit', 'x-rate-limit'] as const;
/** A plain number in milliseconds at some gateways: only successive answers tell. */
export const RESET_HEADERS = HEADER_FAMILIES.map((family) => `${family}-reset`);

const SECOND_MS = 1000;
const DAY_MS = 86_400_000;
const WINDOWS_MS = {
  second: SECOND_MS,
  minute: 60 * SECOND_MS,
  hour: 3600 * SECOND_MS,
  day: DAY_MS,
  month: 30 * DAY_MS,
  year: 365 * DAY_MS,
};
const UNIT_HEADERS = Object.entries(WINDOWS_MS).map(([unit, windowMs]) => ({
  limit: `x-ratelimit-limit-${unit}`,
  remaining: `x-ratelimit-remaining-${unit}`,
  windowMs,
}));

/** Every field that is read here, in lower case. */
export const PLAIN_QUOTA_HEADERS: readonly string[] = [
  ...HEADER_FAMILIES.flatMap((family) =>
    ['limit', 'remaining', 'reset', 'reset-after'].map((part) => `${family}-${part}`),
  ),
  ...UNIT_HEADERS.flatMap(({ limit, remaining }) => [limit, remaining]),
];

/**
 * What one family says: first the quota in force, then the policies named behind it.
 * @param resetUnitMs what one unit of a reset that is a plain number means, milliseconds
 */
export function readFamilyQuotas(
  field: ReadHeader,
  family: string,
  wallNow: number,
  resetUnitMs: number,
): StatedQuota[] {
  const { limit, policies } = readLimitField(field(`${family}-limit`));
  const remaining = readNumber(field(`${family}-remaining`));
  const resetInMs = readResetAfter(field(`${family}-reset-after`)) ?? readReset(field, family, wallNow, resetUnitMs);
  const { windowMs } = policies.find(({ quota }) => quota === limit) ?? {};
  const others = policies.filter(({ quota }) => quota !== limit);
  return [{ quota: limit, windowMs, remaining, resetInMs }, ...others];
}

/** `X-RateLimit-Limit-Minute: 10` and `X-RateLimit-Remaining-Minute: 9`, for each unit that is there. */
export function readUnitQuotas(field: ReadHeader): StatedQuota[] {
  return UNIT_HEADERS.flatMap(({ limit, remaining, windowMs }) => {
    const left = readNumber(field(remaining));
    const quota = readNumber(field(limit));
    if (left === undefined && quota === undefined) return [];
    return [{ quota: quota === 0 ? undefined : quota, windowMs, remaining: left }];
  });
}

function readReset(field: ReadHeader, family: string, wallNow: number, unitMs: number): number | undefined {
  const text = field(`${family}-reset`);
  if (text === undefined) return undefined;
  return resetInMsOf(readNumber(text), wallNow, unitMs) ?? readMsUntilDate(text, wallNow);
}

/** Seconds, and never anything else. */
function readResetAfter(text: string | undefined): number | undefined {
  const seconds = readNumber(text);
  return seconds === undefined ? undefined : plausibleWaitMs(seconds * 1000);
}
