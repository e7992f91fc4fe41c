/** Waits for the first 200 of a server. */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_TIMEOUT_MS = 15_000;
const POLL_MS = 2;

/**
 * @param hasEnded whether the process of the server has ended
 * @throws Error without a 200 in time, or when the process ends before
 */
export async function waitUntilResponding(url: string, hasEnded: () => boolean): Promise<void> {
  const until = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < until) {
    if (hasEnded()) throw new Error(`the server of ${url} has ended`);
    if ((await statusOf(url)) === 200) return;
    await sleep(POLL_MS);
  }
  throw new Error(`no good response from ${url}`);
}

/** @returns undefined without a response */
function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 1000 }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(undefined));
  });
}
