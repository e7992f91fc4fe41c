/** A stalled event loop shows in the metrics: prom-client's own serve for it, and none of ours is needed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createMetrics } from '../../src/telemetry/metrics.ts';

const STALL_MS = 200;

it('the longest stall since the last scrape is nodejs_eventloop_lag_max_seconds', async () => {
  const metrics = createMetrics({
    version: '0.0.0',
    routes: ['default'],
    credentials: ['default'],
    tokens: () => [],
    throttles: () => [],
  });
  const longest = async (): Promise<number> => {
    const [, value] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await metrics.render()) ?? [];
    return Number(value);
  };
  await longest();
  // The measurement is a timer, which has to have run before and has to run after.
  await sleep(30);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  await sleep(30);
  expect(await longest()).toBeGreaterThan((STALL_MS / 1000) * 0.9);
  await sleep(30);
  expect(await longest()).toBeLessThan((STALL_MS / 1000) * 0.9);
});
