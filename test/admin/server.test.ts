import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { ConnectionSlots } from '../../src/platform/connection-slots.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { start } from './admin-port.ts';
import type { AdminResponse } from './admin-port.ts';
import { failing, limited, noToken, validToken } from './states.ts';

const ALL = ['/startupz', '/livez', '/readyz', '/metrics', '/status', '/'];
const elsewhere = '10.0.0.9';

describe('probes', () => {
  it('/livez depends on nothing', async () => {
    const { ask } = await start({
      tokens: () => {
        throw new Error('no state');
      },
      draining: () => true,
    });
    expect(await ask('/livez')).toMatchObject({ status: 200, body: '{"live":true}\n' });
  });

  it('/startupz is 200 from the first token on, even when that has expired', async () => {
    let token = noToken;
    const { ask } = await start({ tokens: () => [token] });
    expect(await ask('/startupz')).toMatchObject({ status: 503, body: '{"started":false}\n' });
    token = { ...noToken, hasHadToken: true };
    expect(await ask('/startupz')).toMatchObject({ status: 200, body: '{"started":true}\n' });
  });

  it('/readyz depends on token and drain, with reasons', async () => {
    let token = noToken;
    let draining = false;
    const { ask } = await start({ tokens: () => [token], draining: () => draining });
    const readyz = async () => {
      const { status, body } = await ask('/readyz');
      return [status, JSON.parse(body)] as const;
    };
    expect(await readyz()).toEqual([503, { ready: false, reasons: ['no usable token'] }]);
    token = { ...validToken, ...failing };
    expect(await readyz()).toEqual([
      200,
      {
        ready: true,
        reasons: ['token valid for 1234 s', 'token endpoint failed 2 times in a row (unavailable)'],
      },
    ]);
    draining = true;
    expect((await readyz())[0]).toBe(503);
  });
});

describe('/readyz with 503', () => {
  it('reports that a token is needed; a 200 and other resources do not', async () => {
    let token = noToken;
    let calls = 0;
    const { ask } = await start({ tokens: () => [token], onNotReady: () => (calls += 1) });
    await ask('/readyz');
    expect(calls).toBe(1);
    for (const path of ALL.filter((other) => other !== '/readyz')) await ask(path);
    token = validToken;
    await ask('/readyz');
    expect(calls).toBe(1);
  });
});

describe('resources', () => {
  it('/metrics returns the text of the registry', async () => {
    const { ask } = await start();
    const { status, headers, body } = await ask('/metrics?x=1');
    expect([status, body, headers['content-type']]).toEqual([
      200,
      'up 1\n',
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
  });

  it('/status is JSON of the states, with the uptime', async () => {
    const clock = new ManualClock();
    const { ask } = await start({ clock, throttles: () => [limited] });
    await clock.advance(90_000);
    const { headers, body } = await ask('/status');
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).toMatchObject({
      version: '1.2.3',
      uptimeSeconds: 90,
      token: { status: 'valid', serial: 3 },
      throttle: { rate: 9.5, queued: 12, recentSignals: [{ status: 429 }] },
    });
  });

  it.each(ALL)('%s: HEAD has the fields of GET and no body; nothing is stored', async (path) => {
    const { ask } = await start({ clock: new ManualClock() });
    const get = await ask(path);
    const head = await ask(path, { method: 'HEAD' });
    expect(head.status).toBe(get.status);
    expect(head.body).toBe('');
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.body)));
    expect(get.headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
});

describe('refusals', () => {
  const problem = ({ body }: AdminResponse) => JSON.parse(body) as Record<string, unknown>;

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'])('%s is 405 with Allow', async (method) => {
    const { ask } = await start();
    const reply = await ask('/status', { method });
    expect(reply.status).toBe(405);
    expect(reply.headers).toMatchObject({ allow: 'GET, HEAD', 'content-type': 'application/problem+json' });
    expect(problem(reply)).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED', title: 'Method Not Allowed' });
  });

  it.each(['/nothing', '/status/', '//', '/metrics/../status', 'http://evil.example/status'])(
    '%s is 404',
    async (path) => {
      const { ask } = await start();
      const reply = await ask(path);
      expect(reply.status).toBe(404);
      expect(problem(reply)).toMatchObject({ type: 'about:blank', code: 'NOT_FOUND' });
      expect(reply.body).not.toContain('evil');
    },
  );

  it.each([...ALL, '/events', '/assets/page.js'])(
    '%s is refused to a rebound name, also from this machine',
    async (path) => {
      const { ask, port } = await start({ exposeAll: true });
      const reply = await ask(path, { Host: `evil.example:${String(port)}` });
      expect(reply.status).toBe(403);
      expect(problem(reply)).toMatchObject({ code: 'HOST_NOT_ALLOWED' });
      expect(problem(reply).detail).toContain('evil.example');
    },
  );

  it('refuses requests of foreign pages, not of its own page', async () => {
    const { ask, port } = await start();
    const host = `127.0.0.1:${String(port)}`;
    expect((await ask('/status', { Origin: 'http://evil.example' })).status).toBe(403);
    expect((await ask('/status', { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403);
    expect((await ask('/status', { Origin: `http://${host}`, 'Sec-Fetch-Site': 'same-origin' })).status).toBe(200);
  });

  it('gives other machines only the probes and the metrics', async () => {
    const { ask } = await start({ peerAddress: elsewhere });
    const statuses = await Promise.all(
      [...ALL, '/events', '/assets/page.js', '/nothing'].map(async (path) => (await ask(path)).status),
    );
    expect(statuses).toEqual([200, 200, 200, 200, 403, 403, 403, 403, 403]);
    expect(problem(await ask('/status'))).toMatchObject({ code: 'REQUEST_NOT_ALLOWED' });
  });

  it('gives other machines everything with exposeAll', async () => {
    const { ask } = await start({ peerAddress: elsewhere, exposeAll: true });
    const statuses = await Promise.all(ALL.map(async (path) => (await ask(path)).status));
    expect(statuses).toEqual(ALL.map(() => 200));
  });

  it('probes show other machines no detail of a failure', async () => {
    const { ask } = await start({ peerAddress: elsewhere, tokens: () => [{ ...noToken, ...failing }] });
    for (const path of ['/startupz', '/livez', '/readyz']) expect((await ask(path)).body).not.toContain('internal');
  });

  it('responds 500 without a reason when a state cannot be read, and reports each reason once', async () => {
    const reasons: string[] = [];
    const { ask } = await start({
      onFault: (reason) => reasons.push(reason),
      throttles: () => {
        throw new TypeError('no throttles');
      },
      metrics: { render: () => Promise.reject(new Error('s3cret at /home')), contentType: 'text/plain' },
    });
    const reply = await ask('/metrics');
    expect(reply.status).toBe(500);
    expect(reply.body).not.toMatch(/s3cret|home|Error:/);
    expect((await ask('/livez')).status).toBe(200);
    for (const path of ['/metrics', '/status', '/status', '/metrics']) expect((await ask(path)).status).toBe(500);
    expect(reasons).toEqual(['Error: s3cret at /home', 'TypeError: no throttles', 'Error: s3cret at /home']);
  });
});

it('refuses two Host fields', async () => {
  const { port } = await start();
  const socket = connect(port, '127.0.0.1');
  socket.end('GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 40[03] /);
});

it('limits the time of a slow connection', () => {
  const server = createAdminServer(() => Promise.resolve(), new ConnectionSlots(64, 0, systemClock));
  expect(server.headersTimeout).toBeLessThanOrEqual(5000);
  expect(server.timeout).toBeLessThanOrEqual(10_000);
  expect(server.keepAliveTimeout).toBeLessThanOrEqual(5000);
});

describe('a port whose connections are all taken', () => {
  const open = async (port: number, bytes: string): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.on('error', () => socket.destroy()).resume();
    socket.write(bytes);
    return socket;
  };

  it.each([
    ['by unfinished heads', 'GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
    ['by idle ones', ''],
    ['by unfinished bodies', 'POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf'],
    ['by kept ones', 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['by pipelines', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50)],
  ])('%s, responds to a probe', async (_, bytes) => {
    const { port, ask } = await start({ maxConnections: 4 });
    for (let round = 0; round < 3; round++) {
      await Promise.all(Array.from({ length: 6 }, () => open(port, bytes)));
      expect((await ask('/livez')).status).toBe(200);
    }
  });

  it('by clients that do not read, responds to a probe', async () => {
    const metrics = { render: () => Promise.resolve('x'.repeat(8_000_000)), contentType: 'text/plain' };
    const { port, ask } = await start({ maxConnections: 4, metrics });
    for (let count = 0; count < 8; count++)
      (await open(port, 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')).pause();
    expect((await ask('/livez')).status).toBe(200);
  });

  it('closes no connection whose request has no response yet', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const requested = Promise.withResolvers<undefined>();
    const render = (): Promise<string> => {
      requested.resolve(undefined);
      return promise;
    };
    const { port, ask } = await start({ maxConnections: 2, metrics: { render, contentType: 'text/plain' } });
    const scrape = ask('/metrics');
    await requested.promise;
    for (let count = 0; count < 5; count++) expect((await ask('/livez')).status).toBe(200);
    await Promise.all(Array.from({ length: 5 }, () => open(port, '')));
    resolve('up 1\n');
    expect(await scrape).toMatchObject({ status: 200, body: 'up 1\n' });
  });
});
