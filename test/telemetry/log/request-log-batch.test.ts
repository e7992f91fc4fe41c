import { expect, it } from 'vitest';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryStream } from './memory-stream.ts';

function open() {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const stream = new MemoryStream();
  return { clock, stream, log: createLog({ level: 'info', destination: stream, clock }) };
}

function ended(path: string): RequestRecord {
  const counted = { durationMs: 1, queuedMs: 0, attempts: 1, requestBytes: 0, responseBytes: 2 };
  return { route: 'default', method: 'GET', path, code: 200, source: 'upstream', ...counted };
}

it('writes requests within 250 ms with the time of their end, and leaves no timer', async () => {
  const { clock, stream, log } = open();
  for (const record of log.recorders.requests) record(ended('/first'));
  await clock.advance(100);
  for (const record of log.recorders.requests) record(ended('/second'));
  await clock.advance(149);
  expect(stream.lines).toEqual([]);
  await clock.advance(1);
  expect(stream.lines).toMatchObject([
    { path: '/first', time: '2026-11-01T00:00:00.000Z' },
    { path: '/second', time: '2026-11-01T00:00:00.100Z' },
  ]);
  expect(clock.pendingTimers).toBe(0);
});

it('writes a full batch at once', () => {
  const { clock, stream, log } = open();
  const paths = Array.from({ length: 64 }, (_, index) => `/${String(index)}`);
  for (const path of paths) for (const record of log.recorders.requests) record(ended(path));
  expect(stream.lines.map(({ path }) => path)).toEqual(paths);
  expect(clock.pendingTimers).toBe(0);
});

it('writes other lines after the batch, each with its own time', async () => {
  const { clock, stream, log } = open();
  for (const record of log.recorders.requests) record(ended('/before'));
  await clock.advance(100);
  log.warn('between');
  await clock.advance(100);
  for (const record of log.recorders.requests) record(ended('/after'));
  await log.close(0);
  expect(stream.lines).toMatchObject([
    { path: '/before', time: '2026-11-01T00:00:00.000Z' },
    { msg: 'between', time: '2026-11-01T00:00:00.100Z' },
    { path: '/after', time: '2026-11-01T00:00:00.200Z' },
  ]);
});

it('writes a following line together with the batch', async () => {
  const { clock, stream, log } = open();
  for (let count = 0; count < 10; count++) {
    for (const record of log.recorders.requests) record(ended('/one'));
    log.warn('another');
  }
  expect(stream.writes).toBe(0);
  await clock.advance(250);
  expect([stream.lines.length, stream.writes]).toEqual([20, 1]);
});

it('logs requests that ended before the level was lowered', async () => {
  const { stream, log } = open();
  for (const record of log.recorders.requests) record(ended('/logged'));
  log.setLevel('warn');
  for (const record of log.recorders.requests) record(ended('/not-logged'));
  await log.close(0);
  expect(stream.lines).toMatchObject([{ path: '/logged' }]);
});
