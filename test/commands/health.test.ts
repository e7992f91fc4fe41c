/** `health` and `wait` with admin ports that hang, close or refuse: they end in time with the reason. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { health, waitUntilReady } from '../../src/commands/health.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';

/** Shorter than the response timeout. */
const SOON_MS = 1900;

let said = '';
beforeEach(() => {
  said = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});

async function startAdmin(handler: RequestListener) {
  const server = createServer(handler);
  const { host } = new URL(await listenOnLoopback(server));
  onTestFinished(async () => {
    server.closeAllConnections();
    await closeServer(server);
  });
  return { server, load: { env: { SIDECAR_ADMIN_LISTEN: host }, file: undefined } };
}

const never: RequestListener = () => undefined;
const closesConnection: RequestListener = (_, response) => {
  response.writeHead(200, { 'content-length': 100 });
  response.write('half', () => response.destroy());
};
const untold = new AbortController().signal;

describe('wait', () => {
  it('stops at --max when no response comes', async () => {
    const { load } = await startAdmin(never);
    const startedAt = performance.now();
    expect(await waitUntilReady(load, '50ms', untold)).toBe(1);
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
    expect(said).toBe('bearer-sidecar: not ready after 50ms: the admin port does not respond (timeout)\n');
  });

  it('ends with the signal during a request', async () => {
    const { server, load } = await startAdmin(never);
    const stop = new AbortController();
    const waiting = waitUntilReady(load, '60s', stop.signal);
    await once(server, 'request');
    const stoppedAt = performance.now();
    stop.abort();
    expect(await waiting).toBe(1);
    expect(performance.now() - stoppedAt).toBeLessThan(SOON_MS);
    expect(said).toMatch(/^bearer-sidecar: stopped before it was ready: /);
  });

  it('ends with the signal between two requests', async () => {
    let requests = 0;
    const stop = new AbortController();
    const { load } = await startAdmin((_, response) => {
      requests++;
      response.writeHead(503).end('no token yet', () => setImmediate(() => stop.abort()));
    });
    expect(await waitUntilReady(load, '60s', stop.signal)).toBe(1);
    expect(requests).toBe(1);
    expect(said).toMatch(/^bearer-sidecar: stopped before it was ready: /);
  });

  it('polls until ready, also after a response that was cut', async () => {
    const handlers: RequestListener[] = [closesConnection, (_, response) => void response.writeHead(503).end()];
    const { load } = await startAdmin((request, response) => {
      const handler = handlers.shift();
      if (handler === undefined) response.end('ready');
      else handler(request, response);
    });
    expect(await waitUntilReady(load, '60s', untold)).toBe(0);
    expect([handlers, said]).toEqual([[], '']);
  });

  it('sends one request with --max 0s', async () => {
    const { load } = await startAdmin((_, response) => void response.writeHead(503).end('no token yet'));
    expect(await waitUntilReady(load, '0s', untold)).toBe(1);
    expect(said).toMatch(/^bearer-sidecar: not ready after 0s: /);
  });
});

describe('health', () => {
  it('reports another program that changes the protocol unasked', async () => {
    const { load } = await startAdmin((request) => {
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n');
    });
    expect(await health(load, 'ready')).toBe(1);
    expect(said).toMatch(/^bearer-sidecar: not ready: the admin port does not respond \(.+\)\n$/);
  });

  it('reports an admin port that closes the connection within its response', async () => {
    const { load } = await startAdmin(closesConnection);
    expect(await health(load, 'ready')).toBe(1);
    expect(said).toMatch(/^bearer-sidecar: not ready: the admin port does not respond \(.+\)\n$/);
  });

  it('returns the status of the probe', async () => {
    const { load } = await startAdmin((request, response) => {
      response.writeHead(request.url === '/livez' ? 200 : 503).end('waits for a token');
    });
    expect(await health(load, 'live')).toBe(0);
    expect(await health(load, 'ready')).toBe(1);
    expect(said).toBe('bearer-sidecar: not ready: waits for a token\n');
  });

  it('prints a response on one line, at most 1000 characters of it', async () => {
    const { load } = await startAdmin((_, response) => {
      response.writeHead(503).end(`first\u001b[2J\nsecond ${'x'.repeat(2000)}`);
    });
    expect(await health(load, 'ready')).toBe(1);
    expect(said).toMatch(/^bearer-sidecar: not ready: first\\u\{1b\}\[2J\\u\{a\}second x{900,1000}\n$/);
  });

  it.each(['later', 'constructor'])('knows no probe %s', async (probe) => {
    expect(await health({ env: {}, file: undefined }, probe)).toBe(2);
    expect(said).toBe(`bearer-sidecar: unknown probe "${probe}"; expected live, ready or startup\n`);
  });
});
