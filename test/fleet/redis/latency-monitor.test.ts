/** When late replies count as a degraded Redis, and when it has recovered: in virtual time, with generated latencies. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LatencyMonitor } from '../../../src/fleet/redis/latency-monitor.ts';

const TIMEOUT_MS = 50;
/** Between two heartbeats (script-client.ts). */
const HEARTBEAT_MS = 500;

interface Step {
  readonly now: number;
  readonly isDegraded: boolean;
}

/** One command after another, each `gapMs` after the reply to the last one, and as heartbeats while replies are too late. */
function recordAll(
  latencies: readonly number[],
  gapMs: (index: number) => number,
  monitor = new LatencyMonitor(),
): Step[] {
  let now = 0;
  return latencies.map((latencyMs, index) => {
    now += (monitor.isDegraded ? HEARTBEAT_MS : gapMs(index)) + latencyMs;
    if (latencyMs <= TIMEOUT_MS) monitor.recordInTime(now);
    else monitor.recordLate(now, latencyMs);
    return { now, isDegraded: monitor.isDegraded };
  });
}

const transitions = (steps: readonly Step[]): Step[] =>
  steps.filter(({ isDegraded }, index) => isDegraded !== (steps[index - 1]?.isDegraded ?? false));

const latency = fc.oneof(
  fc.double({ min: 0, max: TIMEOUT_MS, noNaN: true }),
  fc.double({ min: 51, max: 1000, noNaN: true }),
);
const gap = fc.integer({ min: 0, max: 1000 });
const IN_TIME = fc.double({ min: 0, max: TIMEOUT_MS, noNaN: true });
const LATE = fc.double({ min: TIMEOUT_MS + 1, max: 1000, noNaN: true });

describe('late replies', () => {
  test('degrade when they are most of the last ten, and at the start when they are the first three', () => {
    const degradedAfter = (latencies: readonly number[]) =>
      recordAll(latencies, () => 100).findIndex(({ isDegraded }) => isDegraded) + 1;
    expect(degradedAfter([200, 200, 200])).toBe(3);
    expect(degradedAfter([1, 200, 200, 200, 200, 200, 200])).toBe(7);
    expect(degradedAfter([...Array<number>(50).fill(1), ...Array<number>(6).fill(200)])).toBe(56);
    expect(degradedAfter(Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 1 : 200)))).toBe(0);
  });

  test('always degrade within six commands, after any others', () => {
    fc.assert(
      fc.property(fc.array(latency), fc.array(LATE, { minLength: 6, maxLength: 20 }), gap, (before, late, gapMs) => {
        expect(recordAll([...before, ...late], () => gapMs).at(-1)?.isDegraded).toBe(true);
      }),
    );
  });

  test('never degrade while fewer than six of any ten are late, after a first reply in time', () => {
    const tens = fc.array(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], { maxLength: 2 }), { maxLength: 20 });
    fc.assert(
      fc.property(tens, gap, (lateInTens, gapMs) => {
        const latencies = lateInTens.flatMap((late) =>
          Array.from({ length: 10 }, (_, index) => (late.includes(index) ? 300 : 2)),
        );
        expect(recordAll([1, ...latencies], () => gapMs).every(({ isDegraded }) => !isDegraded)).toBe(true);
      }),
    );
  });
});

describe('a degraded Redis', () => {
  test('recovers when replies are in time for as many probes as the relapses require, at most 80', () => {
    fc.assert(
      fc.property(fc.array(latency, { maxLength: 300 }), gap, (before, gapMs) => {
        const recovery = Array<number>(80).fill(1);
        expect(recordAll([...before, ...recovery], () => gapMs).at(-1)?.isDegraded).toBe(false);
      }),
    );
  });

  test('recovers after ten probes in time when it was well for a minute before', () => {
    fc.assert(
      fc.property(
        fc.array(LATE, { minLength: 3, maxLength: 50 }),
        fc.array(IN_TIME, { minLength: 10, maxLength: 10 }),
        (late, well) => {
          const steps = recordAll([...late, ...well], () => 100);
          expect(steps.at(-2)?.isDegraded).toBe(true);
          expect(steps.at(-1)?.isDegraded).toBe(false);
        },
      ),
    );
  });

  test('does not flap: for any latencies, an hour has at most one entry per half a minute in the long run', () => {
    const pattern = fc.array(latency, { minLength: 1, maxLength: 120 });
    fc.assert(
      fc.property(pattern, fc.integer({ min: 0, max: 100 }), (latencies, gapMs) => {
        const hour = Array.from({ length: 20_000 }, (_, index) => latencies[index % latencies.length]!);
        const steps = recordAll(hour, () => gapMs);
        const changes = transitions(steps);
        for (const [index, { now, isDegraded }] of changes.entries()) {
          const previous = changes[index - 1];
          // The state lasts for ten probes at least.
          if (!isDegraded && previous !== undefined) expect(now - previous.now).toBeGreaterThan(9 * HEARTBEAT_MS);
        }
        const hours = (steps.at(-1)?.now ?? 0) / 3_600_000;
        const entries = changes.filter(({ isDegraded }) => isDegraded).length;
        expect(entries).toBeLessThanOrEqual(4 + hours * 120);
      }),
      { numRuns: 60 },
    );
  });
});

test('the figures are those of the last ten replies', () => {
  const monitor = new LatencyMonitor();
  recordAll([900, 800, 1, 1, 1, 60, 203, 210, 300, 1, 1, 199], () => 10, monitor);
  expect(monitor.describe()).toEqual({ late: 5, commands: 10, medianLateMs: 203 });
});
