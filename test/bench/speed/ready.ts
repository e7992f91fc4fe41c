/** Waits for a server's first good answer. */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_TIMEOUT_MS = 15_000;
const POLL_MS = 2;

/**
 * @param hasEnded whether the process that should answer is gone
 * @throws Error when it does not answer 200 in time, or ends before it does
 */
export async function waitUntilAnswered(url: string, hasEnded: () => boolean): Promise<void> {
  const until = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < until) {
    if (hasEnded()) throw new Error(`what should answer at ${url} has ended`);
    if ((await statusOf(url)) === 200) return;
    await sleep(POLL_MS);
  }
  throw new Error(`no good answer from ${url}`);
}

/** @returns undefined when there was no answer */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1000 }, (answer) => {
      answer.resume().once('close', () => resolve(answer.statusCode));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(undefined));
  });
}
