/** Counters, gauges and histograms that a test sets by name and labels, sampled once a second on a clock of the test. */
import { SampleRing, type Samples } from '../../../src/admin/samples/sample-ring.ts';
import type { GaugeReading, Labels, SampleSource } from '../../../src/admin/samples/samples.ts';
import { DURATION_BOUNDS, findBucket } from '../../../src/telemetry/metrics/duration-buckets.ts';

interface PlayedCounter {
  readonly labels: Labels;
  count: number;
}

interface PlayedDurations {
  readonly labels: Labels;
  readonly buckets: Float64Array;
}

export class PlayedSamples {
  readonly counters = new Map<string, PlayedCounter[]>();
  readonly durations = new Map<string, PlayedDurations[]>();
  readonly ring: SampleRing;
  /** Monotonic milliseconds. */
  now = 0;
  readonly #gauges = new Map<string, GaugeReading>();

  /** @param maxBytes default: enough for any test */
  constructor(maxBytes = 64 * 1024 * 1024) {
    const { counters, durations } = this;
    const source: SampleSource = {
      counters,
      durations,
      bounds: DURATION_BOUNDS,
      gauges: () => [...this.#gauges.values()],
    };
    this.ring = new SampleRing(source, maxBytes);
    this.ring.sample(this.now);
  }

  /** What can be read now. */
  get samples(): Samples {
    return this.ring.read(this.now);
  }

  /** Adds to a counter. @param growth default 1 */
  count(metric: string, labels: Labels = {}, growth = 1): this {
    const series = findOrAdd(this.counters, metric, labels, () => ({ labels, count: 0 }));
    series.count += growth;
    return this;
  }

  /** Sets a gauge. */
  set(metric: string, labels: Labels, value: number): this {
    this.#gauges.set(JSON.stringify([metric, labels]), { metric, labels, value });
    return this;
  }

  /** Ends a gauge that has nothing to show. */
  remove(metric: string, labels: Labels): this {
    this.#gauges.delete(JSON.stringify([metric, labels]));
    return this;
  }

  /** Adds observations to a histogram. @param times default 1 */
  observe(histogram: string, durationMs: number, labels: Labels = {}, times = 1): this {
    const create = () => ({ labels, buckets: new Float64Array(DURATION_BOUNDS.length + 1) });
    const { buckets } = findOrAdd(this.durations, histogram, labels, create);
    const bucket = findBucket(durationMs / 1000);
    buckets[bucket] = (buckets[bucket] ?? 0) + times;
    return this;
  }

  /** Lets seconds pass. @param each called before each sample */
  play(seconds: number, each: (played: PlayedSamples, second: number) => void = () => undefined): this {
    for (let second = 0; second < seconds; second++) {
      each(this, second);
      this.now += 1000;
      this.ring.sample(this.now);
    }
    return this;
  }
}

function findOrAdd<S extends { readonly labels: Labels }>(
  all: Map<string, S[]>,
  metric: string,
  labels: Labels,
  create: () => S,
): S {
  const list = all.get(metric) ?? [];
  all.set(metric, list);
  const key = JSON.stringify(labels);
  const found = list.find((series) => JSON.stringify(series.labels) === key);
  if (found !== undefined) return found;
  const series = create();
  list.push(series);
  return series;
}
