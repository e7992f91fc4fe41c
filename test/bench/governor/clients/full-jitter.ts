/** What most applications have: send at once, and on a refusal again after full-jitter backoff, or Retry-After if that is longer. */
import { fullJitterMs } from '../../../../src/retry/backoff.ts';
import { type CreateClient, isRefusal, RETRIES } from '../client.ts';
import { readStatedWaitMs } from './stated-wait.ts';

export const createFullJitter: CreateClient = ({ clock, random }) => ({
  async call(deadlineAt, send) {
    for (let retry = 1; ; retry++) {
      const answer = await send();
      if (answer.status < 300) return 'served';
      if (!isRefusal(answer) || retry > RETRIES) return 'refused-to-caller';
      const statedMs = readStatedWaitMs(answer, clock.wallNow()) ?? 0;
      const delayMs = Math.max(statedMs, fullJitterMs(retry, random()));
      if (clock.now() + delayMs >= deadlineAt) return 'refused-to-caller';
      await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    }
  },
});
