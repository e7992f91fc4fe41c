/** What node:http accepts, hides or does by default, as tried, and what the sidecar makes of it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createLatch, IDLE, startInProcess, until } from '../composition/in-process.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';

const CLOSE = 'Connection: close\r\n';

describe('node:http accepts what no proxy should forward:', () => {
  it.each([
    ['two Host fields', `GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n${CLOSE}\r\n`],
    ['an empty Host', `GET / HTTP/1.1\r\nHost:\r\n${CLOSE}\r\n`],
    [
      'HTTP/1.0 with Transfer-Encoding',
      `POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    ],
    [
      'Transfer-Encoding: gzip, chunked',
      `POST / HTTP/1.1\r\nHost: localhost\r\n${CLOSE}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    ],
  ])('%s', async (_, bytes) => {
    const { url, api } = await startInProcess();
    const response = await sendRaw(url, bytes);
    expect([400, 403]).toContain(response.status);
    expect(response.headers['proxy-status']).toBe('bearer-sidecar; error=http_request_denied');
    expect(api.requests).toHaveLength(0);
  });

  it('chunk extensions, which are dropped with the chunks', async () => {
    const { url, api } = await startInProcess();
    const head = `POST / HTTP/1.1\r\nHost: localhost\r\n${CLOSE}Transfer-Encoding: chunked\r\n\r\n`;
    expect((await sendRaw(url, `${head}2;evil="x"\r\nok\r\n0\r\n\r\n`)).status).toBe(200);
    expect(api.requests).toMatchObject([{ headers: { 'content-length': '2' } }]);
    expect(api.requests[0]!.body.toString()).toBe('ok');
  });
});

describe('node:http refuses with an empty reply; the sidecar sends a problem document:', () => {
  const chunkedPost = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n';
  it.each([
    ['Content-Length and Transfer-Encoding', `${chunkedPost}Content-Length: 5\r\n\r\n0\r\n\r\n`],
    ['a list of lengths', 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5, 5\r\n\r\nhello'],
    ['a bare LF', 'GET / HTTP/1.1\nHost: localhost\n\n'],
    ['obs-fold', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n'],
    ['NUL', 'GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    const { url, api, requestRecords } = await startInProcess();
    const response = await sendRaw(url, bytes);
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'BAD_REQUEST' });
    expect(api.requests).toHaveLength(0);
    expect(await requestRecords(1)).toHaveLength(1);
  });
});

it('node:http reports chunk errors after the request event — here the request has one outcome, and no upstream call', async () => {
  const { url, api, requestRecords, throttle } = await startInProcess();
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
  const response = await sendRaw(url, `${head}5\r\nhello\r\nzz\r\n`);
  expect(response.status).toBe(400);
  expect(response.bytes.toString().match(/^HTTP\/1\.1/gm)).toHaveLength(1);
  expect(await requestRecords(1)).toHaveLength(1);
  expect(api.requests).toHaveLength(0);
  expect(await throttle()).toEqual(IDLE);
});

it('node:http closes idle connections after 5 s and so resets pooled clients — here they are kept for an hour', async () => {
  expect(createServer().keepAliveTimeout).toBeLessThanOrEqual(6000);
  const { url } = await startInProcess();
  const socket = await openSocket(url);
  const reading = readToEnd(socket);
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  socket.end(`GET / HTTP/1.1\r\nHost: localhost\r\n${CLOSE}\r\n`);
  const { bytes } = await reading;
  expect(/^keep-alive: timeout=(\d+)/im.exec(bytes.toString())?.[1]).toBe('3600');
});

it('node:http reports neither FIN nor RST while ≥ 200 kB of a paused body are unread — here that is found when reading resumes', async () => {
  let responses = 0;
  const leaving = createLatch();
  const { url, api, eventsOf, throttle, requestRecords } = await startInProcess({
    respond: async (_, response) => {
      responses++;
      if (responses === 1) await leaving.opened;
      response.end('answered');
    },
    env: { SIDECAR_MAX_IN_FLIGHT: '1' },
  });
  const first = sendRaw(url, `GET /first HTTP/1.1\r\nHost: localhost\r\n${CLOSE}\r\n`);
  await until(() => eventsOf('permit-granted').length === 1, 'the first in flight');
  // One waits with its body read, so that the next one's is left unread.
  const second = sendRaw(url, `GET /second HTTP/1.1\r\nHost: localhost\r\n${CLOSE}\r\n`);
  await until(async () => (await throttle()).queued === 1, 'the second waits');
  const leaver = await openSocket(url);
  leaver.write('POST /leaver HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n');
  leaver.write(Buffer.alloc(400_000));
  await until(async () => (await throttle()).queued === 2, 'the leaver waits');
  leaver.resetAndDestroy();
  await once(leaver, 'close');
  leaving.open();
  expect((await first).status).toBe(200);
  expect((await second).status).toBe(200);
  const ended = await requestRecords(3);
  expect(ended.find(({ path }) => path === '/leaver')).toMatchObject({ code: 499, attempts: 0 });
  expect(api.requests.map(({ path }) => path)).toEqual(['/first', '/second']);
  expect(await throttle()).toEqual(IDLE);
});
