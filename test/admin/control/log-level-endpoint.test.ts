/** The log level on the admin port: for local peers only, not changed by a browser, reset after the given time. */
import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogLevelSwitch } from '../../../src/admin/control/log-level-switch.ts';
import { createAdminHandler } from '../../../src/admin/server.ts';
import type { LogLevel } from '../../../src/telemetry/events.ts';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { unpaced, validToken } from '../states.ts';

interface Given {
  readonly isAllowed?: boolean;
  readonly peer?: string;
  readonly configured?: LogLevel;
}

async function open({ isAllowed = true, peer = '127.0.0.1', configured = 'info' }: Given = {}) {
  const clock = new ManualClock();
  const applied: string[] = [];
  const levels = createLogLevelSwitch({
    configured,
    apply: (level) => void applied.push(level),
    report: (message) => void applied.push(`logged: ${message}`),
    clock,
  });
  const handler = createAdminHandler({
    version: '1',
    allowedHosts: [{ host: 'localhost', port: undefined }],
    exposeAll: true,
    tokens: () => [validToken],
    throttles: () => [unpaced],
    draining: () => false,
    metrics: { render: () => Promise.resolve(''), contentType: 'text/plain' },
    clock,
    peerAddress: () => peer,
    logLevelSwitch: isAllowed ? levels : undefined,
  });
  const server = createServer((request, response) => void handler(request, response));
  const url = `${await listenOnLoopback(server)}/log-level`;
  onTestFinished(() => closeServer(server));
  const put = async (body: string, query = '', headers: Record<string, string> = {}) => {
    const reply = await fetch(url + query, { method: 'PUT', body, headers });
    return { status: reply.status, json: (await reply.json()) as Record<string, unknown> };
  };
  const get = async () => await (await fetch(url)).json();
  return { clock, applied, levels, url, put, get };
}

describe('the level', () => {
  it('is shown and changed', async () => {
    const { applied, put, get, clock } = await open();
    expect(await get()).toEqual({ level: 'info' });
    expect(await put('debug\n')).toEqual({ status: 200, json: { level: 'debug' } });
    await clock.advance(1e9);
    expect(await get()).toEqual({ level: 'debug' });
    expect(applied).toEqual(['debug', 'logged: log level changed on the admin port to debug']);
  });

  it('is reset after the given time, and each change is logged at the more verbose level', async () => {
    const { applied, put, get, clock } = await open();
    await put('error', '?for=10m');
    await clock.advance(60_000);
    expect(await get()).toEqual({ level: 'error', fallsBackTo: 'info', fallsBackInMs: 540_000 });
    await clock.advance(540_000);
    expect(await get()).toEqual({ level: 'info' });
    expect(applied).toEqual([
      'logged: log level changed on the admin port to error for 600 s, then info',
      'error',
      'info',
      'logged: log level reset to info',
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is reset once to the configured level after several changes', async () => {
    const { put, get, clock } = await open({ configured: 'warn' });
    await put('debug', '?for=10s');
    await put('trace', '?for=1h');
    await clock.advance(10_000);
    expect(await get()).toMatchObject({ level: 'trace', fallsBackTo: 'warn' });
    await clock.advance(3_600_000);
    expect(await get()).toEqual({ level: 'warn' });
  });

  it('is the configured one after a reload', async () => {
    const { levels, put, get, clock } = await open();
    await put('debug', '?for=10s');
    levels.configure('warn');
    expect(await get()).toEqual({ level: 'warn' });
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('refused', () => {
  it.each(['', 'loud', 'DEBUG', 'debug info', '"debug"', `debug${' '.repeat(100)}`, 'x'.repeat(1e6)])(
    'is a body that is no level (%#)',
    async (body) => {
      const { applied, put } = await open();
      expect(await put(body)).toMatchObject({ status: 400, json: { code: 'BAD_REQUEST' } });
      expect(applied).toEqual([]);
    },
  );

  it.each([
    '?for=',
    '?for=10',
    '?for=0s',
    '?for=25h',
    '?for=1.5h',
    '?for=1d',
    '?for=1m&for=2m',
    '?forr=1m',
    '?for=1m&x',
  ])('is %s', async (query) => {
    const { applied, put } = await open();
    expect(await put('debug', query)).toMatchObject({ status: 400, json: { code: 'BAD_REQUEST' } });
    expect(applied).toEqual([]);
  });

  it.each([{ origin: 'SELF' }, { 'sec-fetch-site': 'same-origin' }])(
    'is a change by a browser, even by a page of this port: %j',
    async (given: Record<string, string>) => {
      const { applied, put, url } = await open();
      const headers = given.origin === undefined ? given : { origin: new URL(url).origin };
      expect(await put('debug', '', headers)).toMatchObject({ status: 403 });
      expect(applied).toEqual([]);
    },
  );

  it('is another machine, also with exposeAll', async () => {
    const { applied, put, url } = await open({ peer: '192.0.2.7' });
    expect(await put('debug')).toMatchObject({ status: 403 });
    expect((await fetch(url)).status).toBe(403);
    expect(applied).toEqual([]);
  });

  it('is another method, with the allowed ones', async () => {
    const { url } = await open();
    const reply = await fetch(url, { method: 'POST', body: 'debug' });
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT']);
  });

  it('is every request unless admin.allowLogLevel is set', async () => {
    const { applied, put, url } = await open({ isAllowed: false });
    expect((await fetch(url)).status).toBe(404);
    expect((await put('debug')).status).toBe(404);
    expect(applied).toEqual([]);
  });
});
