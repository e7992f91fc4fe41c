/**
 * Defects of http-proxy-3 2.0.1 in plain HTTP, as tried on loopback, none of which the sidecar may have. Where that
 * endangers nothing the peer itself is driven as well: it proves that the witness sees the defect.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createProxyServer } from 'http-proxy-3';
import type { ProxyServer } from 'http-proxy-3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { openSocket, sendRaw } from '../support/raw-client.ts';

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

interface Peer {
  readonly url: string;
  readonly proxy: ProxyServer;
  /** What web() threw. */
  readonly thrown: unknown[];
}

async function startPeer(target: string): Promise<Peer> {
  const proxy = createProxyServer({ target });
  proxy.on('error', (_error, _request, response) => {
    response.destroy();
  });
  const thrown: unknown[] = [];
  const server = createServer((request, response) => {
    try {
      proxy.web(request, response);
    } catch (error) {
      thrown.push(error);
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, proxy, thrown };
}

/** How a request as received is framed, and what came behind its head. */
function framing(received: string): { length: string | undefined; chunked: boolean; body: string } {
  const headEnd = received.indexOf('\r\n\r\n');
  const head = received.slice(0, headEnd);
  const length = /^content-length: *(\d+)/im.exec(head)?.[1];
  return { length, chunked: /^transfer-encoding: *chunked/im.test(head), body: received.slice(headEnd + 4) };
}

describe('http-proxy-3: a chunked DELETE is forwarded with Content-Length: 0 and its body still sent (CVE-2026-29057)', () => {
  const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  const chunked = (method: string): string =>
    `${method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n` +
    `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;

  it('the peer: bytes behind a message that says it has none', async () => {
    const upstream = await startRawUpstream(() => undefined);
    const peer = await startPeer(upstream.url);
    const socket = await openSocket(peer.url);
    socket.write(chunked('DELETE'));
    await until(() => upstream.received[0]?.includes('/smuggled') === true, 'the body at the upstream');
    socket.destroy();
    expect(framing(upstream.received[0]!)).toMatchObject({ length: '0', chunked: false });
  });

  it.each(['DELETE', 'OPTIONS', 'GET', 'POST', 'QUERY'])(
    'not here: a %s has exactly the body that it says',
    async (method) => {
      for (const replayBufferBytes of ['1000', '1']) {
        const upstream = await startRawUpstream((socket) => setTimeout(() => socket.write(OK), 20));
        const { url } = await startInProcess({
          apiUrl: upstream.url,
          env: { SIDECAR_REPLAY_BUFFER_BYTES: replayBufferBytes },
        });
        await sendRaw(url, chunked(method));
        const { length, chunked: isChunked, body } = framing(upstream.received.join(''));
        expect([length === undefined, isChunked]).toEqual([isChunked, length === undefined]);
        if (isChunked) expect(body).toBe(`${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`);
        else expect([length, body]).toEqual([String(SMUGGLED.length), SMUGGLED]);
      }
    },
  );
});

describe('http-proxy-3: a request with Expect skips the proxyReq event, where a bearer would be put in', () => {
  const EXPECTING =
    'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok';

  it('the peer: it goes out without one', async () => {
    const upstream = await startRawUpstream((socket) => socket.write(OK));
    const { url, proxy } = await startPeer(upstream.url);
    proxy.on('proxyReq', (request) => request.setHeader('authorization', 'Bearer put-in'));
    await sendRaw(url, EXPECTING);
    expect(upstream.received.join('')).not.toContain('Bearer');
  });

  it('not here: it has its bearer and gets a 100, and its Expect is not forwarded', async () => {
    const { url, api } = await startInProcess();
    const response = await sendRaw(url, EXPECTING);
    expect(response.bytes.toString()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(api.requests[0]!.headers.authorization).toMatch(/^Bearer token-1-/);
    expect(api.requests[0]!.headers.expect).toBeUndefined();
  });
});

describe('http-proxy-3: GET http://a:99999/ throws out of web()', () => {
  const lines = ['http://a:99999/', 'http://localhost:99999/', 'http://[::1/', 'http:///', 'http://'];
  const ask = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;

  it('the peer: an exception', async () => {
    const peer = await startPeer('http://127.0.0.1:1');
    await sendRaw(peer.url, ask('http://a:99999/'));
    expect(peer.thrown).toHaveLength(1);
  });

  it('not here: each such target gets a response, and the next request is served', async () => {
    const { url, eventsOf } = await startInProcess();
    for (const target of lines) expect([200, 400, 403]).toContain((await sendRaw(url, ask(target))).status);
    expect((await sendRaw(url, GET)).status).toBe(200);
    expect(eventsOf('warning')).toEqual([]);
  });
});

describe('http-proxy-3: a FIN of the upstream in the middle of a body leaves the client hanging', () => {
  const HALF = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf';

  /** @param timeoutMs how long the end is waited for */
  async function seesTheCut(url: string, timeoutMs: number): Promise<boolean> {
    const socket = await openSocket(url);
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
    const ended = new Promise<boolean>((resolve) => socket.once('close', () => resolve(true)));
    const hanging = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), timeoutMs));
    const hasEnded = await Promise.race([ended, hanging]);
    socket.destroy();
    return hasEnded;
  }

  it('the peer: nothing ends', async () => {
    const upstream = await startRawUpstream((socket) => socket.end(HALF));
    expect(await seesTheCut((await startPeer(upstream.url)).url, 300)).toBe(false);
  });

  it('not here: the client is cut off', async () => {
    const upstream = await startRawUpstream((socket) => socket.end(HALF));
    expect(await seesTheCut((await startInProcess({ apiUrl: upstream.url })).url, 120_000)).toBe(true);
  });
});

// The peer dies of it in a way that would take this process along.
it('http-proxy-3: a response with both Trailer and Content-Length crashes the process — not here', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nContent-Length: 2\r\n\r\nok');
  });
  const { url } = await startInProcess({ apiUrl: upstream.url });
  for (let times = 0; times < 2; times++) {
    const response = await sendRaw(url, GET);
    expect([response.status, response.body.toString()]).toEqual([200, 'ok']);
    expect(response.headers.trailer).toBeUndefined();
  }
});

it('http-proxy-3: a consumed body cannot be retried — here it is sent again whole', async () => {
  const { url, api } = await startInProcess({
    respond: (request, response, index) => {
      if (index < 2) response.writeHead(429).end();
      else response.end(request.body);
    },
  });
  const response = await sendRaw(
    url,
    'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody',
  );
  expect(response.status).toBe(200);
  expect(api.requests.map(({ body }) => body.toString())).toEqual(['body', 'body', 'body']);
});

it('http-proxy-3, fetch mode: gzip is corrupted — here not one byte of it changes', async () => {
  const zipped = gzipSync('partner');
  const { url } = await startInProcess({
    respond: (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': zipped.length }).end(zipped);
    },
  });
  const response = await sendRaw(url, GET);
  expect(response.headers).toMatchObject({ 'content-encoding': 'gzip', 'content-length': String(zipped.length) });
  expect(gunzipSync(response.body).toString()).toBe('partner');
});

it('http-proxy-3, fetch mode: all but the last Set-Cookie are dropped — here all are kept, in order', async () => {
  const { url } = await startInProcess({
    respond: (_, response) => void response.writeHead(200, { 'set-cookie': ['a=1; Path=/', 'b=2', 'c=3'] }).end(),
  });
  const { bytes } = await sendRaw(url, GET);
  expect(bytes.toString().match(/^set-cookie: .*$/gim)).toEqual([
    'set-cookie: a=1; Path=/',
    'set-cookie: b=2',
    'set-cookie: c=3',
  ]);
});
