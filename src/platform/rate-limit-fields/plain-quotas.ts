/**
 * Reads quotas from separate header fields with one number each (pure): RateLimit-Limit, -Remaining and -Reset of
 * draft-ietf-httpapi-ratelimit-headers up to 06, their X- forms, and one pair for each unit (X-RateLimit-Limit-Minute, as in Kong).
 */
import type { MadeAt } from '../origin-clock.ts';
import { readNumber, readWaitMs, type ReadHeader } from './header-values.ts';
import type { StatedQuota } from './stated-quota.ts';
import { readLimitField } from './structured-quotas.ts';

export const HEADER_FAMILIES = ['ratelimit', 'x-ratelimit', 'x-rate-limit'] as const;
/** Some gateways count these in milliseconds. */
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

/** Lower-case names of all header fields that are read here. */
export const PLAIN_QUOTA_HEADERS: readonly string[] = [
  ...HEADER_FAMILIES.flatMap((family) =>
    ['limit', 'remaining', 'reset', 'reset-after'].map((part) => `${family}-${part}`),
  ),
  ...UNIT_HEADERS.flatMap(({ limit, remaining }) => [limit, remaining]),
];

/** The quota in force, then the policies that are listed after it. @param resetUnitMs unit of a reset that is a duration, milliseconds */
export function readFamilyQuotas(
  readHeader: ReadHeader,
  family: string,
  made: MadeAt,
  resetUnitMs: number,
): StatedQuota[] {
  const { limit, policies } = readLimitField(readHeader(`${family}-limit`));
  const remaining = readNumber(readHeader(`${family}-remaining`));
  const resetAfterMs = readWaitMs(readHeader(`${family}-reset-after`), made);
  const resetInMs = resetAfterMs ?? readWaitMs(readHeader(`${family}-reset`), made, resetUnitMs);
  const { windowMs } = policies.find(({ quota }) => quota === limit) ?? {};
  const others = policies
    .filter(({ quota }) => quota !== limit)
    .map((policy) => ({ ...policy, field: `${family}-limit` }));
  const field = `${family}-${remaining === undefined ? 'limit' : 'remaining'}`;
  return [{ quota: limit, windowMs, remaining, resetInMs, field }, ...others];
}

/** `X-RateLimit-Limit-Minute: 10` and `X-RateLimit-Remaining-Minute: 9`, for each unit that is present. */
export function readUnitQuotas(readHeader: ReadHeader): StatedQuota[] {
  return UNIT_HEADERS.flatMap(({ limit, remaining, windowMs }) => {
    const remainingCalls = readNumber(readHeader(remaining));
    const quota = readNumber(readHeader(limit));
    if (remainingCalls === undefined && quota === undefined) return [];
    const field = remainingCalls === undefined ? limit : remaining;
    return [{ quota: quota === 0 ? undefined : quota, windowMs, remaining: remainingCalls, field }];
  });
}
