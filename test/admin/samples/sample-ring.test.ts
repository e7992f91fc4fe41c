import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PlayedSamples } from './played-samples.ts';

const OK = { route: 'default', code: '200', source: 'upstream' };
const FAILED = { route: 'default', code: '503', source: 'upstream' };

describe('samples of the counters', () => {
  it('give the growth within a window, by labels', () => {
    const played = new PlayedSamples().play(120, (now) => {
      void now.count('requests_total', OK, 3).count('requests_total', FAILED);
    });
    const { samples } = played;
    expect(samples.increase('requests_total', 60_000)).toBe(240);
    expect(samples.increase('requests_total', 60_000, { code: '5..' })).toBe(60);
    expect(samples.increase('requests_total', 60_000, { code: '5..', route: 'other' })).toBe(0);
    expect(samples.increaseBy('code', 'requests_total', 10_000)).toEqual(
      new Map([
        ['200', 30],
        ['503', 10],
      ]),
    );
  });

  it('count from zero before the first sample, and what came after the newest one', () => {
    const played = new PlayedSamples().play(3).count('requests_total', OK, 5);
    expect(played.samples.increase('requests_total', 60_000)).toBe(5);
    expect(played.samples.growingSince('requests_total', 1000)).toBe(3000);
  });

  it('agree with the sum of what was counted, whenever the window begins', () => {
    const counts = fc.array(fc.nat(4), { minLength: 1, maxLength: 900 });
    fc.assert(
      fc.property(counts, fc.integer({ min: 1, max: 1000 }), (perSecond, windowSeconds) => {
        const played = new PlayedSamples();
        played.play(perSecond.length, (_, second) => void played.count('permits_total', {}, perSecond[second] ?? 0));
        const increase = played.samples.increase('permits_total', windowSeconds * 1000);
        const sumOf = (seconds: number): number =>
          perSecond.slice(Math.max(0, perSecond.length - seconds)).reduce((sum, count) => sum + count, 0);
        const resolution = windowSeconds <= 300 ? 0 : 15;
        expect(increase).toBeGreaterThanOrEqual(sumOf(windowSeconds));
        expect(increase).toBeLessThanOrEqual(sumOf(windowSeconds + resolution));
      }),
      { numRuns: 60 },
    );
  });

  it('know since when a counter grows, and when it grew last, for an hour', () => {
    const played = new PlayedSamples().play(1000).play(30, (now) => void now.count('faults_total'));
    expect(played.samples.growingSince('faults_total', 5000)).toBe(1_001_000);
    played.play(4);
    expect(played.samples.growingSince('faults_total', 5000)).toBe(1_001_000);
    played.play(2);
    expect(played.samples.growingSince('faults_total', 5000)).toBeUndefined();
    expect(played.samples.lastGrowthAt('faults_total')).toBe(1_030_000);
    played.play(1800);
    expect(played.samples.lastGrowthAt('faults_total')).toBeGreaterThan(1_020_000);
    expect(played.samples.lastGrowthAt('faults_total')).toBeLessThanOrEqual(1_035_000);
    played.play(1900);
    expect(played.samples.lastGrowthAt('faults_total')).toBeUndefined();
  });
});

describe('samples of gauges', () => {
  it('give the present value and the mean of a window', () => {
    const played = new PlayedSamples().play(600, (now, second) => {
      void now.set('paused', { route: 'a' }, second >= 540 ? 1 : 0).set('queue_limit', { route: 'a' }, 100);
    });
    expect(played.samples.gauge('paused', { route: 'a' })).toBe(1);
    expect(played.samples.average('paused', 60_000)).toBe(1);
    expect(played.samples.average('paused', 120_000)).toBe(0.5);
    expect(played.samples.average('paused', 590_000)).toBeCloseTo(0.1, 1);
    expect(played.samples.gauge('queue_limit')).toBe(100);
    expect(played.samples.gauge('queue_depth')).toBeUndefined();
  });
});

describe('samples of histograms', () => {
  it('give quantiles that are at most a quarter off', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 200_000, noNaN: true }), (durationMs) => {
        const played = new PlayedSamples().play(40);
        played.observe('upstream_duration_seconds', durationMs, { route: 'a', outcome: 'ok' }, 20);
        const read = played.samples.quantile('upstream_duration_seconds', 0.95, 60_000, { route: 'a' }) ?? NaN;
        expect(Math.abs(read / durationMs - 1)).toBeLessThan(0.25);
      }),
    );
  });

  it('read a constant 1.1 s as about that', () => {
    const played = new PlayedSamples();
    played.play(60, () => void played.observe('request_duration_seconds', 1100));
    expect(played.samples.quantile('request_duration_seconds', 0.95, 60_000)).toBeCloseTo(1121, 0);
  });

  it('count observations up to an exposed bound', () => {
    const played = new PlayedSamples().play(20);
    played.observe('queue_wait_seconds', 400, { route: 'a' }, 3).observe('queue_wait_seconds', 12_000, { route: 'a' });
    played.observe('queue_wait_seconds', 12_000, { route: 'b' });
    const { samples } = played;
    expect(samples.increase('queue_wait_seconds_bucket', 60_000, { le: '10', route: 'a' })).toBe(3);
    expect(samples.increase('queue_wait_seconds_count', 60_000, { route: 'a' })).toBe(4);
    expect(samples.increase('queue_wait_seconds_count', 60_000)).toBe(5);
  });

  it('forget what is older than the window', () => {
    const played = new PlayedSamples().observe('request_duration_seconds', 9000).play(200);
    expect(played.samples.quantile('request_duration_seconds', 0.5, 60_000)).toBeUndefined();
    played.observe('request_duration_seconds', 10);
    expect(played.samples.quantile('request_duration_seconds', 0.99, 60_000)).toBeLessThan(20);
    expect(played.samples.quantile('request_duration_seconds', 0.99, 300_000)).toBeGreaterThan(7000);
  });
});

describe('the ring', () => {
  it('stays within its bound with more series than it has memory for', () => {
    const maxBytes = 100_000;
    const played = new PlayedSamples(maxBytes);
    for (let code = 100; code < 999; code++) played.count('requests_total', { code: String(code), source: 'upstream' });
    played.play(700).count('upstream_faults_total', { cause: 'dns' }).play(1);
    expect(played.ring.bytes).toBeLessThanOrEqual(maxBytes);
    expect(played.samples.increase('requests_total', 60_000)).toBe(0);
    expect(played.samples.increase('upstream_faults_total', 60_000)).toBe(1);
    for (let cause = 0; cause < 200; cause++) played.count('upstream_faults_total', { cause: String(cause) });
    expect(played.play(2).ring.bytes).toBeLessThanOrEqual(maxBytes);
  });

  it('gives each second for the plots, oldest first', () => {
    const played = new PlayedSamples().play(400, (now, second) => {
      if (second % 2 === 0) now.count('permits_total', { route: 'a' }, 4);
    });
    const seconds = [...played.ring.readSeconds()];
    expect(seconds).toHaveLength(300);
    expect(seconds.at(-1)?.at).toBe(400_000);
    expect(seconds.slice(-4).map((second) => second.increase('permits_total'))).toEqual([4, 0, 4, 0]);
    expect([...played.ring.readSeconds(1)].map(({ at, from }) => at - from)).toEqual([1000]);
  });
});
