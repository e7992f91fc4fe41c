/**
 * The retry strategies of the AWS SDKs (@smithy/util-retry): `standard`, and `adaptive` with its client-side rate limiter. Driven as
 * the SDK's own middleware drives them.
 */
import { AdaptiveRetryStrategy, StandardRetryStrategy } from '@smithy/util-retry';
import { type CreateClient, isRefusal, RETRIES } from '../client.ts';
import { readStatedWaitMs } from './stated-wait.ts';

const ATTEMPTS = RETRIES + 1;

export const createAwsStandard: CreateClient = (surroundings) =>
  createRetrying(new StandardRetryStrategy(ATTEMPTS), surroundings);

export const createAwsAdaptive: CreateClient = (surroundings) =>
  createRetrying(new AdaptiveRetryStrategy(() => Promise.resolve(ATTEMPTS)), surroundings);

/** The common part of both strategies, without the different types of their tokens. */
interface Strategy {
  acquireInitialRetryToken(scope: string): Promise<Token>;
  refreshRetryTokenForRetry(
    token: Token,
    error: Parameters<AdaptiveRetryStrategy['refreshRetryTokenForRetry']>[1],
  ): Promise<Token>;
  recordSuccess(token: Token): void;
}

interface Token {
  getRetryCount(): number;
  getRetryDelay(): number;
}

function createRetrying(strategy: Strategy, { clock }: Parameters<CreateClient>[0]): ReturnType<CreateClient> {
  return {
    async call(_deadlineAt, send) {
      let token = await strategy.acquireInitialRetryToken('');
      for (;;) {
        const response = await send();
        if (response.status < 300) {
          strategy.recordSuccess(token);
          return 'served';
        }
        const statedMs = readStatedWaitMs(response, clock.wallNow());
        const hint = statedMs === undefined ? {} : { retryAfterHint: new Date(clock.wallNow() + statedMs) };
        const errorType = isRefusal(response) ? 'THROTTLING' : 'CLIENT_ERROR';
        const next = await strategy.refreshRetryTokenForRetry(token, { errorType, ...hint }).catch(asRefusal);
        if (next === undefined) return 'refused-to-caller';
        token = next;
        const delayMs = token.getRetryDelay();
        if (delayMs > 0) await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      }
    },
  };
}

/** The strategy allows no further attempt. */
function asRefusal(error: unknown): undefined {
  if (error instanceof Error && error.message === 'No retry token available') return undefined;
  throw error;
}
