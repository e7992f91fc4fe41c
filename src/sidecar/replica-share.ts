/** What is configured for all replicas together, divided among them (`throttle.share`). */
import type { ThrottleConfig } from '../config/config.ts';

/** One replica's part: all parts together never exceed the whole, but for a burst smaller than their number. */
export function divideAmongReplicas(throttle: ThrottleConfig): ThrottleConfig {
  const { rate, burst, maxRate, share } = throttle;
  return {
    ...throttle,
    rate: rate === 'auto' ? rate : rate / share,
    burst: Math.max(1, Math.floor(burst / share)),
    maxRate: maxRate === undefined ? undefined : maxRate / share,
  };
}
