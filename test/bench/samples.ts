/**
 * Memory and time of the ring of samples after an hour, with 1, 5 and 20 routes that have every usual status, outcome and latency.
 * Run: npm run bench:samples
 */
import { evaluateAlerts } from '../../src/admin/alerts/active-alerts.ts';
import { evaluateVerdict } from '../../src/admin/verdict/verdict.ts';
import { readLastMinute, readPlotRows } from '../../src/admin/samples/traffic.ts';
import { Sampler } from '../../src/admin/samples/sampler.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { FAULT_CAUSES } from '../../src/telemetry/events.ts';
import { unpaced, validToken } from '../admin/states.ts';
import { ManualClock } from '../support/manual-clock.ts';

const HOUR_SECONDS = 3600;
const CODES = [200, 201, 204, 400, 404, 409, 422, 429, 500, 502, 503];

for (const count of [1, 5, 20]) await measure(count);

async function measure(count: number): Promise<void> {
  const clock = new ManualClock(0);
  const names = Array.from({ length: count }, (_, index) => `route-${String(index)}`);
  const metrics = createMetrics({
    ...{ routes: names, credentials: ['default'] },
    readStates: () => ({ version: '0', tokens: [], throttles: names.map(describeThrottle), fleet: undefined }),
  });
  const { counters, durations, bounds } = metrics.series;
  const source = { counters, durations, bounds, gauges: metrics.readGauges };
  const sampler = new Sampler({ clock, source, routes: count, runEverySecond: () => () => undefined });
  const bound = names.map((name) => ({ route: metrics.bindRoute(name), permit: metrics.bindThrottle(name), name }));
  let sampledMs = 0;
  for (let second = 0; second < HOUR_SECONDS; second++) {
    for (const { route, permit, name } of bound) {
      const code = CODES[second % CODES.length] ?? 200;
      const durationMs = 20 * 1.05 ** (second % 120);
      permit(second % 60);
      route.recordAttempt(code < 400 ? 'ok' : code === 429 ? 'rate_limited' : 'error_status', durationMs, false);
      for (const method of ['GET', 'POST'])
        route.recordRequest({
          ...{ route: name, method, path: '/', code, source: 'upstream', durationMs, queuedMs: 0 },
          ...{ attempts: 1, requestBytes: 0, responseBytes: 0 },
        });
      const cause = FAULT_CAUSES[second % 60];
      if (cause !== undefined)
        metrics.observe({ kind: 'attempt-failed', route: name, outcome: 'reset', cause, detail: 'x' });
    }
    await clock.advance(1000);
    const from = performance.now();
    sampler.ring.sample(clock.now());
    sampledMs += performance.now() - from;
  }
  const readMs = time(() => readLastMinute(sampler.read()));
  const plotMs = time(() => readPlotRows(sampler.ring, names.map(describeThrottle), 0));
  const throttles = names.map((route) => ({ ...unpaced, route }));
  const seen = {
    version: '0',
    uptimeMs: 1,
    draining: false,
    tokens: [validToken],
    throttles,
    samples: sampler.read(),
    wallNow: clock.wallNow(),
  };
  const verdictMs = time(() =>
    evaluateVerdict({ ...seen, alerts: evaluateAlerts(seen), faults: [], settings: undefined, pending: [] }),
  );
  const blockedMs = await findLongestBlock(() => metrics.render());
  const figures = [
    `${String(count).padStart(2)} routes: ${String(Math.round(sampler.ring.bytes / 1024))} KiB`,
    `a sample ${((sampledMs / HOUR_SECONDS) * 1000).toFixed(0)} us`,
    `the last minute ${(readMs * 1000).toFixed(0)} us`,
    `300 rows of plots ${plotMs.toFixed(1)} ms`,
    `alerts and verdict ${verdictMs.toFixed(1)} ms`,
    `longest delay of a call by a scrape ${blockedMs.toFixed(1)} ms`,
  ];
  console.log(figures.join(', '));
}

function describeThrottle(route: string | undefined) {
  const state = { rate: 10, pausedMs: 0, queued: 3, queueMax: 1000, inFlight: 2, inFlightLimit: 4 };
  return { route: route ?? '', ...state };
}

/** How long the event loop stands still at most, in the quickest of a few runs, milliseconds. */
async function findLongestBlock(run: () => Promise<unknown>): Promise<number> {
  let [last, longest] = [performance.now(), 0];
  let isRunning = true;
  const tick = (): void => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
    if (isRunning) setImmediate(tick);
  };
  tick();
  const blocks: number[] = [];
  for (let number = 0; number < 10; number++) {
    longest = 0;
    await run();
    blocks.push(longest);
  }
  isRunning = false;
  return Math.min(...blocks);
}

/** Of the quickest of a few runs, milliseconds. */
function time(run: () => unknown): number {
  return Math.min(
    ...Array.from({ length: 20 }, () => {
      const from = performance.now();
      run();
      return performance.now() - from;
    }),
  );
}
