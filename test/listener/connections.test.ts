/** What happens on a client's connection: order, framing of answers, leaving, half-closing, interim answers, closing. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { afterHead, startWireServer } from '../upstream/wire.ts';
import { startProxy } from './proxy.ts';

const KEPT = 'Host: 127.0.0.1\r\n';
const HEAD = `${KEPT}Connection: close\r\n`;

/** Answers with the path that was asked, `/slow…` only after the others. */
const byPath: RespondTo = async (request, response) => {
  if (request.path.startsWith('/slow')) await sleep(100);
  response.end(`[${request.path}]`);
};
const never: RespondTo = () => undefined;

function bodies(bytes: Buffer): string[] {
  return bytes.toString().match(/\[[^\]]*\]/g) ?? [];
}

describe('pipelined requests', () => {
  it('are answered in their order', async () => {
    await using upstream = await startRecordingUpstream(byPath);
    await using proxy = await startProxy(upstream.url);
    const two = `GET /slow HTTP/1.1\r\n${KEPT}\r\nGET /b HTTP/1.1\r\n${KEPT}\r\n`;
    const answer = await sendRaw(proxy.url, `${two}GET /c HTTP/1.1\r\n${HEAD}\r\n`);
    expect(bodies(answer.bytes)).toEqual(['[/slow]', '[/b]', '[/c]']);
    expect(await proxy.told(3)).toHaveLength(3);
  });

  it('are all told of once when their client leaves, and none stays under way', async () => {
    await using upstream = await startRecordingUpstream(never);
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    socket.write(`GET /a HTTP/1.1\r\n${KEPT}\r\nGET /b HTTP/1.1\r\n${KEPT}\r\nGET /c HTTP/1.1\r\n${KEPT}\r\n`);
    while (proxy.server.activeRequests.count < 3) await sleep(5);
    socket.destroy();
    expect((await proxy.told(3)).map(({ code, source }) => [code, source])).toEqual(Array(3).fill([499, 'sidecar']));
    await proxy.server.activeRequests.whenIdle();
  });
});

describe('an answer that breaks off behind another one of its connection', () => {
  it('ends the connection in its turn, and what is behind it is told of', async () => {
    let tellCut: () => void = () => undefined;
    const isCut = new Promise<void>((resolve) => (tellCut = resolve));
    await using upstream = await startRecordingUpstream(async (request, response) => {
      if (request.path === '/cut') {
        response.writeHead(200, { 'content-length': '99' }).write('half', () => response.destroy());
        response.once('close', tellCut);
      }
      if (request.path !== '/slow') return;
      await isCut;
      await sleep(50);
      response.end('[/slow]');
    });
    await using proxy = await startProxy(upstream.url);
    const ask = (path: string): string => `GET ${path} HTTP/1.1\r\n${KEPT}\r\n`;
    const answer = await sendRaw(proxy.url, `${ask('/slow')}${ask('/cut')}${ask('/behind')}`);
    expect(bodies(answer.bytes)).toEqual(['[/slow]']);
    const told = await proxy.told(3);
    expect(told.map(({ path, code }) => [path, code]).sort()).toEqual([
      ['/behind', 499],
      ['/cut', 200],
      ['/slow', 200],
    ]);
    await proxy.server.activeRequests.whenIdle();
  });
});

describe('a request that is refused on arrival', () => {
  const get = `GET /x HTTP/1.1\r\n${KEPT}\r\n`;
  const post = `POST /x HTTP/1.1\r\n${KEPT}Content-Length: 4\r\n\r\nbody`;

  it.each([
    ['without a body', get],
    ['whose body came along', post],
  ])('%s keeps its connection, and so do those behind it', async (_, ask) => {
    await using upstream = await startRecordingUpstream(never);
    await using proxy = await startProxy(upstream.url, { maxInFlight: 1, queueMax: 1 });
    const crowd = await openSocket(proxy.url);
    crowd.write(get + get);
    while (proxy.server.activeRequests.count < 2) await sleep(5);
    const answer = await sendRaw(proxy.url, ask + ask + ask.replace(KEPT, HEAD));
    expect(answer.bytes.toString().match(/^HTTP\/1\.1 503 .*|^connection: .*/gim)).toEqual([
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: keep-alive'],
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: keep-alive'],
      ...['HTTP/1.1 503 Service Unavailable', 'Connection: close'],
    ]);
    const refused = { code: 503, localReply: 'QUEUE_FULL' };
    expect(await proxy.told(3)).toMatchObject([refused, refused, refused]);
    crowd.destroy();
  });
});

describe('an answer without a body', () => {
  it('to HEAD keeps its length, and the connection stays in step', async () => {
    await using upstream = await startRecordingUpstream((_, response) => {
      response.writeHead(200, { 'content-length': '1234', etag: '"x"' }).end();
    });
    await using proxy = await startProxy(upstream.url);
    const two = `HEAD /a HTTP/1.1\r\n${KEPT}\r\nHEAD /b HTTP/1.1\r\n${HEAD}\r\n`;
    const answer = await sendRaw(proxy.url, two);
    expect(answer.bytes.toString().match(/^HTTP\/1\.1 200/gm)).toHaveLength(2);
    expect(answer.bytes.toString().match(/^content-length: 1234\r$/gim)).toHaveLength(2);
    expect(answer.bytes.toString().endsWith('\r\n\r\n')).toBe(true);
  });

  it.each([
    [204, {}],
    [304, { etag: '"x"', 'content-length': '77' }],
  ])('%i passes, and the connection stays in step', async (status, fields) => {
    await using upstream = await startRecordingUpstream((_, response) => {
      response.writeHead(status, fields).end();
    });
    await using proxy = await startProxy(upstream.url);
    const answer = await sendRaw(proxy.url, `GET /a HTTP/1.1\r\n${KEPT}\r\nGET /b HTTP/1.1\r\n${HEAD}\r\n`);
    expect(answer.bytes.toString().match(/^HTTP\/1\.1 (\d+)/gm)).toEqual(Array(2).fill(`HTTP/1.1 ${String(status)}`));
    expect(answer.bytes.toString()).not.toMatch(/transfer-encoding/i);
    expect((await proxy.told(2)).map(({ code }) => code)).toEqual([status, status]);
  });
});

describe('a client that leaves', () => {
  it('while it waits for its answer is told of as 499, with the upstream call cancelled', async () => {
    const cancelled = Promise.withResolvers<undefined>();
    await using upstream = await startRecordingUpstream((_, response) => {
      response.once('close', () => cancelled.resolve(undefined));
    });
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    socket.write(`GET /a HTTP/1.1\r\n${KEPT}\r\n`);
    while (upstream.requests.length === 0) await sleep(5);
    socket.destroy();
    await cancelled.promise;
    expect(await proxy.told(1)).toMatchObject([{ code: 499, source: 'sidecar', attempts: 1 }]);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, queued: 0 });
  });

  it('by a FIN counts as gone', async () => {
    await using upstream = await startRecordingUpstream(never);
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const end = readToEnd(socket);
    socket.end(`GET /a HTTP/1.1\r\n${KEPT}\r\n`);
    expect(await proxy.told(1)).toMatchObject([{ code: 499 }]);
    expect((await end).bytes).toHaveLength(0);
  });

  it('by a FIN in the middle of its body counts as gone', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const end = readToEnd(socket);
    socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: 10\r\n\r\nfive!`);
    while (proxy.server.activeRequests.count === 0) await sleep(5);
    socket.end();
    expect(await proxy.told(1)).toMatchObject([{ code: 499, attempts: 0 }]);
    expect((await end).bytes).toHaveLength(0);
    expect(upstream.requests).toEqual([]);
  });

  it('by a FIN gets its answer where half-closing is allowed', async () => {
    await using upstream = await startRecordingUpstream(byPath);
    await using proxy = await startProxy(upstream.url, { allowHalfClose: true });
    const socket = await openSocket(proxy.url);
    const end = readToEnd(socket);
    socket.end(`GET /slow HTTP/1.1\r\n${KEPT}\r\n`);
    expect(bodies((await end).bytes)).toEqual(['[/slow]']);
    expect(await proxy.told(1)).toMatchObject([{ code: 200 }]);
  });
});

describe('Expect: 100-continue', () => {
  it('is answered when the request is admitted, and not forwarded', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    socket.write(`POST /a HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`);
    const [interim] = (await once(socket, 'data')) as [Buffer];
    expect(interim.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('hi');
    expect((await answer).bytes.toString()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(upstream.requests.map(({ body, headers }) => [String(body), headers.expect])).toEqual([['hi', undefined]]);
  });

  it('is not answered in advance to HTTP/1.0, which knows no interim answers', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    socket.write(`POST /a HTTP/1.0\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`);
    expect((await answer).bytes.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it('of a request that is refused gets the refusal alone', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    socket.write('POST /a HTTP/1.1\r\nHost: evil.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n');
    const { bytes, status } = await answer;
    expect(status).toBe(403);
    expect(bytes.toString()).not.toContain('100 Continue');
  });
});

describe('a large upload that is refused', () => {
  it.each([
    ['of 900 kB, read to its end', 900_000],
    ['of 64 MB, cut', 64_000_000],
  ])('%s: its client gets the whole reply, then the connection closes', async (_, bytes) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    proxy.tokens.stop();
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: ${String(bytes)}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes));
    const { status, headers: fields, body } = await answer;
    expect([status, fields.connection, fields['retry-after']]).toEqual([503, 'close', '2']);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'TOKEN_UNAVAILABLE', status: 503 });
    expect(body).toHaveLength(Number(fields['content-length']));
    expect(await proxy.told(1)).toMatchObject([{ code: 503, localReply: 'TOKEN_UNAVAILABLE' }]);
    expect(upstream.requests).toEqual([]);
  });
});

describe('closing', () => {
  it('lets the answers under way, and those that come, close their connections', async () => {
    await using upstream = await startRecordingUpstream(byPath);
    await using proxy = await startProxy(upstream.url);
    const underWay = sendRaw(proxy.url, `GET /slow HTTP/1.1\r\n${KEPT}\r\n`);
    while (proxy.server.activeRequests.count === 0) await sleep(5);
    proxy.server.startClosing();
    const late = sendRaw(proxy.url, `GET /b HTTP/1.1\r\n${KEPT}\r\n`);
    for (const answer of [await underWay, await late]) {
      expect([answer.status, answer.headers.connection, answer.end]).toEqual([200, 'close', 'fin']);
    }
  });

  it('leaves a connection open for the answers to pipelined requests', async () => {
    await using upstream = await startRecordingUpstream(byPath);
    await using proxy = await startProxy(upstream.url);
    proxy.server.startClosing();
    const both = `GET /slow HTTP/1.1\r\n${KEPT}\r\nGET /b HTTP/1.1\r\n${KEPT}\r\n`;
    const answer = await sendRaw(proxy.url, both);
    expect(bodies(answer.bytes)).toEqual(['[/slow]', '[/b]']);
    expect(answer.bytes.toString().match(/^connection: close/gim)).toHaveLength(1);
    expect((await proxy.told(2)).map(({ code }) => code)).toEqual([200, 200]);
  });

  it('then refuses late requests on kept connections, and takes no new ones', async () => {
    await using upstream = await startRecordingUpstream(byPath);
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    const answer = readToEnd(socket);
    proxy.server.startClosing();
    proxy.server.stopAccepting();
    socket.write(`GET /late HTTP/1.1\r\n${KEPT}\r\n`);
    expect(await answer).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
    expect(await proxy.told(1)).toMatchObject([{ localReply: 'DRAINING' }]);
    await expect(openSocket(proxy.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('cuts what is left with a reply, or in the middle of an answer that has begun', async () => {
    await using upstream = await startRecordingUpstream((request, response) => {
      if (request.path === '/begun') response.writeHead(200, { 'content-length': '9' }).write('half');
    });
    await using proxy = await startProxy(upstream.url);
    const waiting = sendRaw(proxy.url, `GET /waiting HTTP/1.1\r\n${HEAD}\r\n`);
    const begun = await openSocket(proxy.url);
    const half = readToEnd(begun);
    begun.write(`GET /begun HTTP/1.1\r\n${HEAD}\r\n`);
    await new Promise((resolve) => begun.once('data', resolve));
    while (upstream.requests.length < 2) await sleep(5);
    proxy.server.stopAccepting();
    expect(proxy.server.abortAll()).toBe(2);
    expect(await waiting).toMatchObject({ status: 503 });
    const { body, headers: fields } = await half;
    expect(body.length).toBeLessThan(Number(fields['content-length']));
    expect((await proxy.told(2)).map(({ code }) => code).toSorted()).toEqual([200, 503]);
  });
});

describe('an answer that breaks off upstream', () => {
  it.each([
    ['HTTP/1.1', 'Content-Length: 9\r\n\r\nhalf'],
    ['HTTP/1.1', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['HTTP/1.1', 'Connection: close\r\n\r\nhalf'],
    ['HTTP/1.0', 'Connection: close\r\n\r\nhalf'],
  ])('breaks off for an %s client as well: %j', async (version, rest) => {
    const broken = afterHead(`HTTP/1.1 200 OK\r\n${rest}`, (socket) => setTimeout(() => socket.resetAndDestroy(), 20));
    await using upstream = await startWireServer(broken);
    await using proxy = await startProxy(upstream.url.href);
    const { bytes, body, end } = await sendRaw(proxy.url, `GET /a ${version}\r\n${KEPT}\r\n`);
    expect(body.toString()).toContain('half');
    const isChunked = /transfer-encoding: chunked/i.test(bytes.toString());
    if (isChunked) expect(body.toString().endsWith('0\r\n\r\n')).toBe(false);
    else expect(end === 'reset' || /content-length: 9/i.test(bytes.toString())).toBe(true);
    const [told] = await proxy.told(1);
    expect(told).toMatchObject({ code: 200, source: 'upstream' });
    expect(told?.fault).toMatch(/upstream closed/);
  });
});

it('an answer that comes before the upload is done reaches its client whole, and closes the connection', async () => {
  const early = afterHead('HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big');
  await using upstream = await startWireServer(early);
  await using proxy = await startProxy(upstream.url.href);
  const socket = await openSocket(proxy.url);
  const answer = readToEnd(socket);
  socket.write(`POST /a HTTP/1.1\r\n${KEPT}Content-Length: 8000000\r\n\r\n`);
  socket.write(Buffer.alloc(100_000));
  const { status, headers: fields, body } = await answer;
  expect([status, fields.connection, body.toString()]).toEqual([413, 'close', 'too big']);
  expect(await proxy.told(1)).toMatchObject([{ code: 413, source: 'upstream' }]);
});
