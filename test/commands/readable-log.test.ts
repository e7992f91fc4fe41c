/** The readable log, and when it is used. */
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { paintNothing } from '../../src/commands/terminal.ts';
import type { Paint } from '../../src/commands/terminal.ts';
import { formatLine, isReadableFormat, openLog } from '../../src/commands/readable-log.ts';
import { MemoryStream } from '../telemetry/log/memory-stream.ts';

const TIME = '2026-11-21T10:00:00.007Z';
const shown = (fields: object, paint: Paint = paintNothing): string =>
  formatLine(JSON.stringify({ level: 'info', time: TIME, ...fields }), paint);

describe('a line', () => {
  test('has local time, level, message and the other fields', () => {
    const line = shown({
      level: 'warn',
      status: 429,
      pauseMs: 1000,
      stated: null,
      msg: 'rate limited by the upstream',
    });
    const at = new Date(TIME);
    const two = (number: number): string => String(number).padStart(2, '0');
    expect(line).toBe(
      `${two(at.getHours())}:${two(at.getMinutes())}:00.007 warn  rate limited by the upstream status=429 pauseMs=1000 stated=null`,
    );
  });
  test('of a request begins like an access log, without the usual values', () => {
    const request = { method: 'POST', path: '/quotes', route: 'default', code: 201, source: 'upstream' };
    const rest = { durationMs: 12.3, queuedMs: 0, attempts: 1, requestBytes: 9, responseBytes: 30, msg: 'request' };
    expect(shown({ ...request, ...rest }).slice('00:00:00.000 '.length)).toBe(
      'info  POST /quotes 201 in 12.3 ms requestBytes=9 responseBytes=30',
    );
    const odd = {
      ...request,
      ...rest,
      route: 'b',
      source: 'sidecar',
      code: 503,
      localReply: 'QUEUE_FULL',
      attempts: 2,
    };
    expect(shown(odd)).toContain(
      'POST /quotes 503 in 12.3 ms route=b source=sidecar attempts=2 requestBytes=9 responseBytes=30 localReply=QUEUE_FULL',
    );
  });
  test.each([
    [{ a: 'two words' }, 'a="two words"'],
    [{ a: 'x="y"' }, String.raw`a="x=\"y\""`],
    [{ a: ['b', 1] }, 'a=["b",1]'],
    [{ a: { b: null } }, 'a={"b":null}'],
    [{ a: '' }, 'a=""'],
    [{ a: true }, 'a=true'],
  ])('quotes values that are not one word: %j', (fields, text) => {
    expect(shown({ ...fields, msg: 'm' }).endsWith(` m ${text}`)).toBe(true);
  });
  test('escapes control characters everywhere', () => {
    const nasty = '\u001b[2J\u0007\r\nforged\u202e\u2028\u009b1A';
    const line = shown({ level: nasty, [nasty]: nasty, list: [nasty], msg: nasty, method: nasty });
    const request = shown({ msg: 'request', method: nasty, path: nasty, code: nasty, durationMs: nasty, time: nasty });
    for (const text of [line, request, formatLine(`no JSON ${nasty}`, paintNothing)])
      expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });
  test.each(['', 'plain words', '[1]', '"text"', '{"level":'])('that is not a JSON object is unchanged: %j', (line) => {
    expect(formatLine(line, paintNothing)).toBe(line);
  });
  test('colours level and status by severity', () => {
    const paint: Paint = (role, text) => `<${role}>${text}</>`;
    expect(shown({ level: 'error', msg: 'm' }, paint)).toContain('<bad>error</>');
    for (const [code, role] of [
      [201, 'good'],
      [404, 'warning'],
      [502, 'bad'],
    ] as const)
      expect(shown({ msg: 'request', method: 'GET', path: '/', code, durationMs: 1 }, paint)).toContain(
        `<${role}>${String(code)}</>`,
      );
  });
});

test.each([
  ['auto', true, true],
  ['auto', false, false],
  ['json', true, false],
  ['pretty', false, true],
] as const)('%s, on a terminal: %s → readable: %s', (format, isTTY, expected) => {
  expect(isReadableFormat(format, { isTTY })).toBe(expected);
});

test.each([
  ['json', /^\{"level":"info","time":".*","a":1,"msg":"hello"\}\n$/],
  ['pretty', /^\d\d:\d\d:\d\d\.\d{3} info {2}hello a=1\n$/],
] as const)('a log opened as %s writes that format and masks secrets', async (format, expected) => {
  const destination = new MemoryStream();
  const stream = Object.assign(new Writable(), { fd: -1 });
  const settings = { format, level: 'info', sample: 1, slowMs: 1000 } as const;
  const log = openLog(settings, stream, { destination });
  log.secrets.add('sesame-of-the-log');
  log.info('hello', { a: 1 });
  await log.close(1000);
  expect(destination.text).toMatch(expected);

  const other = openLog(settings, stream, { destination });
  other.secrets.add('sesame-of-the-log');
  other.info('opened by sesame-of-the-log');
  await other.close(1000);
  expect(destination.text).toContain('opened by ********');
});
