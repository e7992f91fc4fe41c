/**
 * The buckets of all durations (pure). Each bucket that is exposed is counted in four parts, so that the quantiles of the status page are
 * at most a quarter off; the exposition sums them.
 */

/** Upper bounds, seconds: from the overhead of the sidecar to long queues and slow responses. */
const EXPOSED_BOUNDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];
const PARTS = 4;

/** Upper bounds of the parts, seconds, ascending; the last bucket has none. */
export const DURATION_BOUNDS: readonly number[] = EXPOSED_BOUNDS.flatMap((upper, index) => {
  const lower = EXPOSED_BOUNDS[index - 1] ?? upper / PARTS;
  // The exposed bound itself, since a product may miss it by a rounding.
  return [1, 2, 3, 4].map((part) => (part === PARTS ? upper : lower * (upper / lower) ** (part / PARTS)));
});

/** The number of the bucket of a duration. @param seconds not negative */
export function findBucket(seconds: number): number {
  let low = 0;
  let high = DURATION_BOUNDS.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (seconds > (DURATION_BOUNDS[middle] ?? Infinity)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The exposed buckets: bound and cumulative count, the last with the bound +Inf. */
export function* sumExposedBuckets(
  buckets: ArrayLike<number>,
): Generator<readonly [bound: number | '+Inf', count: number]> {
  let upTo = 0;
  for (const [index, bound] of EXPOSED_BOUNDS.entries()) {
    for (let part = 0; part < PARTS; part++) upTo += buckets[index * PARTS + part] ?? 0;
    yield [bound, upTo];
  }
  yield ['+Inf', upTo + (buckets[DURATION_BOUNDS.length] ?? 0)];
}
