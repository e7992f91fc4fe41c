/**
 * p-throttle with the known limit and window and p-retry around each call; and p-retry alone. p-throttle's queue has no bound: as its
 * documentation suggests, a caller checks `queueSize` first.
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
        const response = await send().catch(giveUp);
        if (response.status < 300) return;
        throw isRefusal(response) ? new Error(REFUSED) : new AbortError(REFUSED);
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

/** The caller no longer waits: no further retry. */
function giveUp(error: unknown): never {
  throw error instanceof CallerGone ? new AbortError(error) : error;
}
