/** The deadline, in whichever stage it passes: a reply of that stage's own, once, and nothing left behind. */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLatch, giveToken, IDLE, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { echo, type RespondTo } from '../support/recording-upstream.ts';
import { waitUntilStable } from '../support/until.ts';

const DEADLINE = { SIDECAR_DEADLINE_MS: '5000' };

describe('the deadline', () => {
  it('in the wait for a token is TOKEN_UNAVAILABLE, and the shared token request goes on', async () => {
    const clock = new ManualClock();
    const token = createLatch();
    const { url, api, tokens, requestRecords } = await startInProcess({
      clock,
      respondToTokenRequest: async (request, response, index) => {
        await token.opened;
        await giveToken(request, response, index);
      },
      env: DEADLINE,
    });
    const call = send(url);
    await until(() => tokens.server.listening && clock.pendingTimers >= 2, 'the call waiting');
    await clock.advance(5000);
    const response = await call;
    expect(response).toMatchObject({ status: 503, code: 'TOKEN_UNAVAILABLE' });
    expect(response.fields['retry-after']).toBe('1');
    expect(await requestRecords(1)).toMatchObject([{ code: 503, durationMs: 5000, attempts: 0 }]);
    token.open();
    await until(() => tokens.requests.length === 1, 'the token');
    expect((await send(url)).status).toBe(200);
    expect(tokens.requests).toHaveLength(1);
    expect(api.requests).toHaveLength(1);
  });

  it('in the queue is QUEUE_TIMEOUT, and counted as one', async () => {
    const clock = new ManualClock();
    const release = createLatch();
    const { url, api, eventsOf, throttle } = await startInProcess({
      clock,
      respond: async (...call) => {
        await release.opened;
        await echo(...call);
      },
      env: { SIDECAR_MAX_IN_FLIGHT: '1' },
    });
    const first = send(url);
    await until(() => eventsOf('permit-granted').length === 1, 'the first call in flight');
    const second = send(url, { headers: { 'x-sidecar-timeout-ms': '700' } });
    await untilQueued(throttle);
    await clock.advance(700);
    const text: unknown = expect.stringMatching(/SIDECAR_QUEUE_TIMEOUT_MS|SIDECAR_DEADLINE_MS/);
    expect(await second).toMatchObject({ status: 503, code: 'QUEUE_TIMEOUT', text });
    expect(eventsOf('queue-rejected')).toEqual([{ kind: 'queue-rejected', route: 'default', reason: 'timeout' }]);
    release.open();
    expect((await first).status).toBe(200);
    expect(api.requests).toHaveLength(1);
  });

  it('within the body is REQUEST_TIMEOUT, a 408', async () => {
    const clock = new ManualClock();
    const { url, api, requestRecords, throttle } = await startInProcess({ clock, env: DEADLINE });
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf`);
    await until(() => clock.pendingTimers >= 2, 'the body being read');
    await untilQueued(throttle);
    await clock.advance(5000);
    const response = await reading;
    expect(response.status).toBe(408);
    const { code, detail } = JSON.parse(response.body.toString()) as { code: string; detail: string };
    expect(code).toBe('REQUEST_TIMEOUT');
    expect(detail).toBe(
      'the deadline passed (5000 ms: request.deadlineMs (SIDECAR_DEADLINE_MS)) before the request body was complete',
    );
    expect(api.requests).toHaveLength(0);
    expect(await requestRecords(1)).toMatchObject([{ code: 408, requestBytes: 4 }]);
    expect(await throttle()).toEqual(IDLE);
  });

  it('at the upstream is UPSTREAM_TIMEOUT, and the connection is closed', async () => {
    const clock = new ManualClock();
    let isLeft = false;
    const { url, eventsOf, requestRecords, throttle } = await startInProcess({
      clock,
      respond: (_request, response) => void response.once('close', () => (isLeft = true)),
      env: DEADLINE,
    });
    const call = send(url);
    await until(() => eventsOf('permit-granted').length === 1, 'the call in flight');
    await clock.advance(5000);
    expect(await call).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT' });
    await until(() => isLeft, 'the connection closed');
    expect(eventsOf('attempt-ended')).toMatchObject([{ outcome: 'timeout', durationMs: 5000 }]);
    expect(await requestRecords(1)).toHaveLength(1);
    expect(await throttle()).toEqual(IDLE);
  });

  it('in the queue after an attempt that was sent gives the result of that attempt', async () => {
    const clock = new ManualClock();
    const { url, eventsOf } = await startInProcess({
      clock,
      respond: (_request, response) => void response.destroy(),
      env: { ...DEADLINE, SIDECAR_RATE: '0.1', SIDECAR_BURST: '1' },
    });
    const call = send(url);
    await until(() => eventsOf('attempt-ended').length === 1, 'a first attempt');
    await clock.advance(5000);
    expect(await call).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
    expect(eventsOf('retry')).toEqual([]);
    expect(eventsOf('local-reply')).toMatchObject([{ code: 'UPSTREAM_RESET' }]);
  });

  it('does not affect a response that has begun', async () => {
    const clock = new ManualClock();
    const rest = createLatch();
    const { url, eventsOf } = await startInProcess({
      clock,
      respond: async (_request, response) => {
        response.writeHead(200).write('begun, ');
        await rest.opened;
        response.end('ended');
      },
      env: DEADLINE,
    });
    const [response] = (await once(httpRequest(url, { agent: false }).end(), 'response')) as [IncomingMessage];
    await clock.advance(60_000);
    rest.open();
    expect((await response.toArray()).join('')).toBe('begun, ended');
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['ok']);
  });
});

describe('what the upstream needs of the deadline', () => {
  /** Twenty-five calls get their responses after this time, later ones as `respond` does. */
  async function startAfter(latencyMs: number, env: Record<string, string>, respond: RespondTo) {
    const clock = new ManualClock();
    const first = createLatch();
    const started = await startInProcess({
      clock,
      respond: async (request, response, index) => {
        if (index >= 25) return respond(request, response, index);
        await first.opened;
        await echo(request, response, index);
      },
      env: { ...env, SIDECAR_BURST: '25' },
    });
    const calls = Promise.all(Array.from({ length: 25 }, () => send(`${started.url}/policies`)));
    await until(() => started.eventsOf('permit-granted').length === 25, 'the first calls in flight');
    await clock.advance(latencyMs);
    first.open();
    await calls;
    return { ...started, clock };
  }

  it('is kept by a request that waits: it is refused at once when the rest is too short', async () => {
    const { url, api, eventsOf } = await startAfter(900, { SIDECAR_RATE: '0.5' }, echo);
    const headers = { 'x-sidecar-timeout-ms': '1500' };
    const refused = await send(`${url}/policies`, { headers });
    expect(refused).toMatchObject({ status: 503, code: 'QUEUE_TIMEOUT', fields: { 'retry-after': '2' } });
    expect(refused.text).toContain(`with 0.8 s kept for the upstream's response`);
    expect(api.requests).toHaveLength(25);
    expect(eventsOf('queue-rejected')).toMatchObject([{ reason: 'expected_wait' }]);
  });

  it('is not kept of a request that need not wait', async () => {
    const { url, clock } = await startAfter(900, { SIDECAR_RATE: '0.5' }, echo);
    await clock.advance(1200);
    const headers = { 'x-sidecar-timeout-ms': '100' };
    expect((await send(`${url}/policies`, { headers })).status).toBe(200);
  });

  it('is kept before a repetition: a response goes to the client at once when the next one would come too late', async () => {
    const { url, api, eventsOf } = await startAfter(400, { SIDECAR_RATE: '1000' }, (_request, response) => {
      response.writeHead(502, { 'retry-after': '1' }).end();
    });
    const headers = { 'x-sidecar-timeout-ms': '1200' };
    expect(await send(`${url}/policies`, { headers })).toMatchObject({ status: 502, code: undefined });
    expect(eventsOf('retry')).toEqual([]);
    expect(api.requests).toHaveLength(26);
  });
});

describe('x-sidecar-timeout-ms', () => {
  const never = () => undefined;

  it.each([
    ['shortens the deadline', '700', 700, '700 ms: x-sidecar-timeout-ms of the request'],
    ['cannot lengthen it', '999999', 5000, '5000 ms: request.deadlineMs (SIDECAR_DEADLINE_MS)'],
  ])('%s, and the reply names it', async (_, wish, endsAfterMs, limit) => {
    const clock = new ManualClock();
    const { url, eventsOf, requestRecords } = await startInProcess({ clock, respond: never, env: DEADLINE });
    const call = send(url, { headers: { 'x-sidecar-timeout-ms': wish } });
    await until(() => eventsOf('permit-granted').length === 1, 'the call in flight');
    await clock.advance(endsAfterMs - 1);
    expect(eventsOf('request-ended')).toEqual([]);
    await clock.advance(1);
    const { code, text } = await call;
    expect(code).toBe('UPSTREAM_TIMEOUT');
    expect(text).toContain(`the deadline passed (${limit}) before the upstream responded`);
    expect(await requestRecords(1)).toMatchObject([{ durationMs: endsAfterMs }]);
  });

  it.each(['0', '-1', '1.5', 'soon', ''])('of %j is refused', async (wish) => {
    const { url, api } = await startInProcess({ respond: never });
    expect(await send(url, { headers: { 'x-sidecar-timeout-ms': wish } })).toMatchObject({ code: 'BAD_REQUEST' });
    expect(api.requests).toHaveLength(0);
  });

  it('stays here', async () => {
    const { url, api } = await startInProcess();
    await send(url, { headers: { 'x-sidecar-timeout-ms': '1000', 'X-Sidecar-Anything': 'x' } });
    expect(Object.keys(api.requests[0]!.headers).filter((name) => name.startsWith('x-sidecar'))).toEqual([]);
  });
});

describe('a client that stops sending within its body', () => {
  it.each([
    ['read whole', '1000', 0],
    ['streamed', '1', 1],
  ])('gets 408 after upstream.bodyIdleTimeoutMs: %s', async (_, replayBufferBytes, attempts) => {
    const clock = new ManualClock();
    const { url, api, eventsOf, requestRecords, throttle } = await startInProcess({
      clock,
      env: { SIDECAR_BODY_IDLE_TIMEOUT_MS: '1000', SIDECAR_REPLAY_BUFFER_BYTES: replayBufferBytes },
    });
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
    if (attempts === 0) await untilQueued(throttle);
    else await until(() => eventsOf('permit-granted').length === 1, 'the call in flight');
    await until(() => clock.pendingTimers >= 3, 'the watch');
    await clock.advance(600);
    socket.write('more');
    // What was sent before on another connection has been read by the time of this response.
    await send(url, { headers: { host: 'elsewhere.example' } });
    await clock.advance(999);
    expect(eventsOf('request-ended').filter(({ method }) => method === 'POST')).toEqual([]);
    await clock.advance(1);
    const response = await reading;
    expect(response.status).toBe(408);
    expect(JSON.parse(response.body.toString())).toMatchObject({
      code: 'REQUEST_TIMEOUT',
      detail: expect.stringContaining('upstream.bodyIdleTimeoutMs (SIDECAR_BODY_IDLE_TIMEOUT_MS)') as string,
    });
    expect(await requestRecords(2)).toMatchObject([{ code: 403 }, { code: 408, attempts, requestBytes: 8 }]);
    expect(api.requests).toHaveLength(0);
    expect(await throttle()).toEqual(IDLE);
  });

  it('while the upstream does not read is not to blame', async () => {
    const clock = new ManualClock();
    const upstream = await startRawUpstream((socket) => socket.pause());
    const { url, eventsOf } = await startInProcess({
      clock,
      apiUrl: upstream.url,
      env: { SIDECAR_BODY_IDLE_TIMEOUT_MS: '1000' },
    });
    const piece = Buffer.alloc(100_000);
    let taken = 0;
    const body = Readable.from(
      (function* () {
        for (; taken < 20_000_000; taken += piece.length) yield piece;
      })(),
    );
    const headers = { 'content-length': '20000000' };
    const call = send(url, { method: 'POST', headers, body });
    await until(() => upstream.sockets.length === 1, 'the upstream called');
    // Until the buffers of all sockets are full.
    expect(await waitUntilStable(() => taken)).toBeLessThan(20_000_000);
    await clock.advance(10_000);
    expect(eventsOf('request-ended')).toEqual([]);
    await clock.advance(50_000);
    expect(await call).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT' });
  });
});

describe('an upstream', () => {
  it('that takes longer than upstream.requestTimeoutMs is given up, and a POST as a GET not asked again', async () => {
    const clock = new ManualClock();
    const { url, eventsOf } = await startInProcess({
      clock,
      respond: () => undefined,
      env: { SIDECAR_REQUEST_TIMEOUT_MS: '1000' },
    });
    const call = send(url);
    await until(() => eventsOf('permit-granted').length === 1, 'the call in flight');
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(1000);
    await until(() => eventsOf('attempt-ended').length === 1, 'the end of the attempt');
    const limit = '1000 ms: upstream.requestTimeoutMs (SIDECAR_REQUEST_TIMEOUT_MS), or requestTimeoutMs of the route';
    const text: unknown = expect.stringContaining(`the upstream did not respond within ${limit}`);
    expect(await call).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT', text });
    expect(eventsOf('attempt-ended')).toHaveLength(1);
  });

  it('that falls silent within its body is cut off after upstream.bodyIdleTimeoutMs', async () => {
    const clock = new ManualClock();
    const { url, eventsOf, requestRecords } = await startInProcess({
      clock,
      respond: (_request, response) => void response.writeHead(200).write('half'),
      env: { SIDECAR_BODY_IDLE_TIMEOUT_MS: '1000' },
    });
    const failure = expect((await fetch(url)).text()).rejects.toThrow();
    await until(() => clock.pendingTimers > 0, 'the watch');
    await clock.advance(2000);
    await failure;
    expect(await requestRecords(1)).toMatchObject([
      { code: 200, source: 'upstream', cutBy: 'upstream', fault: expect.any(String) as string },
    ]);
    expect(eventsOf('attempt-ended')).toMatchObject([{ outcome: 'cut', isOwn: false }]);
  });
});

function untilQueued(throttle: () => Promise<{ queued: number }>): Promise<void> {
  return until(async () => (await throttle()).queued > 0, 'a request queued');
}
