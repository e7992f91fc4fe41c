/** Turns instants of the monotonic clock into those that spans have: milliseconds since the Unix epoch, with fractions. */
import type { Clock } from '../../platform/clock.ts';

/** Fixed for the life of a span and its children, so that a wall clock that jumps bends none of them. */
export function createSpanTimeConverter(clock: Clock): (at: number) => number {
  const offsetMs = clock.wallNow() - clock.now();
  return (at) => at + offsetMs;
}
