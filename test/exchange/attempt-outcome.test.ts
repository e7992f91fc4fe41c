/** How each attempt is recorded, and what the client got, for every way in which an attempt ends. */
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { classifyAttempt, classifyFailure } from '../../src/exchange/attempt-outcome.ts';
import type { RequestTracer } from '../../src/exchange/request-tracer.ts';
import { SidecarError } from '../../src/platform/errors.ts';
import { abortedFailure, classifyExchangeError } from '../../src/upstream/failure.ts';
import { startProxy, type Proxy, type ProxyOptions } from '../listener/proxy.ts';
import type { RecordedEventOf } from '../support/recorded-events.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts';
import { afterHead, startWireServer, until } from '../upstream/wire.ts';

const GET = 'GET /quotes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';
const HALF = 'Content-Length: 9\r\n\r\nhalf';

type AttemptEvent = RecordedEventOf<'attempt-ended'>;

/** A GET through a proxy before an upstream that responds as `respond` does. */
async function startGet(respond: (socket: Socket, received: string, index: number) => void, options?: ProxyOptions) {
  const upstream = await startWireServer(respond);
  onTestFinished(() => upstream[Symbol.asyncDispose]());
  return { upstream, ...(await startGetAt(upstream.url.href, options)) };
}

async function startGetAt(upstreamUrl: string, options?: ProxyOptions) {
  const proxy = await startProxy(upstreamUrl, options);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const client = await openSocket(proxy.url);
  onTestFinished(() => void client.destroy());
  client.write(GET);
  return { proxy, client, response: readToEnd(client) };
}

async function attemptsOf(proxy: Proxy): Promise<AttemptEvent[]> {
  await proxy.requestRecords(1);
  return proxy.events.filter((event) => event.kind === 'attempt-ended');
}

async function expectOneAttempt(proxy: Proxy, outcome: AttemptEvent['outcome'], isOwn: boolean): Promise<void> {
  expect(await attemptsOf(proxy)).toMatchObject([{ outcome, isOwn }]);
}

const reset = (socket: Socket): void => void socket.resetAndDestroy();
const silence = (): void => undefined;

describe('before the response head', () => {
  it.each([
    ['the upstream resets the connection', 'reset', 502, reset, {}],
    ['the upstream sends no HTTP', 'reset', 502, afterHead('SSH-2.0-OpenSSH\r\n'), {}],
    ['the upstream does not respond in time', 'timeout', 504, silence, { requestTimeoutMs: 50 }],
    ['the deadline passes', 'timeout', 504, silence, { deadlineMs: 50 }],
  ] as const)('records the upstream’s fault when %s', async (_, outcome, status, respond, options) => {
    const { proxy, response } = await startGet(respond, options);
    expect((await response).status).toBe(status);
    await expectOneAttempt(proxy, outcome, false);
  });

  it('records "unreachable" when the connection is refused', async () => {
    const upstream = await startWireServer(silence);
    await upstream[Symbol.asyncDispose]();
    const { proxy, response } = await startGetAt(upstream.url.href);
    expect((await response).status).toBe(502);
    await expectOneAttempt(proxy, 'unreachable', false);
  });

  it('records the sidecar’s own end when the client leaves', async () => {
    const { proxy, client, upstream } = await startGet(silence);
    await until(() => upstream.received.length === 1);
    client.destroy();
    await expectOneAttempt(proxy, 'client_left', true);
    expect(proxy.ended()).toMatchObject([{ code: 499 }]);
  });

  it('records the sidecar’s own end when the drain cuts the request', async () => {
    const { proxy, response, upstream } = await startGet(silence);
    await until(() => upstream.received.length === 1);
    proxy.server.abortAll();
    expect((await response).status).toBe(504);
    await expectOneAttempt(proxy, 'reset', true);
    expect(proxy.ended()).toMatchObject([{ localReply: 'UPSTREAM_TIMEOUT' }]);
  });

  it('records the sidecar’s own end when the request cannot be put into HTTP', async () => {
    const tracer: RequestTracer = {
      traceId: undefined,
      startWait: () => undefined,
      endWait: () => undefined,
      startAttempt: ({ headers }) => [...headers, 'x-bad', 'a\u0000b'],
      endAttempt: () => undefined,
      endRequest: () => undefined,
    };
    const { proxy, response } = await startGet(silence, { startTracer: () => tracer });
    expect((await response).status).toBe(400);
    await expectOneAttempt(proxy, 'reset', true);
  });
});

describe('after the response head', () => {
  it.each([
    [200, 'ok'],
    [302, 'ok'],
    [401, 'unauthorized'],
    [404, 'error_status'],
    [500, 'error_status'],
  ] as const)('records a whole %i as "%s"', async (status, outcome) => {
    const { proxy, response } = await startGet(afterHead(`HTTP/1.1 ${status} X\r\nContent-Length: 2\r\n\r\nok`));
    expect(await response).toMatchObject({ status, body: Buffer.from('ok'), end: 'fin' });
    const [first] = await attemptsOf(proxy);
    expect(first).toMatchObject({ outcome, isOwn: false });
  });

  it.each([
    [200, 'cut'],
    [500, 'cut'],
  ] as const)('records a %i that the upstream breaks off as "%s"', async (status, outcome) => {
    const { proxy, response } = await startGet(afterHead(`HTTP/1.1 ${status} X\r\n${HALF}`, reset));
    expect(await response).toMatchObject({ status, body: Buffer.from('half') });
    await expectOneAttempt(proxy, outcome, false);
    expect(proxy.ended()).toMatchObject([{ code: status, cutBy: 'upstream' }]);
  });

  it('records "cut" for a response that breaks off before the client got any of it', async () => {
    const broken = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n';
    const { proxy, response } = await startGet(afterHead(broken));
    expect((await response).status).toBe(502);
    await expectOneAttempt(proxy, 'cut', false);
  });

  it('records a 429 that breaks off while it is held as "rate_limited", and the retry', async () => {
    const refusal = afterHead(`HTTP/1.1 429 X\r\nRetry-After: 0\r\n${HALF}`, reset);
    const success = afterHead('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    const { proxy, response } = await startGet((socket, received, index) => {
      (index === 0 ? refusal : success)(socket, received);
    });
    expect(await response).toMatchObject({ status: 200, body: Buffer.from('ok') });
    expect(await attemptsOf(proxy)).toMatchObject([
      { outcome: 'rate_limited', isOwn: false },
      { outcome: 'ok', isOwn: false },
    ]);
  });

  it('records "client_left" when the client leaves within the response', async () => {
    const { proxy, client } = await startGet(afterHead(`HTTP/1.1 200 OK\r\n${HALF}`));
    await until(() => client.bytesRead > 0);
    client.destroy();
    await expectOneAttempt(proxy, 'client_left', true);
    expect(proxy.ended()).toMatchObject([{ code: 499, cutBy: undefined }]);
  });

  it('records "client_left" when the client leaves while a 429 is held', async () => {
    const { proxy, client } = await startGet(afterHead(`HTTP/1.1 429 X\r\nRetry-After: 0\r\n${HALF}`));
    await until(() => proxy.events.some(({ kind }) => kind === 'rate-limited'));
    client.destroy();
    await expectOneAttempt(proxy, 'client_left', true);
  });

  it('records the sidecar’s own cut when the drain ends the response', async () => {
    const { proxy, client, response } = await startGet(afterHead(`HTTP/1.1 200 OK\r\n${HALF}`));
    await until(() => client.bytesRead > 0);
    proxy.server.abortAll();
    expect(await response).toMatchObject({ status: 200, body: Buffer.from('half') });
    await expectOneAttempt(proxy, 'cut', true);
    expect(proxy.ended()).toMatchObject([{ code: 200, cutBy: 'sidecar' }]);
  });
});

describe('the cause of a fault', () => {
  const broken = classifyExchangeError(new Error('x'), false);
  const left = { kind: 'client-left' } as const;
  const deadline = { kind: 'deadline', limit: '100 ms' } as const;

  it.each([
    ['the connection broke', broken, undefined, 'reset_after_sent'],
    ['the deadline passed after sending', abortedFailure(), deadline, 'no_response_in_time'],
    ['the client left', abortedFailure(), left, undefined],
    ['the client left as the connection broke', broken, left, undefined],
    ['the drain cut it', abortedFailure(), { kind: 'draining', error: new SidecarError('DRAINING', 'x') }, undefined],
  ] as const)('is known when %s', (_, failure, aborted, cause) => {
    expect(classifyFailure(failure, aborted, true)).toMatchObject({ cause, detail: expect.any(String) as string });
  });

  it('is the connection when the deadline passed before the request was sent', () => {
    expect(classifyFailure(abortedFailure(), deadline, false)).toMatchObject({
      ...{ outcome: 'timeout', isOwn: false, cause: 'connect_timeout' },
      detail: 'no connection was opened before the deadline passed (100 ms)',
    });
  });

  it.each([
    ['ok', 'response_cut'],
    ['error_status', 'response_cut'],
    ['rate_limited', undefined],
    ['unauthorized', undefined],
  ] as const)('of a response that broke off after the head of "%s" is %s', (headOutcome, cause) => {
    const head = { status: 200, statusText: '', headers: [], isRewritten: false, memoryBytes: 0 };
    const fault = { detail: 'x', cutBy: 'upstream', cause: 'response_cut' } as const;
    expect(classifyAttempt({ kind: 'relayed', head, fault }, headOutcome, undefined, true).cause).toBe(cause);
    const failure = classifyExchangeError(new Error('x'));
    expect(classifyAttempt({ kind: 'failed', failure }, headOutcome, undefined, true).cause).toBe(cause);
  });
});

describe('a response of a firewall or proxy instead of the API', () => {
  const page = { contentType: 'text/html; charset=utf-8', statusText: '' };
  const endOf = (head: Partial<UpstreamResponse> & { status: number }) => {
    const whole = { statusText: '', headers: [], isRewritten: false, memoryBytes: 0, ...head };
    return classifyAttempt({ kind: 'relayed', head: whole, fault: undefined }, 'error_status', undefined, true);
  };

  it.each([
    ['a web page with 403', { ...page, status: 403 }, 'a web page came instead of'],
    ['a web page with 451', { ...page, status: 451 }, '451'],
    ['a challenge', { ...page, status: 503, headers: ['CF-Mitigated', 'challenge'] }, 'from Cloudflare'],
    ['a page of a forward proxy', { ...page, status: 502, headers: ['X-Squid-Error', 'ERR_X 0'] }, 'from Squid'],
    ['a proxy that asks for credentials', { status: 407 }, '407'],
  ])('is a fault: %s', (_, head, words) => {
    expect(endOf(head)).toMatchObject({ cause: 'intercepted', isOwn: false, outcome: 'error_status' });
    expect(endOf(head).detail).toContain(words);
  });

  it.each([
    ['JSON with 403', { status: 403, contentType: 'application/json' }],
    ['no content', { status: 403 }],
    ['a page of a web server', { ...page, status: 404 }],
    ['a page of a gateway', { ...page, status: 502 }],
    ['a page for people', { ...page, status: 200 }],
  ])('is not: %s', (_, head) => {
    expect(endOf(head)).toMatchObject({ cause: undefined, detail: undefined });
  });
});
