/** Divides a stated limit among replicas that share one quota without a connection to each other (pure). */
import type { RateLimitSignal } from './rate-limit-signal.ts';

/**
 * One replica's part of a signal: counts are divided and rounded down, so that all parts together never exceed them; waits stay.
 * @param replicas at least 1
 */
export function divideSignal(signal: RateLimitSignal, replicas: number): RateLimitSignal {
  if (replicas === 1) return signal;
  const part = (count: number | undefined): number | undefined =>
    count === undefined ? undefined : Math.floor(count / replicas);
  return {
    ...signal,
    remaining: part(signal.remaining),
    quotas: signal.quotas.map((stated) => ({
      ...stated,
      // With a quota smaller than the number of replicas, each replica has one call in several windows.
      ...(stated.quota === undefined ? {} : divideQuota(stated.quota, stated.windowMs, replicas)),
      remaining: part(stated.remaining),
    })),
  };
}

function divideQuota(quota: number, windowMs: number | undefined, replicas: number) {
  if (quota >= replicas) return { quota: Math.floor(quota / replicas), windowMs };
  return { quota: 1, windowMs: windowMs === undefined ? undefined : (windowMs * replicas) / quota };
}
