import { describe, expect, it, vi } from 'vitest';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryStream } from './memory-stream.ts';

const MEBIBYTE = 1024 * 1024;

function open() {
  const clock = new ManualClock();
  const stream = new MemoryStream();
  return { clock, stream, log: createLog({ level: 'info', destination: stream, clock }) };
}

function fill(log: ReturnType<typeof createLog>, lines: number): void {
  for (let line = 0; line < lines; line++) log.info('x'.repeat(900), { line });
}

describe('batches', () => {
  it('writes few lines within 250 ms in one write, and leaves no timer', async () => {
    const { log, stream, clock } = open();
    log.info('one');
    await clock.advance(100);
    log.info('two');
    expect(stream.writes).toBe(0);
    await clock.advance(150);
    expect(stream.lines.map(({ msg }) => msg)).toEqual(['one', 'two']);
    expect(stream.writes).toBe(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('writes many lines without waiting, in order and complete', async () => {
    const { log, stream } = open();
    fill(log, 100);
    expect(stream.lines.length).toBeGreaterThanOrEqual(80);
    expect(stream.writes).toBeLessThan(25);
    await log.close(0);
    expect(stream.lines.map(({ line }) => line)).toEqual(Array.from({ length: 100 }, (_, line) => line));
  });
});

describe('memory of a batch', () => {
  const fillers = ['a', 'ß', '\u{1F4E6}', '€'.repeat(700)];

  it.each(fillers)('what a slow destination has yet to read stays as it was: %s', async (filler) => {
    const { log, stream, clock } = open();
    stream.blocked = true;
    for (let line = 0; line < 200; line++) {
      log.info(filler, { line });
      if (line % 50 === 49) await clock.advance(250);
    }
    stream.blocked = false;
    await clock.advance(250);
    expect(stream.writes).toBeGreaterThanOrEqual(4);
    expect(stream.lines.map(({ line, msg }) => [line, msg])).toEqual(
      Array.from({ length: 200 }, (_, line) => [line, filler]),
    );
    log.info('later');
    await clock.advance(250);
    expect(stream.lines.at(-1)).toMatchObject({ msg: 'later' });
  });

  it('is reused after it was written', async () => {
    const memory = new Set<ArrayBufferLike>();
    const stream = new MemoryStream();
    const write = stream.write.bind(stream);
    vi.spyOn(stream, 'write').mockImplementation((bytes) => {
      memory.add(bytes.buffer);
      return write(bytes);
    });
    const clock = new ManualClock();
    const log = createLog({ level: 'info', destination: stream, clock });
    for (let batch = 0; batch < 20; batch++) {
      fill(log, 10);
      await clock.advance(250);
    }
    expect(stream.lines).toHaveLength(200);
    expect(memory.size).toBe(1);
  });

  it('writes a line longer than a batch as a whole', async () => {
    const { log, stream, clock } = open();
    log.info('€'.repeat(100_000));
    await clock.advance(250);
    expect(stream.lines).toMatchObject([{ msg: '€'.repeat(100_000) }]);
  });
});

describe('a blocked destination', () => {
  it('holds at most 1 MiB; dropped lines are counted and reported when there is room again', async () => {
    const { log, stream, clock } = open();
    stream.blocked = true;
    fill(log, 3000);
    const dropped = log.droppedLines();
    expect(dropped).toBeGreaterThan(1500);
    expect(log.deliveryProblem()).toEqual({ code: undefined, lostLines: dropped });

    stream.blocked = false;
    await clock.advance(250);
    expect(log.deliveryProblem()).toBeUndefined();
    expect(stream.text.length).toBeGreaterThan(0.9 * MEBIBYTE);
    expect(stream.text.length).toBeLessThanOrEqual(MEBIBYTE);
    await clock.advance(250);
    expect(stream.lines.filter(({ line }) => line !== undefined)).toHaveLength(3000 - dropped);
    expect(stream.lines.filter(({ lines }) => lines !== undefined)).toMatchObject([{ level: 'warn', lines: dropped }]);
  });

  it('reports drops at most every 5 s, and once at the end', async () => {
    const { log, stream, clock } = open();
    for (let round = 0; round < 10; round++) {
      stream.blocked = true;
      fill(log, 1500);
      stream.blocked = false;
      await clock.advance(1000);
    }
    await log.close(0);
    const notices = stream.lines.flatMap(({ lines }) => (typeof lines === 'number' ? [lines] : []));
    expect(notices.length).toBe(3);
    expect(notices.reduce((sum, lines) => sum + lines, 0)).toBe(log.droppedLines());
  });

  it('close waits at most for the given time', async () => {
    const { log, stream, clock } = open();
    stream.blocked = true;
    log.info('stuck');
    let closed = false;
    const closing = log.close(500).then(() => {
      closed = true;
    });
    await clock.advance(499);
    expect(closed).toBe(false);
    await clock.advance(1);
    expect(closed).toBe(true);
    await closing;
  });

  it('close ends with the last byte when the destination takes it; later lines are dropped and counted', async () => {
    const { log, stream, clock } = open();
    stream.blocked = true;
    log.info('late');
    const closing = log.close(500);
    stream.blocked = false;
    await clock.advance(250);
    await closing;
    expect(clock.pendingTimers).toBe(0);
    log.info('too late');
    expect(stream.lines.map(({ msg }) => msg)).toEqual(['late']);
    expect(log.droppedLines()).toBe(1);
    await log.close(500);
  });
});

describe('a destination that fails', () => {
  it('gets retries with backoff, and all kept lines when it accepts bytes again', async () => {
    const { log, stream, clock } = open();
    stream.refusal = 'ENOSPC';
    fill(log, 10);
    await clock.advance(250);
    expect(log.deliveryProblem()).toEqual({ code: 'ENOSPC', lostLines: 0 });
    stream.attempts = 0;
    await clock.advance(60_000);
    expect(stream.attempts).toBeLessThan(20);
    fill(log, 3000);
    const dropped = log.droppedLines();
    expect(log.deliveryProblem()).toEqual({ code: 'ENOSPC', lostLines: dropped });
    stream.refusal = undefined;
    await clock.advance(5500);
    expect(log.deliveryProblem()).toBeUndefined();
    expect(stream.lines.filter(({ line }) => line !== undefined)).toHaveLength(3010 - dropped);
    const msg = 'log lines dropped: writing to standard output failed';
    expect(stream.lines.at(-1)).toMatchObject({ level: 'warn', lines: dropped, refusal: 'ENOSPC', msg });
    expect(clock.pendingTimers).toBe(0);
  });

  it('is reported in one line when nothing was lost', async () => {
    const { log, stream, clock } = open();
    stream.refusal = 'EIO';
    log.info('kept');
    await clock.advance(1000);
    stream.refusal = undefined;
    await clock.advance(5500);
    expect(stream.lines).toMatchObject([{ msg: 'kept' }, { lines: 0, refusal: 'EIO' }]);
    expect(log.droppedLines()).toBe(0);
  });

  it('does not delay close; remaining lines are counted', async () => {
    const { log, stream } = open();
    stream.refusal = 'ENOSPC';
    fill(log, 5);
    await log.close(500);
    expect(log.droppedLines()).toBe(5);
    expect(stream.text).toBe('');
  });

  it.each(['EPIPE', 'ECONNRESET'])('drops and counts lines at once without a reader (%s)', async (code) => {
    const { log, stream, clock } = open();
    log.info('before');
    await clock.advance(250);
    stream.refusal = code;
    fill(log, 5);
    await clock.advance(250);
    expect(log.droppedLines()).toBe(5);
    expect(log.deliveryProblem()).toEqual({ code, lostLines: 5 });
    stream.attempts = 0;
    for (let second = 0; second < 60; second++) {
      fill(log, 30);
      await clock.advance(1000);
    }
    expect(stream.attempts).toBeLessThan(40);
    await log.close(500);
    expect(stream.lines).toHaveLength(1);
    expect(log.droppedLines()).toBe(5 + 60 * 30);
    expect(clock.pendingTimers).toBe(0);
  });

  it('writes whole lines to a named pipe with a new reader', async () => {
    const { log, stream, clock } = open();
    stream.refusal = 'EPIPE';
    fill(log, 7);
    await clock.advance(10_000);
    stream.refusal = undefined;
    log.info('written');
    await clock.advance(10_000);
    expect(stream.lines).toMatchObject([{ msg: 'written' }, { lines: 7, refusal: 'EPIPE' }]);
  });
});
