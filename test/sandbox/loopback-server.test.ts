/** The server of the sandbox: bounded bodies, errors, failed streams. */
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { jsonResponse, readBody, serveOnLoopback } from '../../src/sandbox/loopback-server.ts';
import type { SandboxRequestHandler, LoopbackServer } from '../../src/sandbox/loopback-server.ts';
import { fetch, IDENTITY } from './https-client.ts';
import { sendRaw } from './raw-request.ts';

const LIMIT_BYTES = 1000;

let started: LoopbackServer | undefined;
afterEach(async () => {
  await started?.close();
});

async function serve(handle: SandboxRequestHandler): Promise<LoopbackServer> {
  started = await serveOnLoopback(IDENTITY, handle);
  return started;
}

const sizeOfBody: SandboxRequestHandler = async (request) => {
  const body = await readBody(request, LIMIT_BYTES);
  return body === undefined
    ? jsonResponse(413, {}, { connection: 'close' })
    : jsonResponse(200, { bytes: body.length });
};

test.each([
  [0, 200],
  [LIMIT_BYTES, 200],
  [LIMIT_BYTES + 1, 413],
  [1024 * 1024, 413],
])('a body of %i bytes gets %i', async (bytes, status) => {
  const server = await serve(sizeOfBody);
  const response = await fetch(server.url, { method: 'POST', body: Buffer.alloc(bytes) });
  expect(response.status).toBe(status);
  if (status === 200) expect(await response.json()).toEqual({ bytes });
});

test('cuts an endless body and continues', async () => {
  const server = await serve(sizeOfBody);
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n';
  await sendRaw(server.url, head + 'x'.repeat(8 * 1024 * 1024));
  expect((await fetch(server.url, { method: 'POST', body: 'fine' })).status).toBe(200);
});

test('a client that breaks off affects no other', async () => {
  let failed = 0;
  const server = await serve(async (request, gone) => {
    gone.addEventListener('abort', () => (failed += 1));
    return sizeOfBody(request, gone);
  });
  const broken = new AbortController();
  const body = new ReadableStream({
    pull: (controller) => {
      controller.enqueue(Buffer.alloc(10));
      broken.abort();
    },
  });
  await expect(fetch(server.url, { method: 'POST', body, duplex: 'half', signal: broken.signal })).rejects.toThrow();
  expect((await fetch(server.url, { method: 'POST', body: 'fine' })).status).toBe(200);
  await expect.poll(() => failed).toBeGreaterThan(0);
});

test('a client that ends its connection within a body gets no 500', async () => {
  const server = await serve(sizeOfBody);
  const { port, hostname: host } = server.url;
  const options = { port: Number(port), host, ca: IDENTITY.cert, allowHalfOpen: true };
  const socket = connect(options);
  socket.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nfive ');
  // From Node's parser.
  expect(await text(socket)).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  expect((await fetch(server.url, { method: 'POST', body: 'fine' })).status).toBe(200);
});

test('an error is a 500 without the reason, and the server continues', async () => {
  const server = await serve(() => Promise.reject(new Error('inner reason')));
  const response = await fetch(server.url);
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('inner reason');
  expect((await fetch(server.url)).status).toBe(500);
});

test('cuts a failed stream instead of ending it', async () => {
  async function* failing(): AsyncGenerator<string> {
    yield await Promise.resolve('first ');
    throw new Error('inner reason');
  }
  const server = await serve(() => Promise.resolve({ status: 200, headers: {}, body: failing() }));
  const response = await fetch(server.url);
  await expect(response.text()).rejects.toThrow();
});
