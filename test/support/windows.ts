/** Counts what falls into windows of time. */

/**
 * The most instants that any window of `widthMs` holds, its end excluded.
 * @param instants in any order
 */
export function maxCountInWindow(instants: readonly number[], widthMs: number): number {
  const sorted = instants.toSorted((a, b) => a - b);
  let first = 0;
  let most = 0;
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[first] ?? at) >= widthMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
