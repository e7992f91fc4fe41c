/** A quota as an upstream states it, and the merging of several statements of one quota (pure). */

/** One quota in one response; members that are not stated are absent. */
export interface StatedQuota {
  /** Calls allowed in a window, above 0. */
  readonly quota?: number | undefined;
  /** Length of the window, milliseconds, above 0. */
  readonly windowMs?: number | undefined;
  readonly remaining?: number | undefined;
  readonly resetInMs?: number | undefined;
  /** Lower-case name of the header field that states the remainder, or else the quota. */
  readonly field?: string | undefined;
}

/** Further quotas are ignored. */
const MAX_QUOTAS = 8;
/** Some header fields round to seconds, and so does the `Date` by which an instant is read. */
const RESET_TOLERANCE_MS = 2_500;

/** Each quota once: gateways state one quota in several header fields. */
export function mergeQuotas(quotas: readonly StatedQuota[]): readonly StatedQuota[] {
  const merged: StatedQuota[] = [];
  for (const quota of quotas) {
    const at = merged.findIndex((other) => isSameQuota(quota, other));
    if (at >= 0) merged[at] = mergeQuota(merged[at] ?? {}, quota);
    else if (merged.length < MAX_QUOTAS && !isEmpty(quota)) merged.push(quota);
  }
  return merged;
}

/** True when they share a count and no member differs. */
function isSameQuota(one: StatedQuota, other: StatedQuota): boolean {
  const sharesCount =
    one.quota !== undefined && other.quota !== undefined
      ? one.quota === other.quota
      : one.remaining !== undefined && one.remaining === other.remaining;
  return (
    sharesCount &&
    areCompatible(one.quota, other.quota) &&
    areCompatible(one.windowMs, other.windowMs) &&
    areCompatible(one.remaining, other.remaining) &&
    areCompatible(one.resetInMs, other.resetInMs, RESET_TOLERANCE_MS)
  );
}

function areCompatible(one: number | undefined, other: number | undefined, within = 0): boolean {
  return one === undefined || other === undefined || Math.abs(one - other) <= within;
}

function mergeQuota(first: StatedQuota, second: StatedQuota): StatedQuota {
  return {
    quota: first.quota ?? second.quota,
    windowMs: first.windowMs ?? second.windowMs,
    remaining: first.remaining ?? second.remaining,
    resetInMs: first.resetInMs ?? second.resetInMs,
    field:
      first.remaining === undefined && second.remaining !== undefined ? second.field : (first.field ?? second.field),
  };
}

function isEmpty({ quota, windowMs, remaining, resetInMs }: StatedQuota): boolean {
  return quota === undefined && windowMs === undefined && remaining === undefined && resetInMs === undefined;
}
