/** Waits for a condition in real time, for as long as a busy machine may need: no sleep is long enough, and none is needed. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Far more than anything takes; only a condition that never comes about waits for it. */
export const WAIT_TIMEOUT_MS = 120_000;
const STABLE_READS = 10;
const READ_INTERVAL_MS = 50;

/** Many conditions are HTTP requests: the pauses between them grow to a tenth of the time waited, so that a long wait leaves the CPU to others. */
const LEAST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;
const PAUSE_SHARE = 0.1;

/** Resolves soon after `holds`, fails after `timeoutMs`, by default two minutes. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = WAIT_TIMEOUT_MS,
): Promise<void> {
  const startedAt = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs) throw new Error(`this did not come about: ${what}`);
    await sleep(Math.min(LONGEST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, PAUSE_SHARE * waitedMs)));
  }
}

/** Resolves once a number that grows has stood still for ten looks in a row: buffers are full then. @returns it */
export async function waitUntilStable(read: () => number): Promise<number> {
  let seen = read();
  for (let look = 0; look < STABLE_READS; look++) {
    await sleep(READ_INTERVAL_MS);
    if (seen === read()) continue;
    seen = read();
    look = -1;
  }
  return seen;
}
