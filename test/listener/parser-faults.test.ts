/** Invalid HTTP gets a readable refusal, is recorded once, and does not reach the upstream (RFC 9112 §11.2, request smuggling). */
import { describe, expect, it } from 'vitest';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import type { RawResponse } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startWireServer, until } from '../upstream/wire.ts';
import { startProxy } from './proxy.ts';

const HEAD = 'Host: 127.0.0.1\r\nConnection: close\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n`;

function codeOf(reply: RawResponse): string {
  expect(reply.headers['content-type']).toBe('application/problem+json');
  expect(reply.headers['proxy-status']).toBe('bearer-sidecar; error=http_request_denied');
  const problem = JSON.parse(reply.body.toString()) as { status: number; code: string };
  expect(problem.status).toBe(reply.status);
  return problem.code;
}

describe('is refused and does not reach the upstream:', () => {
  it.each([
    ['two Host fields', `GET / HTTP/1.1\r\n${HEAD}Host: 127.0.0.1\r\n\r\n`, 400, 'BAD_REQUEST'],
    ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n', 400, 'BAD_REQUEST'],
    ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'BAD_REQUEST'],
    ['CL and TE', `POST / HTTP/1.1\r\n${CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n`, 400, 'BAD_REQUEST'],
    [
      'TE and CL',
      `POST / HTTP/1.1\r\n${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'BAD_REQUEST',
    ],
    ['two CL', `POST / HTTP/1.1\r\n${HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`, 400, 'BAD_REQUEST'],
    ['a list of CL', `POST / HTTP/1.1\r\n${HEAD}Content-Length: 2, 2\r\n\r\nhi`, 400, 'BAD_REQUEST'],
    ['a signed CL', `POST / HTTP/1.1\r\n${HEAD}Content-Length: +2\r\n\r\nhi`, 400, 'BAD_REQUEST'],
    ['two TE', `POST / HTTP/1.1\r\n${CHUNKED}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, 'BAD_REQUEST'],
    [
      'gzip, chunked',
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
      400,
      'BAD_REQUEST',
    ],
    [
      'chunked, identity',
      `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
      400,
      'BAD_REQUEST',
    ],
    ['TE in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n', 400, 'BAD_REQUEST'],
    ['HTTP/0.9', `GET / HTTP/0.9\r\n${HEAD}\r\n`, 400, 'BAD_REQUEST'],
    ['HTTP/2.0', `GET / HTTP/2.0\r\n${HEAD}\r\n`, 400, 'BAD_REQUEST'],
    ['a folded field', `GET / HTTP/1.1\r\n${HEAD}X: a\r\n b\r\n\r\n`, 400, 'BAD_REQUEST'],
    ['a space before the colon', `GET / HTTP/1.1\r\n${HEAD}X : a\r\n\r\n`, 400, 'BAD_REQUEST'],
    ['a NUL', `GET / HTTP/1.1\r\n${HEAD}X: a\0b\r\n\r\n`, 400, 'BAD_REQUEST'],
    ['a bare LF', `GET / HTTP/1.1\n${HEAD}\n`, 400, 'BAD_REQUEST'],
    ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\x00', 400, 'BAD_REQUEST'],
    ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`, 400, 'BAD_REQUEST'],
    ['CONNECT', `CONNECT evil.example:443 HTTP/1.1\r\n${HEAD}\r\n`, 405, 'METHOD_NOT_ALLOWED'],
    ['TRACE', `TRACE / HTTP/1.1\r\n${HEAD}\r\n`, 405, 'METHOD_NOT_ALLOWED'],
    ['a field of 20 kB', `GET / HTTP/1.1\r\n${HEAD}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['201 fields', `GET / HTTP/1.1\r\n${HEAD}${'a: b\r\n'.repeat(199)}\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['2000 fields', `GET / HTTP/1.1\r\n${HEAD}${'a: b\r\n'.repeat(1998)}\r\n`, 431, 'HEADERS_TOO_LARGE'],
    [
      '2000 fields, the length in the last',
      `POST / HTTP/1.1\r\n${HEAD}${'a: b\r\n'.repeat(1997)}Content-Length: 2\r\n\r\nhi`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['a field of 1 MB', `GET / HTTP/1.1\r\n${HEAD}X: ${'x'.repeat(1_000_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['an invalid chunk size', `POST / HTTP/1.1\r\n${CHUNKED}\r\n2\r\nhi\r\nZZ\r\n`, 400, 'BAD_REQUEST'],
    ['a chunk longer than it says', `POST / HTTP/1.1\r\n${CHUNKED}\r\n2\r\nhi!\r\n0\r\n\r\n`, 400, 'BAD_REQUEST'],
    [
      'an upgrade to websocket, while that is off',
      'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      403,
      'UPGRADE_NOT_ALLOWED',
    ],
  ])('%s', async (_, bytes, status, code) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const reply = await sendRaw(proxy.url, Buffer.from(bytes, 'latin1'));
    expect([reply.status, codeOf(reply), reply.end]).toEqual([status, code, 'fin']);
    const [ended, ...more] = await proxy.requestRecords(1);
    expect(ended).toMatchObject({ code: status, source: 'sidecar', localReply: code });
    expect(more).toEqual([]);
    expect(proxy.events.filter((event) => event.kind === 'local-reply')).toHaveLength(1);
    expect(upstream.requests).toEqual([]);
    expect(proxy.server.activeRequests.count).toBe(0);
  });
});

it('a body with an invalid chunk in a later packet does not reach the upstream', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const socket = await openSocket(proxy.url);
  const reply = readToEnd(socket);
  socket.write(`POST / HTTP/1.1\r\n${CHUNKED}\r\n2\r\nhi\r\n`);
  while (proxy.throttle.state().queued === 0 && proxy.server.activeRequests.count === 0)
    await new Promise(setImmediate);
  socket.write('ZZ\r\n');
  expect(codeOf(await reply)).toBe('BAD_REQUEST');
  expect((await reply).status).toBe(400);
  expect(await proxy.requestRecords(1)).toHaveLength(1);
  expect(upstream.requests).toEqual([]);
});

it('a streamed body with an invalid chunk is cut upstream, never ended', async () => {
  await using upstream = await startWireServer(() => undefined);
  await using proxy = await startProxy(upstream.url.href, { replayBufferBytes: 4 });
  const socket = await openSocket(proxy.url);
  const reply = readToEnd(socket);
  socket.write(`POST / HTTP/1.1\r\n${CHUNKED}\r\n5\r\nfirst\r\n`);
  await until(() => upstream.received[0]?.includes('first') === true);
  socket.write('6\r\nsecond\r\nZZ\r\n');
  expect(codeOf(await reply)).toBe('BAD_REQUEST');
  await until(() => upstream.sockets[0]?.destroyed === true);
  expect(upstream.received[0]).not.toMatch(/0\r\n\r\n$/);
  expect(await proxy.requestRecords(1)).toMatchObject([{ code: 400, attempts: 1 }]);
});

it('an upgrade after a request with ambiguous framing is not served', async () => {
  let upgrades = 0;
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url, {
    serveUpgrade: () => {
      upgrades++;
      return Promise.reject(new Error('not to be asked'));
    },
  });
  const refused = `POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
  const upgrade = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const reply = await sendRaw(proxy.url, refused + upgrade);
  expect(reply.bytes.toString().match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 400']);
  expect(upgrades).toBe(0);
  expect(await proxy.requestRecords(1)).toHaveLength(1);
});

it('chunk extensions are dropped, and the body is forwarded', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const reply = await sendRaw(proxy.url, `POST / HTTP/1.1\r\n${CHUNKED}\r\n2;a=b;c="d"\r\nhi\r\n0\r\n\r\n`);
  expect(reply.status).toBe(200);
  expect(upstream.requests.map(({ body, headers }) => [String(body), headers['content-length']])).toEqual([
    ['hi', '2'],
  ]);
});

it('header names with underscores replace neither framing nor credentials', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const sly = 'Transfer_Encoding: chunked\r\nContent_Length: 9\r\nAuthorization_: x\r\nPROXY_AUTHORIZATION: y\r\n';
  const reply = await sendRaw(proxy.url, `POST / HTTP/1.1\r\n${HEAD}${sly}Content-Length: 2\r\n\r\nhi`);
  expect(reply.status).toBe(200);
  expect(upstream.requests[0]?.rawHeaders.join('\n')).not.toMatch(/transfer|content_length|proxy/i);
  expect(String(upstream.requests[0]?.body)).toBe('hi');
});

it('a complete request gets its response when invalid bytes follow it', async () => {
  await using upstream = await startRecordingUpstream((_, response) => void response.end('the response'));
  await using proxy = await startProxy(upstream.url);
  const reply = await sendRaw(
    proxy.url,
    'POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\nhi\x01nonsense',
  );
  expect([reply.status, reply.end]).toEqual([200, 'fin']);
  expect(reply.bytes.toString()).toContain('the response');
  expect(await proxy.requestRecords(2)).toMatchObject([{ code: 200, path: '/a' }, { localReply: 'BAD_REQUEST' }]);
});

describe('a client that resets its connection', () => {
  it.each([
    ['CONNECT', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n'],
    ['an ignored upgrade', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
    ['a refused upgrade', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['no HTTP', 'nonsense\r\n\r\n'],
    ['a request', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    ['half a body', 'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf'],
  ])('after %s does not affect other clients', async (_, bytes) => {
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown): void => void uncaught.push(error);
    process.on('uncaughtExceptionMonitor', onUncaught);
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    for (let turns = 0; turns < 20; turns++) {
      const socket = await openSocket(proxy.url);
      socket.on('error', () => socket.destroy()).write(bytes);
      // From before the server has read it to after it has responded.
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
      socket.resetAndDestroy();
    }
    expect((await sendRaw(proxy.url, `GET / HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200);
    process.off('uncaughtExceptionMonitor', onUncaught);
    expect(uncaught).toEqual([]);
  });
});

it('200 header fields arrive, each with its value, in any packets', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url);
  const fields = Array.from({ length: 197 }, (_, at) => [`X-${String(at)}`, `v${String(at)}`]);
  const head = `GET /a HTTP/1.1\r\n${HEAD}${fields.map(([name = '', value = '']) => `${name}: ${value}\r\n`).join('')}`;
  for (const packetBytes of [3, 1000, 100_000]) {
    const socket = await openSocket(proxy.url);
    const reply = readToEnd(socket);
    const bytes = `${head}X-Last: ${String(packetBytes)}\r\n\r\n`;
    for (let at = 0; at < bytes.length; at += packetBytes) {
      socket.write(bytes.slice(at, at + packetBytes));
      await new Promise(setImmediate);
    }
    expect((await reply).status).toBe(200);
    const received = upstream.requests.at(-1)?.rawHeaders ?? [];
    expect(received).toEqual(expect.arrayContaining([...fields.flat(), 'X-Last', String(packetBytes)]));
  }
});
