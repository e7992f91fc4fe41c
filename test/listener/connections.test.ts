/** A client's connection: the order and framing of responses, clients that leave or half-close, interim responses, draining. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLatch, IDLE, startInProcess, until, type InProcess } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw, waitUntilRefused } from '../support/raw-client.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { afterHead, startWireServer } from '../upstream/wire.ts';

const KEPT = 'Host: 127.0.0.1\r\n';
const HEAD = `${KEPT}Connection: close\r\n`;
const get = (path: string, fields = KEPT): string => `GET ${path} HTTP/1.1\r\n${fields}\r\n`;

const never: RespondTo = () => undefined;

/** Responds with the requested path; to `/slow` only once `others` other requests have had their responses. */
function slowAfter(others: number): RespondTo {
  const { opened, open } = createLatch();
  let responses = 0;
  return async ({ path }, response) => {
    if (path === '/slow') await opened;
    response.end(`[${path}]`);
    if (++responses === others) open();
  };
}

function bodies(bytes: Buffer): string[] {
  return bytes.toString().match(/\[[^\]]*\]/g) ?? [];
}

async function untilUnderWay({ listener }: InProcess, count: number): Promise<void> {
  await until(async () => (await listener()).requests === count, `${String(count)} requests are under way`);
}

describe('pipelined requests', () => {
  it('get their responses in their order', async () => {
    const { url, requestRecords } = await startInProcess({ respond: slowAfter(2) });
    const { bytes } = await sendRaw(url, get('/slow') + get('/b') + get('/c', HEAD));
    expect(bodies(bytes)).toEqual(['[/slow]', '[/b]', '[/c]']);
    expect(await requestRecords(3)).toHaveLength(3);
  });

  it('are each recorded once as 499 when the client leaves, and none stays under way', async () => {
    const sidecar = await startInProcess({ respond: never });
    const socket = await openSocket(sidecar.url);
    socket.write(get('/a') + get('/b') + get('/c'));
    await untilUnderWay(sidecar, 3);
    socket.destroy();
    const ended = await sidecar.requestRecords(3);
    expect(ended.map(({ code, source }) => [code, source])).toEqual(Array(3).fill([499, 'sidecar']));
    await untilUnderWay(sidecar, 0);
    expect(sidecar.eventsOf('request-ended')).toHaveLength(3);
  });

  it('of which the second breaks off upstream: the connection ends after the first response', async () => {
    const sidecar: InProcess = await startInProcess({
      respond: async ({ path }, response) => {
        if (path === '/cut')
          response.writeHead(200, { 'content-length': '99' }).write('half', () => response.destroy());
        if (path !== '/slow') return;
        // The call behind it is cancelled with it.
        await until(() => sidecar.eventsOf('attempt-ended').length === 2, 'the sidecar has seen the broken response');
        response.end('[/slow]');
      },
    });
    const { bytes } = await sendRaw(sidecar.url, get('/slow') + get('/cut') + get('/behind'));
    expect(bodies(bytes)).toEqual(['[/slow]']);
    const ended = await sidecar.requestRecords(3);
    expect(ended.map(({ path, code }) => [path, code]).toSorted()).toEqual([
      ['/behind', 499],
      ['/cut', 200],
      ['/slow', 200],
    ]);
    await untilUnderWay(sidecar, 0);
  });
});

describe('a request that is refused because the queue is full', () => {
  it.each([
    ['without a body', get('/x')],
    ['with a body that came with its head', `POST /x HTTP/1.1\r\n${KEPT}Content-Length: 4\r\n\r\nbody`],
  ])('%s keeps its connection open for the next request', async (_, request) => {
    const env = { SIDECAR_MAX_IN_FLIGHT: '1', SIDECAR_QUEUE_MAX: '1' };
    const sidecar = await startInProcess({ respond: never, env });
    const crowd = await openSocket(sidecar.url);
    crowd.write(get('/first') + get('/second'));
    await untilUnderWay(sidecar, 2);
    const { bytes } = await sendRaw(sidecar.url, request + request + request.replace(KEPT, HEAD));
    expect(bytes.toString().match(/^HTTP\/1\.1 503 .*|^connection: .*/gim)).toEqual([
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: keep-alive'],
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: keep-alive'],
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: close'],
    ]);
    expect(await sidecar.requestRecords(3)).toMatchObject(Array(3).fill({ code: 503, localReply: 'QUEUE_FULL' }));
    crowd.destroy();
  });
});

describe('a response without a body', () => {
  it('to HEAD keeps its Content-Length, and the next response follows', async () => {
    const { url } = await startInProcess({
      respond: (_, response) => void response.writeHead(200, { 'content-length': '1234', etag: '"x"' }).end(),
    });
    const { bytes } = await sendRaw(url, `HEAD /a HTTP/1.1\r\n${KEPT}\r\nHEAD /b HTTP/1.1\r\n${HEAD}\r\n`);
    expect(bytes.toString().match(/^HTTP\/1\.1 200/gm)).toHaveLength(2);
    expect(bytes.toString().match(/^content-length: 1234\r$/gim)).toHaveLength(2);
    expect(bytes.toString().endsWith('\r\n\r\n')).toBe(true);
  });

  it.each([
    [204, {}],
    [304, { etag: '"x"', 'content-length': '77' }],
  ])('with status %i is relayed, and the next response follows', async (status, headers) => {
    const { url, requestRecords } = await startInProcess({
      respond: (_, response) => void response.writeHead(status, headers).end(),
    });
    const { bytes } = await sendRaw(url, get('/a') + get('/b', HEAD));
    expect(bytes.toString().match(/^HTTP\/1\.1 (\d+)/gm)).toEqual(Array(2).fill(`HTTP/1.1 ${String(status)}`));
    expect(bytes.toString()).not.toMatch(/transfer-encoding/i);
    expect((await requestRecords(2)).map(({ code }) => code)).toEqual([status, status]);
  });
});

describe('a client that leaves', () => {
  it('while it waits for its response is recorded as 499, and its upstream call is cancelled', async () => {
    const cancelled = createLatch();
    const { url, api, requestRecords, throttle } = await startInProcess({
      respond: (_, response) => void response.once('close', cancelled.open),
    });
    const socket = await openSocket(url);
    socket.write(get('/a'));
    await until(() => api.requests.length === 1, 'the request reaches the upstream');
    socket.destroy();
    await cancelled.opened;
    expect(await requestRecords(1)).toMatchObject([{ code: 499, source: 'sidecar', attempts: 1 }]);
    expect(await throttle()).toEqual(IDLE);
  });

  it('with a FIN after its request is recorded as 499', async () => {
    const { url, requestRecords } = await startInProcess({ respond: never });
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.end(get('/a'));
    expect(await requestRecords(1)).toMatchObject([{ code: 499 }]);
    expect((await response).bytes).toHaveLength(0);
  });

  it('with a FIN within its body is recorded as 499, and nothing is sent upstream', async () => {
    const sidecar = await startInProcess();
    const socket = await openSocket(sidecar.url);
    const response = readToEnd(socket);
    socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: 10\r\n\r\nfive!`);
    await untilUnderWay(sidecar, 1);
    socket.end();
    expect(await sidecar.requestRecords(1)).toMatchObject([{ code: 499, attempts: 0 }]);
    expect((await response).bytes).toHaveLength(0);
    expect(sidecar.api.requests).toEqual([]);
  });

  it('with a FIN after its request gets its response where half-closed connections are allowed', async () => {
    const { url, api, requestRecords } = await startInProcess({
      respond: slowAfter(1),
      env: { SIDECAR_LISTEN_ALLOW_HALF_CLOSE: 'true' },
    });
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.end(get('/slow'));
    await until(() => api.requests.length === 1, 'the request reaches the upstream');
    // By the time that another client has its response, the FIN has been read.
    await send(`${url}/other`);
    expect(bodies((await response).bytes)).toEqual(['[/slow]']);
    expect((await requestRecords(2)).map(({ code }) => code)).toEqual([200, 200]);
  });
});

describe('a large upload that is refused', () => {
  it.each([
    ['of 900 kB, which is read to its end', 900_000],
    ['of 64 MB, which is cut', 64_000_000],
  ])('%s: the client gets the whole reply, then the connection closes', async (_, length) => {
    const { url, api, eventsOf, requestRecords } = await startInProcess({
      respondToTokenRequest: (_request, response) => void response.writeHead(500).end(),
    });
    await until(() => eventsOf('token-requested').length > 0, 'the token endpoint has failed');
    const socket = await openSocket(url);
    const reply = readToEnd(socket);
    socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: ${String(length)}\r\n\r\n`);
    socket.write(Buffer.alloc(length));
    const { status, headers, body } = await reply;
    expect([status, headers.connection]).toEqual([503, 'close']);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'TOKEN_UNAVAILABLE', status: 503 });
    expect(body).toHaveLength(Number(headers['content-length']));
    expect(await requestRecords(1)).toMatchObject([{ code: 503, localReply: 'TOKEN_UNAVAILABLE' }]);
    expect(api.requests).toEqual([]);
  });
});

describe('while the sidecar drains', () => {
  const env = { SIDECAR_DRAIN_MS: '10000', SIDECAR_DRAIN_DELAY_MS: '2000' };

  it('responses to requests under way and to new ones close their connections', async () => {
    const clock = new ManualClock();
    const { url, api, sidecar } = await startInProcess({ clock, env, respond: slowAfter(1) });
    const underWay = sendRaw(url, get('/slow'));
    await until(() => api.requests.length === 1, 'the request reaches the upstream');
    const drained = sidecar.drain();
    const late = sendRaw(url, get('/b'));
    for (const { status, headers, end } of [await underWay, await late])
      expect([status, headers.connection, end]).toEqual([200, 'close', 'fin']);
    await clock.advance(2000);
    expect(await drained).toBe(0);
  });

  it('a connection stays open for the responses to its pipelined requests', async () => {
    const clock = new ManualClock();
    const { url, sidecar, requestRecords } = await startInProcess({ clock, env, respond: slowAfter(1) });
    const drained = sidecar.drain();
    const { bytes } = await sendRaw(url, get('/slow') + get('/b'));
    expect(bodies(bytes)).toEqual(['[/slow]', '[/b]']);
    expect(bytes.toString().match(/^connection: close/gim)).toHaveLength(1);
    expect((await requestRecords(2)).map(({ code }) => code)).toEqual([200, 200]);
    await clock.advance(2000);
    expect(await drained).toBe(0);
  });

  it('late requests on open connections get 503, and new connections are refused', async () => {
    const clock = new ManualClock();
    const underWay = createLatch();
    const { url, api, sidecar, requestRecords } = await startInProcess({
      clock,
      env: { ...env, SIDECAR_DRAIN_DELAY_MS: '0' },
      respond: async (_, response) => {
        await underWay.opened;
        response.end();
      },
    });
    const [socket, served] = [await openSocket(url), send(url)];
    await until(() => api.requests.length === 1, 'the request reaches the upstream');
    const reply = readToEnd(socket);
    const drained = sidecar.drain();
    await waitUntilRefused(url);
    socket.write(get('/late'));
    expect(await reply).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
    expect(await requestRecords(1)).toMatchObject([{ path: '/late', localReply: 'DRAINING' }]);
    underWay.open();
    expect((await served).status).toBe(200);
    expect(await drained).toBe(0);
  });

  it('requests that were sent get 504 at the end, and responses that have begun are cut', async () => {
    const clock = new ManualClock();
    const { url, api, sidecar, requestRecords } = await startInProcess({
      clock,
      env: { ...env, SIDECAR_DRAIN_DELAY_MS: '0' },
      respond: ({ path }, response) => {
        if (path === '/begun') response.writeHead(200, { 'content-length': '9' }).write('half');
      },
    });
    const waiting = sendRaw(url, get('/waiting', HEAD));
    const socket = await openSocket(url);
    const begun = readToEnd(socket);
    socket.write(get('/begun', HEAD));
    await once(socket, 'data');
    await until(() => api.requests.length === 2, 'both requests reach the upstream');
    const drained = sidecar.drain();
    await clock.advance(10_000);
    expect(await waiting).toMatchObject({ status: 504 });
    expect((await begun).body.length).toBeLessThan(9);
    expect((await requestRecords(2)).map(({ code }) => code).toSorted()).toEqual([200, 504]);
    expect(await drained).toBe(2);
  });
});

describe('a response that breaks off upstream', () => {
  it.each([
    ['HTTP/1.1', 'Content-Length: 9\r\n\r\nhalf'],
    ['HTTP/1.1', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['HTTP/1.1', 'Connection: close\r\n\r\nhalf'],
    ['HTTP/1.0', 'Connection: close\r\n\r\nhalf'],
  ])('breaks off for an %s client: %j', async (version, rest) => {
    await using upstream = await startWireServer(afterHead(`HTTP/1.1 200 OK\r\n${rest}`));
    const { url, requestRecords } = await startInProcess({ apiUrl: upstream.url.href });
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.on('data', (bytes: Buffer) => {
      if (bytes.includes('half')) upstream.sockets[0]?.resetAndDestroy();
    });
    socket.write(`GET /a ${version}\r\n${KEPT}\r\n`);
    const { bytes, body, end } = await response;
    expect(body.toString()).toContain('half');
    const isChunked = /transfer-encoding: chunked/i.test(bytes.toString());
    if (isChunked) expect(body.toString().endsWith('0\r\n\r\n')).toBe(false);
    else expect(end === 'reset' || /content-length: 9/i.test(bytes.toString())).toBe(true);
    const [ended] = await requestRecords(1);
    expect(ended).toMatchObject({ code: 200, source: 'upstream' });
    expect(ended?.fault).toMatch(/upstream closed/);
  });
});

it('a response that comes before the upload has ended is relayed whole, and closes the connection', async () => {
  const early = afterHead('HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big');
  await using upstream = await startWireServer(early);
  const { url, requestRecords } = await startInProcess({ apiUrl: upstream.url.href });
  const socket = await openSocket(url);
  const response = readToEnd(socket);
  socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: 8000000\r\n\r\n`);
  socket.write(Buffer.alloc(100_000));
  const { status, headers, body } = await response;
  expect([status, headers.connection, body.toString()]).toEqual([413, 'close', 'too big']);
  expect(await requestRecords(1)).toMatchObject([{ code: 413, source: 'upstream' }]);
});
