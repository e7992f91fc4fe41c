import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseTimes } from '../../../src/throttle/queue/response-times.ts';

const MINUTE_MS = 60_000;

function recordMany(
  times: ResponseTimes,
  count: number,
  ms: number,
  hasResponded = true,
  at = 0,
  endpoint = 'GET /',
): void {
  for (let call = 0; call < count; call++) times.record(at, endpoint, ms, hasResponded);
}

describe('response times', () => {
  it('are known from the twentieth call on', () => {
    const times = new ResponseTimes();
    recordMany(times, 19, 300);
    expect([times.timesOf('GET /').longestMs(0), times.timesOf('GET /').shareWithin(0, 200)]).toEqual([0, 1]);
    recordMany(times, 1, 300);
    expect(times.timesOf('GET /').longestMs(0)).toBeGreaterThanOrEqual(300);
    expect(times.timesOf('GET /').shareWithin(0, 200)).toBe(0);
    expect(times.timesOf('GET /other').longestMs(0)).toBe(0);
  });

  it('are those of 995 in 1000 calls, at most a fifth too high, and so are those of any other share', () => {
    const DURATIONS = fc.array(fc.double({ min: 1, max: 100_000, noNaN: true }), { minLength: 20, maxLength: 400 });
    fc.assert(
      fc.property(DURATIONS, fc.double({ min: 1, max: 200_000, noNaN: true }), (durations, requestedMs) => {
        const times = new ResponseTimes();
        for (const ms of durations) times.record(0, 'GET /', ms, true);
        const sorted = durations.sort((one, other) => one - other);
        const countWithin = (ms: number): number => durations.filter((each) => each <= ms).length / durations.length;
        const longestMs = times.timesOf('GET /').longestMs(0);
        expect(countWithin(longestMs)).toBeGreaterThanOrEqual(0.995 - 1e-9);
        expect(longestMs).toBeLessThanOrEqual(1.2 * sorted[Math.ceil(0.995 * durations.length - 1e-9) - 1]!);
        for (const ms of [1, requestedMs, ...durations]) {
          const share = times.timesOf('GET /').shareWithin(0, ms);
          if (ms > 1.2 * sorted.at(-1)!) expect(share).toBeGreaterThanOrEqual(1 - 1e-9);
          else expect(share).toBeLessThanOrEqual(countWithin(ms) + 1e-9);
          expect(share).toBeGreaterThanOrEqual(countWithin(ms / 1.2) - 1e-9);
        }
      }),
    );
  });

  it('are the same however often they were asked for before', () => {
    const call = fc.record({ afterMs: fc.integer({ min: 0, max: 400_000 }), ms: fc.integer({ min: 1, max: 60_000 }) });
    const burst = fc.record({ ...{ call, hasResponded: fc.boolean() }, count: fc.integer({ min: 1, max: 120 }) });
    fc.assert(
      fc.property(fc.array(burst, { minLength: 1, maxLength: 12 }), fc.nat(700_000), (bursts, laterMs) => {
        const [often, once] = [new ResponseTimes(), new ResponseTimes()];
        const ask = (times: ResponseTimes, at: number) => [
          times.timesOf('GET /').longestMs(at),
          times.timesOf('GET /').shareWithin(at, 1000),
        ];
        let at = 0;
        for (const { call, hasResponded, count } of bursts) {
          ask(often, at);
          at += call.afterMs;
          ask(often, at);
          for (const times of [often, once]) recordMany(times, count, call.ms, hasResponded, at);
          ask(often, at);
        }
        expect(ask(often, at + laterMs)).toEqual(ask(once, at + laterMs));
      }),
      { numRuns: 500 },
    );
  });

  it('count a call that was cut off as longer than it lasted', () => {
    const times = new ResponseTimes();
    recordMany(times, 500, 300);
    recordMany(times, 50, 50, false);
    expect(times.timesOf('GET /').longestMs(0)).toBeLessThan(360);
    recordMany(times, 50, 400, false);
    expect(times.timesOf('GET /').longestMs(0)).toBe(Infinity);
    expect(times.timesOf('GET /').shareWithin(0, 360)).toBeGreaterThan(0.9);
    expect(times.timesOf('GET /').shareWithin(0, 400)).toBeLessThan(0.995);
    recordMany(times, 50, 2000);
    expect(times.timesOf('GET /').longestMs(0)).toBeGreaterThanOrEqual(2000);
    expect(times.timesOf('GET /').longestMs(0)).toBeLessThan(2400);
  });

  it('are not guessed beyond the longest time that a call was given', () => {
    const times = new ResponseTimes();
    recordMany(times, 50, 300);
    recordMany(times, 50, 400, false);
    expect(times.timesOf('GET /').shareWithin(0, 400)).toBeCloseTo(0.5);
    expect(times.timesOf('GET /').shareWithin(0, 2000)).toBe(1);
    expect(times.timesOf('GET /').shareWithin(0, Infinity)).toBeCloseTo(0.5);
  });

  it('of an upstream that became quick are forgotten within half a minute, when there are enough new ones', () => {
    const times = new ResponseTimes();
    recordMany(times, 200, 4000);
    for (let at = 0; at <= 31_000; at += 100) times.record(at, 'GET /', 20, true);
    expect(times.timesOf('GET /').longestMs(31_000)).toBeLessThan(24);
  });

  it('are kept for five minutes while few calls come, and forgotten when none came for ten', () => {
    const times = new ResponseTimes();
    for (let call = 0; call < 20; call++) times.record(call * 12_000, 'GET /', 300, true);
    expect(times.timesOf('GET /').longestMs(4 * MINUTE_MS)).toBeGreaterThan(0);
    expect(times.timesOf('GET /').longestMs(10 * MINUTE_MS)).toBe(0);
  });

  it.each([-MINUTE_MS, 1e12])('survive a jump of the clock by %d ms', (jumpMs) => {
    const times = new ResponseTimes();
    recordMany(times, 30, 5000);
    recordMany(times, 30, 20, true, jumpMs);
    recordMany(times, 30, 20, true, jumpMs + 15_000);
    expect(times.timesOf('GET /').longestMs(jumpMs + 15_000)).toBeLessThan(24);
  });

  it('are kept for 64 endpoints; an endpoint without calls of late gives its place to another, and the rest share one', () => {
    const times = new ResponseTimes();
    for (let endpoint = 0; endpoint < 64; endpoint++) recordMany(times, 20, 300, true, 0, `GET /${endpoint}`);
    for (let endpoint = 64; endpoint < 1000; endpoint++) recordMany(times, 1, 2000, true, 0, `GET /${endpoint}`);
    expect(times.timesOf('GET /0').longestMs(0)).toBeLessThan(360);
    expect(times.timesOf('GET /1001').longestMs(0)).toBeGreaterThanOrEqual(2000);
    const later = 10 * MINUTE_MS;
    for (let endpoint = 0; endpoint < 64; endpoint++) recordMany(times, 20, 20, true, later, `PUT /${endpoint}`);
    for (let endpoint = 0; endpoint < 64; endpoint++)
      expect(times.timesOf(`PUT /${endpoint}`).longestMs(later)).toBeLessThan(24);
  });
});
