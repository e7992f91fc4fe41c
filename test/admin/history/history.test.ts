/** The last minutes in numbers: one row per second, at most five minutes. */
import { describe, expect, it } from 'vitest';
import { History, PLOTTED_THROTTLES, ROW_COLUMNS } from '../../../src/admin/history/history.ts';
import type { ThrottleSample, PlotRow } from '../../../src/admin/history/history.ts';
import type { AttemptOutcome, RequestEvent, SidecarEvent } from '../../../src/telemetry/events.ts';

const WALL = Date.UTC(2026, 10, 1, 14, 5);
const idle: ThrottleSample = { route: 'default', rate: Infinity, queued: 0, inFlight: 0 };

function ended(code: number, durationMs = 40, source: RequestEvent['source'] = 'upstream'): SidecarEvent {
  return {
    ...{ kind: 'request-ended', route: 'default', method: 'GET', path: '/', code, source, durationMs },
    ...{ queuedMs: 0, attempts: 1, requestBytes: 0, responseBytes: 0 },
  };
}

const sent: SidecarEvent = { kind: 'permit-granted', route: 'default', waitedMs: 0 };
const refused: SidecarEvent = {
  ...{ kind: 'rate-limited', route: 'default', status: 429, pauseMs: 0, stated: false, fields: {} },
};

function attempt(outcome: AttemptOutcome, isOwn = false): SidecarEvent {
  return { kind: 'attempt-ended', route: 'default', outcome, durationMs: 1, isOwn };
}

/** A second in each call. */
function start(gauges: readonly ThrottleSample[] = [idle]) {
  const history = new History(0);
  let now = 0;
  const second = (
    events: readonly SidecarEvent[] = [],
    lengthMs = 1000,
  ): Record<(typeof ROW_COLUMNS)[number], number | null> => {
    for (const event of events) history.observe(event);
    now += lengthMs;
    return named(history.sample(now, WALL + now, gauges));
  };
  return { history, second };
}

function named(row: PlotRow): Record<(typeof ROW_COLUMNS)[number], number | null> {
  return Object.fromEntries(ROW_COLUMNS.map((name, index) => [name, row[index] ?? null])) as never;
}

describe('a row', () => {
  it('counts requests by status class and source', () => {
    const { second } = start();
    const events = [ended(200), ended(304), ended(404), ended(429), ended(503), ended(503, 1, 'sidecar')];
    expect(second([...events, ended(499, 1, 'sidecar')])).toMatchObject({
      ...{ ok: 2, clientErrors: 2, serverErrors: 1, own: 1 },
    });
  });

  it('counts permits and rate-limit responses per second, for any sample length', () => {
    const { second } = start();
    expect(second([sent, sent, sent, sent, refused, refused], 2000)).toMatchObject({ sent: 2, refused: 1 });
  });

  it('starts at zero each second and has the time of its end', () => {
    const { second } = start();
    second([ended(200), sent, refused]);
    expect(second()).toEqual({
      ...{ at: WALL / 1000 + 2, ok: 0, clientErrors: 0, serverErrors: 0, own: 0, sent: 0, refused: 0 },
      ...{ p50Ms: null, p95Ms: null, p99Ms: null, queued: 0, inFlight: 0 },
    });
  });

  it('has quantiles with an error of at most one eighth', () => {
    const { second } = start();
    for (const ms of [0.1, 0.7, 3, 45, 120, 999, 30_000, 600_000]) {
      const { p50Ms, p95Ms } = second([ended(200, ms), ended(200, ms), ended(200, ms)]);
      expect(Math.abs((p50Ms ?? 0) / ms - 1)).toBeLessThan(0.13);
      expect(p95Ms).toBe(p50Ms);
    }
    const row = second([
      ...Array.from({ length: 90 }, () => ended(200, 10)),
      ...Array.from({ length: 10 }, () => ended(200, 1000)),
    ]);
    expect(row.p50Ms).toBeLessThan(12);
    expect(row.p95Ms).toBeGreaterThan(880);
  });

  it('accepts unusual durations and codes', () => {
    const { history, second } = start();
    const { p50Ms } = second([ended(200, 0), ended(999, -1), ended(200, 1e12), ended(200, NaN), ended(0)]);
    expect(p50Ms).toBeGreaterThanOrEqual(0);
    expect(history.minutes.readCodes().reduce((sum, { count }) => sum + count, 0)).toBe(5);
  });

  it('sums up queues, and has the rate of each of the first throttles, null while unpaced', () => {
    const gauges = Array.from({ length: PLOTTED_THROTTLES + 2 }, (_, index) => ({
      ...{ route: `r${String(index)}`, rate: index === 0 ? Infinity : index, queued: 2, inFlight: 3 },
    }));
    const { history, second } = start(gauges);
    expect(second()).toMatchObject({ queued: 12, inFlight: 18 });
    expect(history.rows()[0]?.slice(ROW_COLUMNS.length)).toEqual([null, 1, 2, 3]);
  });
});

describe('the history', () => {
  it('keeps five minutes of rows, oldest first', () => {
    const { history, second } = start();
    for (let count = 0; count < 400; count++) second();
    const rows = history.rows();
    expect(rows).toHaveLength(300);
    expect([rows[0]?.[0], rows.at(-1)?.[0]]).toEqual([WALL / 1000 + 101, WALL / 1000 + 400]);
  });

  it('sums up the last minute', () => {
    const { history, second } = start();
    second([ended(500, 9000), attempt('timeout'), sent, refused]);
    for (let count = 0; count < 59; count++) second([ended(200, 20), attempt('ok')]);
    expect(history.lastMinute()).toMatchObject({
      ...{ requests: 60, ok: 59, serverErrors: 1, faults: 1, sent: 1, refused: 1, spanMs: 60_000 },
    });
    second([attempt('unreachable'), attempt('reset'), attempt('unauthorized')]);
    const last = history.lastMinute();
    expect(last).toMatchObject({ requests: 59, serverErrors: 0, faults: 2, sent: 0, refused: 0 });
    expect(last.p95Ms).toBeLessThan(25);
  });

  it('counts no fault for an attempt that the sidecar ended itself', () => {
    const { history, second } = start();
    second(Array.from({ length: 10 }, () => attempt('reset', true)));
    expect(history.lastMinute().faults).toBe(0);
    second([attempt('reset', true), attempt('reset')]);
    expect(history.lastMinute().faults).toBe(1);
  });

  it('is empty before the first second', () => {
    const { history } = start();
    expect(history.lastMinute()).toMatchObject({ requests: 0, spanMs: 0, p50Ms: undefined });
    expect([history.rows(), history.minutes.read(), history.minutes.readCodes()]).toEqual([[], [], []]);
  });
});

describe('the minutes by the wall clock', () => {
  it('are at most five, newest first, each with its requests and longest queue', () => {
    const gauge = { ...idle, queued: 1 };
    const { history, second } = start([gauge]);
    for (let count = 0; count < 6 * 60; count++) {
      gauge.queued = count % 60;
      second([ended(201), refused]);
    }
    const minutes = history.minutes.read();
    expect(minutes.map(({ wallAt }) => (wallAt - WALL) / 60_000)).toEqual([6, 5, 4, 3, 2]);
    expect(minutes[1]).toMatchObject({ requests: 60, refused: 60, maxQueued: 59 });
  });

  it('separate codes of upstream and sidecar, and drop older minutes', () => {
    const { history, second } = start();
    second([ended(200), ended(200), ended(503), ended(503, 1, 'sidecar')]);
    expect(history.minutes.readCodes()).toEqual([
      { code: 200, source: 'upstream', count: 2 },
      { code: 503, source: 'upstream', count: 1 },
      { code: 503, source: 'sidecar', count: 1 },
    ]);
    for (let count = 0; count < 300; count++) second();
    expect(history.minutes.readCodes()).toEqual([]);
  });
});
