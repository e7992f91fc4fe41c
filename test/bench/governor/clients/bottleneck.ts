/**
 * Bottleneck with the known limit: calls evenly spaced at 0.97 of it, or limited in flight where that is the limit. Refused calls are
 * retried with its `failed` hook; its queue is bounded by the callers' deadline.
 */
import Bottleneck from 'bottleneck';
import { fullJitterMs } from '../../../../src/retry/policy.ts';
import {
  type SimulatedResponse,
  CallerGone,
  type CreateClient,
  isRefusal,
  QUEUE_TIMEOUT_MS,
  RETRIES,
} from '../client.ts';
import { readStatedWaitMs } from './stated-wait.ts';
import { KNOWN_LIMIT_SHARE } from './known-limit.ts';

class RefusedError extends Error {
  readonly response: SimulatedResponse;

  constructor(response: SimulatedResponse) {
    super('refused');
    this.response = response;
  }
}

export const createBottleneck: CreateClient = ({ clock, random, limiter, perSecond, replicas }) => {
  const rate = (perSecond * KNOWN_LIMIT_SHARE) / replicas;
  const pace =
    limiter.kind === 'concurrency'
      ? { maxConcurrent: Math.max(1, Math.floor(limiter.calls / replicas)) }
      : // Without it all waiting calls count as running, and `highWater` has no effect.
        { minTime: 1000 / rate, maxConcurrent: Math.max(2, Math.ceil(rate)) };
  const highWater = Math.max(1, Math.floor((rate * QUEUE_TIMEOUT_MS * KNOWN_LIMIT_SHARE) / 1000) - pace.maxConcurrent);
  const bottleneck = new Bottleneck({ ...pace, highWater, strategy: Bottleneck.strategy.OVERFLOW });
  bottleneck.on('failed', (error: unknown, { retryCount }) => {
    if (!(error instanceof RefusedError) || !isRefusal(error.response) || retryCount >= RETRIES) return undefined;
    const statedMs = readStatedWaitMs(error.response, clock.wallNow()) ?? 0;
    return Math.max(statedMs, fullJitterMs(retryCount + 1, random()));
  });
  return {
    async call(_deadlineAt, send) {
      try {
        await bottleneck.schedule(async () => {
          const response = await send();
          if (response.status >= 300) throw new RefusedError(response);
        });
        return 'served';
      } catch (error) {
        if (error instanceof CallerGone) return 'gave-up';
        if (error instanceof RefusedError || error instanceof Bottleneck.BottleneckError) return 'refused-to-caller';
        throw error;
      }
    },
  };
};
