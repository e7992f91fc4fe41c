/** Converts monotonic instants to span times: milliseconds since the Unix epoch, with fractions. */
import type { Clock } from '../../platform/clock.ts';

/** The offset is fixed for a span and its children, so that a jump of the wall clock does not change their order or length. */
export function createSpanTimeConverter(clock: Clock): (at: number) => number {
  const offsetMs = clock.wallNow() - clock.now();
  return (at) => at + offsetMs;
}
