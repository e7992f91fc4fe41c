/**
 * A latency histogram with fixed buckets: four per doubling, from 64 µs to half an hour, so that a quantile has an error of at most
 * one eighth. An observation is one increment.
 */

const MIN_LATENCY_US = 64;
const MIN_EXPONENT = 6;
const MAX_LATENCY_MS = 2_000_000;
const MAX_LATENCY_US = 0x7fffffff;

/** Length of the array of counts. */
export const LATENCY_BUCKET_COUNT = 101;

/** The index of the bucket of a duration. */
export function findBucket(durationMs: number): number {
  const us = durationMs < MAX_LATENCY_MS ? (durationMs * 1000) | 0 : MAX_LATENCY_US;
  if (us < MIN_LATENCY_US) return 0;
  const exponent = 31 - Math.clz32(us);
  return ((exponent - MIN_EXPONENT) << 2) + ((us >> (exponent - 2)) & 3) + 1;
}

/**
 * A quantile in milliseconds, as the middle of its bucket; undefined without observations.
 * @param share 0.5 for the median
 */
export function readQuantile(counts: Uint32Array, share: number): number | undefined {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return undefined;
  const rank = Math.max(1, Math.ceil(total * share));
  let seen = 0;
  for (const [bucket, count] of counts.entries()) {
    seen += count;
    if (seen >= rank) return computeBucketMiddleMs(bucket);
  }
  return undefined;
}

/** In milliseconds; undefined without observations. */
export function readPercentiles(counts: Uint32Array): Record<'p50Ms' | 'p95Ms' | 'p99Ms', number | undefined> {
  return { p50Ms: readQuantile(counts, 0.5), p95Ms: readQuantile(counts, 0.95), p99Ms: readQuantile(counts, 0.99) };
}

function computeBucketMiddleMs(bucket: number): number {
  if (bucket === 0) return MIN_LATENCY_US / 2000;
  const quarter = (bucket - 1) & 3;
  const exponent = MIN_EXPONENT + ((bucket - 1) >> 2);
  return ((4.5 + quarter) * 2 ** (exponent - 2)) / 1000;
}
