/** How the benchmark comes from samples to figures and to its verdict. */
import { expect, it } from 'vitest';
import { median, mergeStarts, summarize } from './figures.ts';
import { evaluateGoals } from './goals.ts';
import { DIRECT, type ProxyMeasurement, type Sample } from './measure.ts';
import { drawPlot } from './plot.ts';
import { formatAsMarkdown, tabulateGoals } from './table.ts';

function sample(requestsPerSecond: number, p50Us: number, cpuUs: number): Sample {
  return { requestsPerSecond, p50Us, p99Us: p50Us * 10, cpuUs, failed: 1 };
}

function measured(name: string, samples: readonly Sample[]): ProxyMeasurement {
  return { name, title: name, samples, startMs: 250, idleBytes: 60 * 1024 * 1024, peakBytes: 100 * 1024 * 1024 };
}

/** The machine is twice as slow in the second round: figures suffer, ratios do not. */
const ALL = [
  measured(DIRECT, [sample(60_000, 10, NaN), sample(30_000, 20, NaN), sample(60_000, 10, NaN)]),
  measured('sidecar', [sample(32_000, 110, 25), sample(16_000, 220, 50), sample(32_000, 110, 25)]),
  measured('bare', [sample(40_000, 110, 20), sample(20_000, 220, 40), sample(36_000, 110, 24)]),
  measured('caddy', [sample(20_000, 150, 40), sample(10_000, 300, 80), sample(20_000, 150, 40)]),
];

it('the median of an even number lies between the two in the middle, that of nothing is no number', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 2, 9])).toBe(3);
  expect(median([])).toBeNaN();
});

it('ratios are taken within a round before their median, and what is added on top of the upstream of the same round', () => {
  const sidecar = summarize(ALL, 'bare').find(({ name }) => name === 'sidecar');
  expect(sidecar).toMatchObject({ requestsPerSecond: 32_000, ratio: 0.8, cpuRatio: 0.8, addedCpuUs: 5, failed: 3 });
  expect(sidecar).toMatchObject({ addedP50Us: 100, addedP99Us: 1000, p50Us: 110 });
});

it('the rounds of all starts count, of the starts the median, and of the peaks the highest', () => {
  const second = ALL.map((one) => ({ ...one, startMs: 350, peakBytes: one.peakBytes * 2 }));
  const merged = mergeStarts([...ALL, ...second]);
  expect(merged.map(({ name }) => name)).toEqual(ALL.map(({ name }) => name));
  for (const { samples, startMs, peakBytes } of merged) {
    expect(samples).toHaveLength(6);
    expect([startMs, peakBytes]).toEqual([300, 200 * 1024 * 1024]);
  }
});

it('without the yardstick there are no ratios to it', () => {
  expect(summarize(ALL.slice(0, 2), 'bare')[1]?.ratio).toBeNaN();
});

it('goals are compared with what was measured and silent about the rest', () => {
  const played = [{ scenario: 'get64', title: 'GET', figures: summarize(ALL, 'bare') }];
  const verdicts = evaluateGoals({ played, openLoop: [] });
  const of = (what: RegExp): unknown => verdicts.find((verdict) => what.test(verdict.what));
  expect(of(/^get64: throughput, of the bare/)).toMatchObject({ value: '0.80', isReached: true });
  expect(of(/Caddy/)).toMatchObject({ value: '1.60', isReached: undefined });
  expect(of(/1000 connections/)).toBeUndefined();
  expect(of(/start to ready/)).toMatchObject({ value: '250', isReached: false });
  expect(formatAsMarkdown(tabulateGoals(verdicts))).toMatch(/\| start to ready, ms +\| +250 \| +≤ 200 \| +NO \|/);
});

it('the plot has a bar for each proxy, and none for the upstream alone', () => {
  const figures = summarize(ALL, 'bare');
  const plot = drawPlot([{ scenario: 'get64', title: 'GET', figures }]);
  expect(plot.match(/<rect class="get(?: ours)?" x="\d+" y="\d+" width="\d+" height="15"/g)).toHaveLength(3);
  expect(plot).not.toContain(DIRECT);
});
