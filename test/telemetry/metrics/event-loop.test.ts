/** A stalled event loop shows in the metrics of prom-client. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';

const STALL_MS = 500;
const WHILE = { interval: 30 };

it('nodejs_eventloop_lag_max_seconds is the longest stall since the last scrape', async () => {
  const metrics = createMetrics({
    routes: ['default'],
    credentials: ['default'],
    readStates: () => ({ version: '0.0.0', tokens: [], throttles: [], fleet: undefined }),
  });
  const longest = async (): Promise<number> => {
    const [, value] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await metrics.render()) ?? [];
    return Number(value);
  };
  await longest();
  // The measurement is a timer of 10 ms, which has to have run before and has to run after: it is due before these are.
  await sleep(30);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  await sleep(30);
  expect(await longest()).toBeGreaterThan((STALL_MS / 1000) * 0.9);
  // A machine that is busy itself holds the loop up as well, though not every time for so long.
  await expect.poll(longest, WHILE).toBeLessThan((STALL_MS / 1000) * 0.9);
});
