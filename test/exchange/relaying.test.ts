/** How a response reaches the client: byte for byte, as slowly as it is read, and cut where the upstream cut it. */
import { gzipSync } from 'node:zlib';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createLatch, IDLE, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { waitUntilStable } from '../support/until.ts';

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const GET_1_0 = 'GET / HTTP/1.0\r\nHost: localhost\r\n\r\n';

async function startResponding(...bytes: readonly (string | Buffer)[]) {
  const upstream = await startRawUpstream((socket) => {
    for (const part of bytes) socket.write(part);
  });
  return startInProcess({ apiUrl: upstream.url });
}

describe('invariant 9: a response that the upstream cuts is cut for the client, never ended cleanly:', () => {
  const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n';
  const WITH_LENGTH = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf';

  it.each([
    ['chunked, FIN', CHUNKED, 'end'],
    ['chunked, RST', CHUNKED, 'resetAndDestroy'],
    ['Content-Length, FIN', WITH_LENGTH, 'end'],
    ['Content-Length, RST', WITH_LENGTH, 'resetAndDestroy'],
  ] as const)('%s', async (_, bytes, cut) => {
    for (const [ask, version] of [
      [GET, '1.1'],
      [GET_1_0, '1.0'],
    ]) {
      const upstream = await startRawUpstream((socket) =>
        socket.write(bytes, () => setTimeout(() => socket[cut](), 20)),
      );
      const { url, requestRecords, throttle, eventsOf } = await startInProcess({ apiUrl: upstream.url });
      const response = await sendRaw(url, ask!);
      expect(response.status).toBe(200);
      expect(response.body.toString()).toContain('half');
      expect(response.body.toString()).not.toMatch(/0\r\n\r\n$/);
      // Without a length and without chunks only a reset shows it.
      if (version === '1.0') expect(response.end).toBe('reset');
      const ended = await requestRecords(1);
      expect(ended).toHaveLength(1);
      expect(ended[0]).toMatchObject({ code: 200, source: 'upstream', fault: expect.any(String) as string });
      expect(ended[0]).toMatchObject({ cutBy: 'upstream' });
      expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['cut']);
      expect(await throttle()).toEqual(IDLE);
    }
  });
});

it('what is no HTTP at all is a reply of the sidecar’s own', async () => {
  const { url } = await startResponding('SSH-2.0-OpenSSH_9.9\r\n');
  const response = await send(url);
  expect(response).toMatchObject({ status: 502, code: 'UPSTREAM_PROTOCOL_ERROR' });
  expect(response.fields['proxy-status']).toBe('bearer-sidecar; error=http_protocol_error');
});

describe('a response', () => {
  it('with trailers arrives whole, without them and without a Trailer field', async () => {
    const { url } = await startResponding(
      'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n',
    );
    const response = await sendRaw(url, GET);
    expect(response.status).toBe(200);
    expect(response.bytes.toString()).not.toMatch(/trailer|x-sum/i);
    expect(response.body.toString()).toBe('2\r\nok\r\n0\r\n\r\n');
  });

  it('without a length, ended by the upstream’s FIN, is ended cleanly', async () => {
    const upstream = await startRawUpstream((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it'));
    const { url } = await startInProcess({ apiUrl: upstream.url });
    expect(await send(url)).toMatchObject({ status: 200, text: 'all of it' });
  });

  it('is not affected by interim responses before it', async () => {
    const { url } = await startResponding(
      'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    );
    const response = await send(url);
    expect(response).toMatchObject({ status: 200, text: 'ok' });
    expect(response.fields.link).toBeUndefined();
  });

  it('with an empty body and repeated fields arrives as it was', async () => {
    const { url } = await startResponding('HTTP/1.1 299 Odd\r\nX-One: a\r\nx-one: b\r\nContent-Length: 0\r\n\r\n');
    const { bytes, body } = await sendRaw(url, GET);
    expect(bytes.toString()).toMatch(/^HTTP\/1\.1 299 Odd\r\nX-One: a\r\nx-one: b\r\n/);
    expect(body).toHaveLength(0);
  });

  it.each([
    ['latin-1', Buffer.from('Pas trouv\xe9', 'latin1')],
    ['UTF-8', Buffer.from('Nenalezeno \u017e')],
    ['a control character', Buffer.from('Not\x01 found')],
    ['nothing', Buffer.from('')],
  ])('with a reason phrase of %s is passed on, with the usual phrase if need be', async (_, phrase) => {
    const rest = '\r\nContent-Length: 2\r\n\r\nok';
    const { url, eventsOf } = await startResponding(
      Buffer.concat([Buffer.from('HTTP/1.1 404 '), phrase, Buffer.from(rest)]),
    );
    const response = await sendRaw(url, GET);
    expect(response.bytes.toString()).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(response.body.toString()).toBe('ok');
    expect(eventsOf('warning')).toEqual([]);
  });

  it.each([204, 304])('of status %i has no body', async (status) => {
    const { url } = await startInProcess({ respond: (_, response) => void response.writeHead(status).end() });
    expect(await send(url)).toMatchObject({ status, text: '' });
  });

  it('to a HEAD keeps its Content-Length and has no body', async () => {
    const { url } = await startInProcess({
      respond: (_, response) => void response.writeHead(200, { 'content-length': 1234 }).end(),
    });
    const response = await send(url, { method: 'HEAD' });
    expect(response).toMatchObject({ status: 200, text: '' });
    expect(response.fields['content-length']).toBe('1234');
  });

  it('that is compressed stays so, byte for byte', async () => {
    const zipped = gzipSync('{"policies":[]}'.repeat(1000));
    const { url } = await startInProcess({
      respond: (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped),
    });
    const raw = await sendRaw(url, GET_1_0);
    expect(raw.headers['content-encoding']).toBe('gzip');
    expect(raw.body.equals(zipped)).toBe(true);
  });

  it('whose head comes long before its body reaches the client with its head at once', async () => {
    const rest = createLatch();
    const { url } = await startInProcess({
      respond: async (_, response) => {
        response.flushHeaders();
        await rest.opened;
        response.end('rest');
      },
    });
    const call = httpRequest(url).end();
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    rest.open();
    expect((await response.toArray()).join('')).toBe('rest');
  });

  it('is read from the upstream only as fast as the client reads it', async () => {
    const total = 64 * 1024 * 1024;
    let written = 0;
    const piece = Buffer.alloc(64 * 1024);
    const { url } = await startInProcess({
      respond: async (_, response) => {
        response.writeHead(200, { 'content-length': total });
        while (written < total) {
          written += piece.length;
          if (!response.write(piece)) await once(response, 'drain');
        }
        response.end();
      },
    });
    const socket = await openSocket(url);
    socket.pause();
    socket.write(GET);
    await until(() => written > 0, 'the response begun');
    await waitUntilStable(() => written);
    // What the kernel's buffers of four sockets hold, and no more.
    expect(written).toBeLessThan(total / 2);
    const reading = readToEnd(socket);
    socket.resume();
    expect((await reading).body).toHaveLength(total);
  });
});

describe('an event stream', () => {
  it('leaves maxInFlight at its head and counts as a stream until it ends', async () => {
    const rest = createLatch();
    const { url, throttle } = await startInProcess({
      respond: async (request, response) => {
        if (request.path !== '/events') return void response.end('ok');
        response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).write('data: 1\n\n');
        await rest.opened;
        response.end('data: 2\n\n');
      },
      env: { SIDECAR_MAX_IN_FLIGHT: '1' },
    });
    const events = send(`${url}/events`);
    await until(async () => (await throttle()).streams > 0, 'the stream');
    expect(await throttle()).toEqual({ queued: 0, inFlight: 0, streams: 1 });
    expect((await send(`${url}/call`)).text).toBe('ok');
    rest.open();
    expect((await events).text).toBe('data: 1\n\ndata: 2\n\n');
    expect(await throttle()).toEqual(IDLE);
  });
});

describe('a response that comes before the request is whole', () => {
  it('reaches a client that goes on sending, and the connection is closed behind it', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.end('HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge');
    });
    const { url, requestRecords } = await startInProcess({
      apiUrl: upstream.url,
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' },
    });
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    // More than is sent below: behind a whole request the connection would be kept, however early the response.
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n');
    socket.write(Buffer.alloc(200_000));
    await until(() => upstream.sockets.length === 1, 'the upstream called');
    socket.write(Buffer.alloc(200_000));
    const response = await reading;
    expect(response.status).toBe(413);
    expect(response.body.toString()).toBe('large');
    expect(await requestRecords(1)).toMatchObject([{ code: 413, source: 'upstream' }]);
  });

  it.each([
    [
      'a response of the upstream',
      413,
      (socket: Socket) => socket.write('HTTP/1.1 413 No\r\nContent-Length: 5\r\n\r\nlarge'),
    ],
    [
      'a chunked one',
      413,
      (socket: Socket) => socket.write('HTTP/1.1 413 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nlarge\r\n0\r\n\r\n'),
    ],
    ['the failure of the upload', 502, (socket: Socket) => socket.resetAndDestroy()],
  ])('reaches a client that reads only when it has sent all: %s', async (_, status, respond) => {
    const LEFT_BYTES = 900_000;
    const upstream = await startRawUpstream((socket) => {
      socket.once('data', () => respond(socket));
    });
    const { url, eventsOf } = await startInProcess({
      apiUrl: upstream.url,
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '10', SIDECAR_RETRY_ATTEMPTS: '1' },
    });
    const socket = await openSocket(url);
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${String(LEFT_BYTES + 100_000)}\r\n\r\n`);
    socket.write(Buffer.alloc(100_000));
    await until(() => eventsOf('attempt-ended').length === 1, 'the attempt recorded');
    await new Promise<void>((resolve, reject) => {
      socket.write(Buffer.alloc(LEFT_BYTES), (error) => (error ? reject(error) : resolve()));
    });
    expect(await readToEnd(socket)).toMatchObject({ status, end: 'fin' });
  });
});
