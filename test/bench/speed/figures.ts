/** From samples to figures: medians over the rounds, and ratios that are taken within a round first, where noise is common to both. */
import { DIRECT, type ProxyMeasurement, type Sample } from './measure.ts';

export interface ProxySummary {
  readonly name: string;
  readonly title: string;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Beyond what the upstream alone takes. */
  readonly addedP50Us: number;
  readonly addedP99Us: number;
  readonly cpuUs: number;
  /** Beyond the yardstick's; NaN without one. */
  readonly addedCpuUs: number;
  readonly idleBytes: number;
  readonly peakBytes: number;
  readonly startMs: number;
  readonly failed: number;
  /** Of the yardstick's; NaN without one. */
  readonly ratio: number;
  /** The yardstick's CPU time for a request, of this one's: comparable to `ratio`, and less moved by what else runs. */
  readonly cpuRatio: number;
}

/** One measurement for each proxy: the rounds of all its starts, its median start, and the highest of its peaks. */
export function mergeStarts(all: readonly ProxyMeasurement[]): ProxyMeasurement[] {
  return [...Map.groupBy(all, ({ name }) => name)].map(([name, starts]) => ({
    name,
    title: starts[0]?.title ?? name,
    samples: starts.flatMap(({ samples }) => samples),
    startMs: median(starts.map(({ startMs }) => startMs)),
    idleBytes: median(starts.map(({ idleBytes }) => idleBytes)),
    peakBytes: Math.max(...starts.map(({ peakBytes }) => peakBytes)),
  }));
}

export function summarize(all: readonly ProxyMeasurement[], yardstick: string): ProxySummary[] {
  const samplesOf = (name: string): readonly Sample[] => all.find((one) => one.name === name)?.samples ?? [];
  const direct = samplesOf(DIRECT);
  const reference = samplesOf(yardstick);
  return all.map(({ name, title, samples, idleBytes, peakBytes, startMs }) => {
    const middle = (figure: (sample: Sample, round: number) => number): number => median(samples.map(figure));
    return {
      name,
      title,
      requestsPerSecond: middle(({ requestsPerSecond }) => requestsPerSecond),
      p50Us: middle(({ p50Us }) => p50Us),
      p99Us: middle(({ p99Us }) => p99Us),
      addedP50Us: middle(({ p50Us }, round) => p50Us - (direct[round]?.p50Us ?? NaN)),
      addedP99Us: middle(({ p99Us }, round) => p99Us - (direct[round]?.p99Us ?? NaN)),
      cpuUs: middle(({ cpuUs }) => cpuUs),
      addedCpuUs: middle(({ cpuUs }, round) => cpuUs - (reference[round]?.cpuUs ?? NaN)),
      idleBytes,
      peakBytes,
      startMs,
      failed: samples.reduce((total, { failed }) => total + failed, 0),
      ratio: middle(({ requestsPerSecond }, round) => requestsPerSecond / (reference[round]?.requestsPerSecond ?? NaN)),
      cpuRatio: middle(({ cpuUs }, round) => (reference[round]?.cpuUs ?? NaN) / cpuUs),
    };
  });
}

/** NaN for nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const half = sorted.length / 2;
  const [lower, upper] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return lower === undefined || upper === undefined ? NaN : (lower + upper) / 2;
}
