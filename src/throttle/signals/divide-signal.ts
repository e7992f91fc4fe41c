/** Divides what an upstream states among replicas that share one quota without knowing of each other (pure). */
import type { RateLimitSignal } from './rate-limit-signal.ts';

/**
 * One replica's part of what is stated: counts are divided and rounded down, so that all parts together never exceed it; waits stay.
 * @param share how many replicas there are, at least 1
 */
export function divideSignal(signal: RateLimitSignal, share: number): RateLimitSignal {
  if (share === 1) return signal;
  const part = (count: number | undefined): number | undefined =>
    count === undefined ? undefined : Math.floor(count / share);
  return {
    ...signal,
    remaining: part(signal.remaining),
    quotas: signal.quotas.map((stated) => ({
      ...stated,
      // A quota smaller than the number of replicas leaves each of them one call in so many windows.
      ...(stated.quota === undefined ? {} : divideQuota(stated.quota, stated.windowMs, share)),
      remaining: part(stated.remaining),
    })),
  };
}

function divideQuota(quota: number, windowMs: number | undefined, share: number) {
  if (quota >= share) return { quota: Math.floor(quota / share), windowMs };
  return { quota: 1, windowMs: windowMs === undefined ? undefined : (windowMs * share) / quota };
}
