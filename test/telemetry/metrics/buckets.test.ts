/** `metrics.buckets`: what is left of the histograms, for any durations. That alerts and dashboard work with it: test/deploy. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ExposedBuckets } from '../../../src/telemetry/metrics/metrics.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { readSamples } from './exposition.ts';

/** Milliseconds, from nothing to hours, and exactly on a bucket. */
const durationsMs = fc.array(
  fc.oneof(fc.double({ min: 0, max: 1e7, noNaN: true }), fc.constantFrom(0, 100, 1000, 1e4, 6e4)),
);

async function expose(buckets: ExposedBuckets, durations: readonly number[]) {
  const metrics = createMetrics({
    routes: ['default'],
    credentials: ['default'],
    readStates: () => ({ version: '1.2.3', tokens: [], throttles: [], fleet: undefined }),
    buckets,
  });
  for (const durationMs of durations) {
    metrics.bindThrottle('default')(durationMs);
    metrics.bindRoute('default').recordAttempt('ok', durationMs, false);
    metrics.observe({ kind: 'token-requested', credential: 'default', outcome: 'ok', durationMs });
  }
  const text = await metrics.render();
  // The process's own figures differ from one registry to the next.
  const own = [...readSamples(text)].filter(([series]) => series.startsWith('bearer_sidecar_'));
  return { text, samples: new Map(own) };
}

const isBucket = (series: string): boolean => /^\w+_bucket\{/.test(series);

it('few exposes a subset of the buckets, with the values of default; all other series are the same', async () => {
  await fc.assert(
    fc.asyncProperty(durationsMs, async (durations) => {
      const [all, few] = [await expose('default', durations), await expose('few', durations)];
      for (const [series, value] of few.samples) expect(all.samples.get(series), series).toBe(value);
      const missing = [...all.samples.keys()].filter((series) => !few.samples.has(series));
      expect(missing.every(isBucket)).toBe(true);
      const bounds = [...few.samples.keys()].filter(isBucket).map((series) => /le="([^"]+)"/.exec(series)?.[1]);
      expect([...new Set(bounds)]).toEqual(['0.1', '1', '10', '60', '+Inf']);
    }),
    { numRuns: 30 },
  );
});

it('none exposes no bucket, and summaries with the counts and sums of default', async () => {
  await fc.assert(
    fc.asyncProperty(durationsMs, async (durations) => {
      const [all, none] = [await expose('default', durations), await expose('none', durations)];
      expect([...none.samples]).toEqual([...all.samples].filter(([series]) => !isBucket(series)));
      expect(none.text).not.toMatch(/_bucket|^# TYPE \w+ histogram$/m);
      expect(none.text.match(/^# TYPE \w+_seconds summary$/gm)).toHaveLength(6);
    }),
    { numRuns: 30 },
  );
});

it('few has about a third of the buckets', async () => {
  const count = async (buckets: ExposedBuckets): Promise<number> =>
    [...(await expose(buckets, [])).samples.keys()].filter(isBucket).length;
  expect((await count('few')) / (await count('default'))).toBeCloseTo(0.36, 2);
});

it('the durations of attempts have half of the buckets of others, and each has the value that it has there', async () => {
  await fc.assert(
    fc.asyncProperty(durationsMs, async (durations) => {
      const { samples } = await expose('default', durations);
      const read = (histogram: string, labels: string) =>
        new Map(
          [...samples].flatMap(([series, value]) => {
            const bound = /le="([^"]+)"/.exec(series)?.[1];
            const isOwn = series.startsWith(`bearer_sidecar_${histogram}_bucket{`) && series.includes(labels);
            return isOwn && bound !== undefined ? [[bound, value] as const] : [];
          }),
        );
      const attempts = read('upstream_duration_seconds', 'outcome="ok"');
      expect([...attempts.keys()].join(' ')).toBe('0.01 0.05 0.1 0.5 1 2.5 5 10 60 +Inf');
      const waits = read('queue_wait_seconds', 'route="default"');
      expect(waits.size).toBe(19);
      for (const [bound, value] of attempts) expect(value, bound).toBe(waits.get(bound));
    }),
    { numRuns: 10 },
  );
});
