/**
 * p-throttle, told the limit and its window, with p-retry around each call; and p-retry alone, told nothing. p-throttle's queue has no
 * bound of its own: as its documentation suggests, a caller looks at `queueSize` first.
 */
import pRetry, { AbortError } from 'p-retry';
import pThrottle, { type Options as ThrottleOptions } from 'p-throttle';
import {
  CallerGone,
  type ClientContext,
  type CreateClient,
  isRefusal,
  type CallOutcome,
  QUEUE_TIMEOUT_MS,
  RETRIES,
  type Send,
} from '../client.ts';
import { KNOWN_LIMIT_SHARE } from './known-limit.ts';

const REFUSED = 'refused';

export const createPRetry: CreateClient = () => ({ call: (_deadlineAt, send) => retry(send) });

export const createPThrottle: CreateClient = (surroundings) => {
  const throttled = pThrottle(settingsFor(surroundings))((send: Send) => send());
  const rate = (surroundings.perSecond * KNOWN_LIMIT_SHARE) / surroundings.replicas;
  const longestQueue = Math.max(1, Math.floor((rate * QUEUE_TIMEOUT_MS * KNOWN_LIMIT_SHARE) / 1000));
  return {
    async call(_deadlineAt, send) {
      if (throttled.queueSize >= longestQueue) return 'refused-to-caller';
      return retry(() => throttled(send));
    },
  };
};

function settingsFor({ limiter, perSecond, replicas }: ClientContext): ThrottleOptions {
  if ('windowMs' in limiter) {
    const limit = Math.max(1, Math.floor((limiter.calls * KNOWN_LIMIT_SHARE) / replicas));
    return { limit, interval: limiter.windowMs, strict: limiter.kind === 'sliding-log' };
  }
  return { limit: 1, interval: (1000 * replicas) / (perSecond * KNOWN_LIMIT_SHARE) };
}

async function retry(send: Send): Promise<CallOutcome> {
  try {
    await pRetry(
      async () => {
        const answer = await send().catch(giveUp);
        if (answer.status < 300) return;
        throw isRefusal(answer) ? new Error(REFUSED) : new AbortError(REFUSED);
      },
      { retries: RETRIES, randomize: true },
    );
    return 'served';
  } catch (error) {
    if (error instanceof CallerGone) return 'gave-up';
    if (error instanceof Error && error.message === REFUSED) return 'refused-to-caller';
    throw error;
  }
}

/** There is nobody to try again for. */
function giveUp(error: unknown): never {
  throw error instanceof CallerGone ? new AbortError(error) : error;
}
