/** Interim responses 100 (Continue): to which requests, when, and in which order on a connection. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLatch, startInProcess, until } from '../composition/in-process.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { ResponseReader } from '../support/raw-response.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

const EXPECT = 'Host: 127.0.0.1\r\nExpect: 100-continue\r\n';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

describe('a request with Expect: 100-continue and a body', () => {
  const post = `POST /a HTTP/1.1\r\n${EXPECT}Connection: close\r\nContent-Length: 2\r\n\r\n`;

  it('gets a 100 when it is admitted, and the field is not forwarded', async () => {
    const { url, api } = await startInProcess();
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.write(post);
    const [interim] = (await once(socket, 'data')) as [Buffer];
    expect(interim.toString()).toBe(CONTINUE);
    socket.write('hi');
    expect((await response).bytes.toString()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(api.requests.map(({ body, headers }) => [String(body), headers.expect])).toEqual([['hi', undefined]]);
  });

  it('gets no 100 in HTTP/1.0, which has no interim responses', async () => {
    const { url } = await startInProcess();
    const { bytes } = await sendRaw(url, `${post.replace('HTTP/1.1', 'HTTP/1.0')}hi`);
    expect(bytes.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it('gets no 100 when it is refused', async () => {
    const { url } = await startInProcess();
    const { bytes, status } = await sendRaw(url, post.replace('127.0.0.1', 'evil.example'));
    expect(status).toBe(403);
    expect(bytes.toString()).not.toContain('100 Continue');
  });

  it.each([
    ['refused', post.replace('127.0.0.1', 'evil.example'), 403],
    [
      'a preflight',
      `OPTIONS${post.slice(4)}`.replace(
        '\r\n',
        '\r\nOrigin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\n',
      ),
      204,
    ],
  ])('closes its connection when its body may not come: %s', async (_, head, expected) => {
    const { url, api } = await startInProcess({ env: { SIDECAR_ALLOWED_ORIGINS: 'http://localhost:3000' } });
    const { bytes, status } = await sendRaw(url, head.replace('Connection: close\r\n', ''));
    expect(status).toBe(expected);
    expect(bytes.toString()).toMatch(/^Connection: close\r$/m);
    expect(api.requests).toEqual([]);
  });
});

it('a preflight without the field, whose body comes later, keeps its connection', async () => {
  const { url, api } = await startInProcess({ env: { SIDECAR_ALLOWED_ORIGINS: 'http://localhost:3000' } });
  const socket = await openSocket(url);
  const responses = readToEnd(socket);
  const origin = 'Origin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\n';
  socket.write(`OPTIONS /a HTTP/1.1\r\nHost: 127.0.0.1\r\n${origin}Content-Length: 2\r\n\r\n`);
  await once(socket, 'data');
  socket.write('hiGET /last HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  expect((await responses).bytes.toString().match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 204', 'HTTP/1.1 200']);
  expect(api.requests.map(({ path }) => path)).toEqual(['/last']);
});

describe('a request with Expect: 100-continue and no body', () => {
  const WITHOUT_BODY: readonly (readonly [string, string])[] = [
    ['GET', `GET /a HTTP/1.1\r\n${EXPECT}`],
    ['HEAD', `HEAD /a HTTP/1.1\r\n${EXPECT}`],
    ['DELETE', `DELETE /a HTTP/1.1\r\n${EXPECT}`],
    ['POST of length 0', `POST /a HTTP/1.1\r\n${EXPECT}Content-Length: 0\r\n`],
  ];

  it.each(WITHOUT_BODY)('gets a 100 before the token: %s', async (_, head) => {
    const { opened, open } = createLatch();
    const { url, tokens } = await startInProcess({
      respondToTokenRequest: async (_request, response) => {
        await opened;
        response.writeHead(500).end();
      },
    });
    await until(() => tokens.requests.length > 0, 'the token is requested');
    const socket = await openSocket(url);
    const response = readToEnd(socket);
    socket.write(`${head}Connection: close\r\n\r\n`);
    const [interim] = (await once(socket, 'data')) as [Buffer];
    expect(interim.toString()).toBe(CONTINUE);
    open();
    expect((await response).bytes.toString()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 503 /);
  });

  it.each(WITHOUT_BODY)('keeps its connection, and the field is not forwarded: %s', async (_, head) => {
    const { url, api } = await startInProcess();
    const last = 'GET /last HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';
    const { bytes } = await sendRaw(url, `${head}\r\n${last}`);
    expect(bytes.toString().match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200', 'HTTP/1.1 200']);
    expect(api.requests.map(({ headers }) => headers.expect)).toEqual([undefined, undefined]);
  });

  it('gets a 100 before the guard refuses it', async () => {
    const { url } = await startInProcess();
    const { bytes } = await sendRaw(
      url,
      `GET /a HTTP/1.1\r\n${EXPECT.replace('127.0.0.1', 'evil.example')}Connection: close\r\n\r\n`,
    );
    expect(bytes.toString()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 403 /);
  });

  it('gets no 100 in HTTP/1.0, nor for another expectation', async () => {
    const { url } = await startInProcess();
    for (const head of [
      `GET /a HTTP/1.0\r\n${EXPECT}`,
      `GET /a HTTP/1.1\r\n${EXPECT.replace('100-continue', 'odd')}`,
    ]) {
      const { bytes } = await sendRaw(url, `${head}Connection: close\r\n\r\n`);
      expect(bytes.toString()).toMatch(/^HTTP\/1\.1 200 /);
    }
  });
});

interface Pipelined {
  readonly expects: boolean;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly isChunked: boolean;
  /** When the upstream responds, beside the others. */
  readonly order: number;
}

const pipelined: fc.Arbitrary<Pipelined> = fc.record({
  expects: fc.boolean(),
  requestBytes: fc.constantFrom(0, 0, 20),
  responseBytes: fc.constantFrom(0, 10, 40_000),
  isChunked: fc.boolean(),
  order: fc.nat(100),
});

function encode({ expects, requestBytes }: Pipelined, index: number): string {
  const head = requestBytes === 0 ? 'GET' : 'PUT';
  const length = requestBytes === 0 ? '' : `Content-Length: ${String(requestBytes)}\r\n`;
  const expectation = expects ? 'Expect: 100-continue\r\n' : '';
  return `${head} /${String(index)} HTTP/1.1\r\nHost: 127.0.0.1\r\n${expectation}${length}\r\n${'r'.repeat(requestBytes)}`;
}

function readOrDestroy(socket: Socket, reader: ResponseReader, chunk: Buffer): void {
  try {
    reader.push(chunk);
  } catch (error) {
    socket.destroy(error as Error);
  }
}

it('pipelined requests get their responses in their order, and each 100 stands in front of its own response', async () => {
  let plan: readonly Pipelined[] = [];
  const waiting = new Map<number, () => void>();
  const respond: RespondTo = async ({ path }, response) => {
    const index = Number(path.slice(1));
    const { responseBytes = 0, isChunked = false } = plan[index] ?? {};
    await new Promise<void>((resolve) => waiting.set(index, resolve));
    const body = Buffer.alloc(responseBytes, String(index));
    if (!isChunked) response.setHeader('Content-Length', responseBytes);
    response.write(body.subarray(0, 5));
    await setImmediate();
    response.end(body.subarray(5));
  };
  const { url } = await startInProcess({ respond });
  await fc.assert(
    fc.asyncProperty(fc.array(pipelined, { minLength: 2, maxLength: 5 }), async (requests) => {
      plan = requests;
      waiting.clear();
      const reader = new ResponseReader();
      const socket = await openSocket(url);
      let isEnded = false;
      socket.on('data', (chunk: Buffer) => readOrDestroy(socket, reader, chunk)).on('close', () => (isEnded = true));
      socket.on('error', () => socket.destroy());
      plan.forEach((each) => reader.expect(each.requestBytes === 0 ? 'GET' : 'PUT'));
      socket.write(plan.map(encode).join(''));
      const isReceived = (): boolean => isEnded || reader.responses.length === plan.length;
      // By their order among those that have arrived: a request may be read only after an earlier response.
      while (!isReceived()) {
        const [next] = [...waiting].sort(([a], [b]) => (plan[a]?.order ?? 0) - (plan[b]?.order ?? 0));
        if (next !== undefined) {
          waiting.delete(next[0]);
          next[1]();
        }
        await setImmediate();
      }
      expect(socket.errored).toBeNull();
      socket.destroy();
      reader.responses.forEach(({ status, body }, index) => {
        expect(status).toBe(200);
        expect(body.equals(Buffer.alloc(plan[index]?.responseBytes ?? 0, String(index)))).toBe(true);
      });
      expect(reader.responses.length).toBe(plan.length);
      expect(reader.interim).toBeLessThanOrEqual(plan.filter(({ expects }) => expects).length);
    }),
    { numRuns: 150 },
  );
});
