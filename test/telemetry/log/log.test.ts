import { describe, expect, it } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import type { LogOptions } from '../../../src/telemetry/log/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryStream } from './memory-stream.ts';

const request: RequestRecord = {
  route: 'default',
  method: 'POST',
  path: '/policies',
  code: 503,
  source: 'sidecar',
  localReply: 'QUEUE_FULL',
  durationMs: 12.3456,
  queuedMs: 7,
  attempts: 0,
  requestBytes: 21,
  responseBytes: 300,
  requestId: 'an-id',
};
const limited: SidecarEvent = {
  kind: 'rate-limited',
  scope: 'route',
  route: 'default',
  status: 429,
  pauseMs: 1500.4,
  stated: true,
  fields: { 'retry-after': 2 },
};

function open(level: LogOptions['level'] = 'info', options: Partial<LogOptions> = {}) {
  const clock = new ManualClock(Date.UTC(2026, 10, 1));
  const stream = new MemoryStream();
  return { clock, stream, log: createLog({ level, destination: stream, clock, ...options }) };
}

describe('lines', () => {
  it('writes one access line per request, with time, level and message', async () => {
    const { log, stream } = open();
    for (const record of log.recorders.requests) record(request);
    await log.close(0);
    expect(stream.lines).toEqual([
      {
        level: 'warn',
        time: '2026-11-01T00:00:00.000Z',
        method: 'POST',
        path: '/policies',
        route: 'default',
        code: 503,
        source: 'sidecar',
        localReply: 'QUEUE_FULL',
        durationMs: 12.3,
        queuedMs: 7,
        attempts: 0,
        requestBytes: 21,
        responseBytes: 300,
        requestId: 'an-id',
        msg: 'request',
      },
    ]);
  });

  it('logs a new token at info and a failure as a warning with its detail', async () => {
    const { log, stream } = open();
    const event = { kind: 'token-requested', credential: 'default', durationMs: 20 } as const;
    log.observe({ ...event, outcome: 'ok', lifetimeMs: 3_600_000, nextInMs: 2_700_000.2 });
    log.observe({ ...event, outcome: 'rejected', detail: 'invalid_client', nextInMs: 60_000 });
    await log.close(0);
    expect(stream.lines).toMatchObject([
      { level: 'info', outcome: 'ok', lifetimeMs: 3_600_000, nextInMs: 2_700_000 },
      { level: 'warn', outcome: 'rejected', detail: 'invalid_client', nextInMs: 60_000 },
    ]);
  });

  it('logs process events at info, and a drain that cut requests as a warning', async () => {
    const { log, stream } = open();
    log.observe({ kind: 'listening', server: 'proxy', url: 'http://localhost:18080' });
    log.observe({ kind: 'draining', inFlight: 2, queued: 1, drainMs: 25_000 });
    log.observe({ kind: 'token-invalidated', credential: 'default', reason: 'unauthorized' });
    log.observe({ kind: 'stopped', cut: 0 });
    log.observe({ kind: 'stopped', cut: 3 });
    log.observe({ kind: 'warning', message: 'unknown variable SIDECAR_X' });
    await log.close(0);
    expect(stream.lines.map(({ level, msg, url, cut }) => [level, msg, url ?? cut])).toEqual([
      ['info', 'listening', 'http://localhost:18080'],
      ['info', 'draining', undefined],
      ['info', 'token invalidated', undefined],
      ['info', 'stopped', 0],
      ['warn', 'stopped', 3],
      ['warn', 'unknown variable SIDECAR_X', undefined],
    ]);
  });

  it.each([
    ['info', 0],
    ['debug', 2],
  ] as const)('at %s the small steps of a request make %i lines', async (level, count) => {
    const { log, stream } = open(level);
    log.recorders.debug?.({ kind: 'permit-granted', route: 'default', waitedMs: 1 });
    log.observe({ kind: 'retry', route: 'default', reason: 'reset' });
    await log.close(0);
    expect(stream.lines).toHaveLength(count);
  });

  it('at warn shows the requests that the sidecar failed, also when others are sampled, and makes no id for another', async () => {
    const sampling = { share: 0, slowMs: 1000, random: () => 0 };
    const { log, stream } = open('warn', { sampling });
    const relayed: RequestRecord = { ...request, requestId: undefined, source: 'upstream', localReply: undefined };
    const refused: RequestRecord = { ...request, code: 403, localReply: 'HOST_NOT_ALLOWED' };
    const left: RequestRecord = { ...request, code: 499, localReply: undefined };
    const failed: RequestRecord = { ...request, requestId: undefined };
    for (const each of [relayed, refused, left, failed]) log.recorders.requests[0]!(each);
    await log.close(0);
    expect(stream.lines).toMatchObject([
      { level: 'warn', code: 503, localReply: 'QUEUE_FULL', requestId: failed.requestId },
    ]);
    expect(relayed.requestId).toBeUndefined();
    expect(failed.requestId).toMatch(/^[a-p]{12}-\d+$/);
  });

  it('drops the lines of a flood of failed requests that its destination does not take, and counts them', async () => {
    const clock = new ManualClock();
    const log = createLog({ level: 'warn', clock, destination: { write: () => 0 } });
    for (let count = 0; count < 20_000; count++) log.recorders.requests[0]!({ ...request });
    expect(log.droppedLines()).toBeGreaterThan(10_000);
    await Promise.all([log.close(10), clock.advance(20)]);
    expect(log.droppedLines()).toBe(20_000);
  });

  it('logs nothing at level silent', async () => {
    const { log, stream } = open('silent');
    for (const record of log.recorders.requests) record(request);
    log.error('nothing');
    await log.close(0);
    expect(stream.text).toBe('');
  });

  it('truncates texts from clients and escapes control characters', async () => {
    const { log, stream } = open();
    const wild = '/\u001b[2J\u009b31m\u007f\u2028\r\n{"level":"fatal"}\ud800';
    for (const record of log.recorders.requests)
      record({ ...request, path: wild, method: 'M'.repeat(600), fault: 'f'.repeat(600) });
    for (const record of log.recorders.requests) record({ ...request, path: `/${'p'.repeat(2000)}` });
    await log.close(0);
    expect(stream.text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    expect(stream.lines).toHaveLength(2);
    expect(stream.lines[0]?.path).toBe(wild);
    expect(stream.lines[0]?.method).toHaveLength(513);
    expect(stream.lines[0]?.fault).toHaveLength(513);
    expect(stream.lines[1]?.path).toBe(`/${'p'.repeat(511)}…`);
  });
});

describe('rate-limit signals', () => {
  it('logs repeated signals once at first, then one summary per window', async () => {
    const { log, stream, clock } = open();
    for (let second = 0; second < 12; second++) {
      for (let signal = 0; signal < 100; signal++) log.observe(limited);
      await clock.advance(1000);
    }
    await log.close(0);
    expect(stream.lines.map(({ level, signals, pauseMs }) => [level, signals, pauseMs])).toEqual([
      ['warn', undefined, 1500],
      ['warn', 499, 1500],
      ['warn', 500, 1500],
      ['warn', 200, 1500],
    ]);
    expect(stream.lines[0]).toMatchObject({ rateLimitFields: { 'retry-after': 2 }, stated: true, status: 429 });
  });

  it('logs the first signal after a quiet window at once, and leaves no timer', async () => {
    const { log, stream, clock } = open();
    log.observe(limited);
    await clock.advance(6000);
    expect(clock.pendingTimers).toBe(0);
    log.observe(limited);
    await clock.advance(250);
    expect(stream.lines).toHaveLength(2);
    await log.close(0);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('secrets', () => {
  const clientId = 'partner/1';
  const secret = 'p"ä s+s/w%\u0085\\x';
  const basic = Buffer.from(`${clientId}:${secret}`).toString('base64');

  it.each([
    ['plain', secret],
    ['in base64', Buffer.from(secret).toString('base64')],
    ['URL-encoded', encodeURIComponent(secret)],
    ['form-encoded', new URLSearchParams({ s: secret }).toString().slice(2)],
    ['Basic', basic],
    ['Basic without padding', basic.replace(/=+$/, '')],
    ['Basic, URL-encoded', encodeURIComponent(basic)],
  ])('masks %s anywhere in a line', async (_, written) => {
    const { log, stream } = open('debug');
    log.secrets.add(secret);
    for (const record of log.recorders.requests) record({ ...request, path: `/a${written}b`, fault: `x ${written}` });
    log.warn(`said ${written}`, { [`key ${written}`]: { deep: [written, `${written}${written}`] } });
    await log.close(0);
    const asWritten = JSON.stringify(written.replace(/=+$/, '')).slice(1, -1);
    expect(stream.text).not.toContain(asWritten);
    expect(stream.lines).toHaveLength(2);
    // The client id of Basic credentials is none.
    expect(stream.lines[0]?.path).toMatch(/^\/a\w*\*{8}(=|%3D)*b$/);
    expect(JSON.stringify(stream.lines)).not.toContain(JSON.stringify(secret).slice(1, -1));
  });

  it('masks Basic credentials of a form-encoded pair (RFC 6749 §2.3.1)', async () => {
    const { log, stream } = open();
    const plainSecret = 'p+s/w=1234';
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(plainSecret)}`;
    log.secrets.add(plainSecret);
    log.info(Buffer.from(pair).toString('base64'));
    await log.close(0);
    expect(stream.lines[0]?.msg).toMatch(/^\w*\*{8}=*$/);
  });

  it('masks a value for an hour after another one has taken its place, and one without an owner always', async () => {
    const { log, stream, clock } = open();
    const value = (index: number) => `renewed-${String(index)}-secret`;
    log.secrets.add('password-of-a-proxy');
    for (let index = 0; index < 8; index++) log.secrets.add(value(index), 'one owner');
    log.info(value(0));
    await clock.advance(3_599_999);
    log.secrets.add(value(8), 'one owner');
    log.info(value(0));
    await clock.advance(1000);
    log.secrets.add(value(9), 'one owner');
    for (const text of ['password-of-a-proxy', value(9), value(8), value(7), value(6), value(5)]) log.info(text);
    await log.close(0);
    const shown = stream.lines.map(({ msg }) => msg);
    expect(shown).toEqual([...Array<string>(7).fill('********'), value(5)]);
  });

  it('ignores a value that is too short to be a secret', async () => {
    const { log, stream } = open();
    log.secrets.add('');
    log.secrets.add('i');
    log.secrets.add('","');
    log.info('initial');
    await log.close(0);
    expect(stream.lines).toMatchObject([{ level: 'info', msg: 'initial' }]);
  });

  it('keeps valid JSON when a secret looks like JSON syntax', async () => {
    const { log, stream } = open();
    log.secrets.add('","msg":"');
    log.info('","msg":"', { key: '","msg":"' });
    await log.close(0);
    expect(stream.lines).toMatchObject([{ key: '********', msg: '********' }]);
  });
});
