/** Traps of undici 8.13.1, as tried, each shown not to be one for the sidecar, or for undici itself where that is cheap. */
import { stat } from 'node:fs/promises';
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { selectNoProxy } from '../../src/platform/egress/proxy-selector.ts';
import { Upstream, type UpstreamRequest } from '../../src/upstream/client.ts';
import { startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sendRaw } from '../support/raw-client.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';

const ask = (target: string, fields = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${fields}\r\n`;

const CONNECTIONS = 3;

const HOLDING = {
  onStart: () => undefined,
  onHead: () => 'hold' as const,
  onBufferExceeded: () => {
    throw new Error('nothing large is expected');
  },
  timeouts: { requestTimeoutMs: 1000, bodyIdleTimeoutMs: 1000 },
};

const getWith = (...headers: string[]): UpstreamRequest => ({
  method: 'GET',
  path: '/',
  headers,
  body: undefined,
  contentLength: undefined,
  needsNewConnection: false,
});

const openUpstream = (url: string): Upstream =>
  new Upstream({
    clock: systemClock,
    baseUrl: new URL(url),
    trust: undefined,
    egress: selectNoProxy,
    connectTimeoutMs: 1000,
    maxConnectionAgeMs: 0,
    observe: () => undefined,
    maxConnections: CONNECTIONS,
    maxHeaderBytes: 65_536,
  });

describe('a request that undici refuses', () => {
  it('costs no connection: after connections + 1 of them a good request is served', async () => {
    await using api = await startRecordingUpstream();
    const upstream = openUpstream(api.url);
    for (let times = 0; times < CONNECTIONS + 1; times++) {
      const refused = upstream.send(getWith('Expect', '100-continue'), HOLDING);
      expect(await refused.ended).toMatchObject({ kind: 'failed', failure: { kind: 'unsendable' } });
    }
    expect(await upstream.send(getWith(), HOLDING).ended).toMatchObject({ kind: 'held' });
    await upstream.close();
  });

  it('is brought about by no field of a client', async () => {
    const { url, eventsOf } = await startInProcess({
      env: { SIDECAR_MAX_IN_FLIGHT: '2', SIDECAR_THROTTLE_MAX_STREAMS: '1' },
    });
    const fields = ['Keep-Alive: timeout=5', 'Expect: 100-continue', 'Expect: odd', 'Proxy-Connection: x', 'TE: gzip'];
    for (const field of [...fields, 'Upgrade-Insecure-Requests: 1', 'Keep_Alive: 5', 'Trailer: x', 'X: caf\xe9']) {
      for (let times = 0; times < CONNECTIONS + 1; times++)
        expect(String((await sendRaw(url, Buffer.from(ask('/', `${field}\r\n`), 'latin1'))).bytes)).toMatch(
          /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 200 /,
        );
    }
    expect(eventsOf('warning')).toEqual([]);
  });
});

it('a kept connection is not used again past its keep-alive, also when the event loop was blocked until then', async () => {
  const api = await startRawUpstream((socket) => {
    // Undici keeps the connection for two seconds less than the server states.
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=3\r\n\r\nok');
  });
  const upstream = openUpstream(api.url);
  for (let times = 0; times < 2; times++) {
    expect(await upstream.send(getWith(), HOLDING).ended).toMatchObject({ kind: 'held' });
    // The connection is free in a later turn than its response ends.
    await new Promise(setImmediate);
  }
  expect(api.sockets).toHaveLength(1);
  // The result of a file operation comes in the phase of the event loop that precedes all timers.
  await stat('.');
  // Blocks the thread: neither the timer of the connection nor a FIN can be processed meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
  expect(await upstream.send(getWith(), HOLDING).ended).toMatchObject({ kind: 'held' });
  expect(api.sockets).toHaveLength(2);
  await upstream.close();
});

it('undici: 1xx responses reach onResponseStart as well — the client gets the final one', async () => {
  const INTERIM = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
  const upstream = await startRawUpstream((socket) => {
    socket.write(`${INTERIM}HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok`);
  });
  const seen: number[] = [];
  const pool = new Pool(upstream.url);
  await new Promise<void>((resolve, reject) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart: (_, status) => void seen.push(status),
      onResponseData: () => undefined,
      onResponseEnd: () => resolve(),
      onResponseError: (_, error) => reject(error),
    };
    pool.dispatch({ path: '/', method: 'GET' }, handler);
  });
  await pool.destroy();
  expect(seen).toEqual([102, 103, 201]);

  const { url, eventsOf } = await startInProcess({ apiUrl: upstream.url });
  expect(await send(url)).toMatchObject({ status: 201, text: 'ok' });
  expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['ok']);
});

it.each(['//evil.example/x', '/http://evil.example/x', 'absolute//evil.example/x'])(
  'undici: paths like %s pass unchecked — here they stay below the base path, on the upstream',
  async (target) => {
    const { url, api } = await startInProcess();
    const base = await startInProcess({ apiUrl: `${api.url}/v1` });
    // An absolute-form target names the listener with its port.
    for (const to of [base.url, url]) await sendRaw(to, ask(target.replace(/^absolute/, to)));
    const path = target.replace(/^absolute/, '');
    expect(api.requests.map((request) => request.path)).toEqual([`/v1${path}`, path]);
    expect(new Set(api.requests.map(({ headers }) => headers.host))).toEqual(new Set([new URL(api.url).host]));
  },
);

describe('undici’s RetryAgent', () => {
  it('resumes broken bodies with Range — here what has begun is never asked for again', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "x"\r\n\r\nhalf', () => socket.resetAndDestroy());
    });
    const { url } = await startInProcess({ apiUrl: upstream.url });
    await expect(send(url)).rejects.toThrow();
    expect(upstream.received).toHaveLength(1);
    expect(upstream.received[0]).not.toMatch(/^range:/im);
  });

  it('truncates Retry-After to 30 s — here it is waited out to the end', async () => {
    const clock = new ManualClock();
    const { url, api, eventsOf } = await startInProcess({
      clock,
      respond: (request, response, index) => {
        if (index === 0) response.writeHead(429, { 'retry-after': '45' }).end();
        else void echo(request, response, index);
      },
      env: { SIDECAR_QUEUE_TIMEOUT_MS: '50000' },
    });
    const call = send(url);
    await until(() => eventsOf('rate-limited').length === 1, 'the pause');
    await clock.advance(44_999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await call).status).toBe(200);
  });

  it('cannot replay a stream — here a chunked upload is sent again whole', async () => {
    const { url, api } = await startInProcess({
      respond: (request, response, index) => {
        if (index === 0) response.writeHead(503).end();
        else void echo(request, response, index);
      },
    });
    const head = 'PUT / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    const response = await sendRaw(url, `${head}2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n`);
    expect(response.status).toBe(200);
    expect(api.requests.map(({ body }) => body.toString())).toEqual(['body', 'body']);
  });
});
