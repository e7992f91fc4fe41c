/** The retry of most applications: after full-jitter backoff, or Retry-After if that is longer. */
import { fullJitterMs } from '../../../../src/retry/policy.ts';
import { type CreateClient, isRefusal, RETRIES } from '../client.ts';
import { readStatedWaitMs } from './stated-wait.ts';

export const createFullJitter: CreateClient = ({ clock, random }) => ({
  async call(deadlineAt, send) {
    for (let retry = 1; ; retry++) {
      const response = await send();
      if (response.status < 300) return 'served';
      if (!isRefusal(response) || retry > RETRIES) return 'refused-to-caller';
      const statedMs = readStatedWaitMs(response, clock.wallNow()) ?? 0;
      const delayMs = Math.max(statedMs, fullJitterMs(retry, random()));
      if (clock.now() + delayMs >= deadlineAt) return 'refused-to-caller';
      await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    }
  },
});
