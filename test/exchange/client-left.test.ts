/** A client that leaves, in every stage: its place, slot, timer and upstream call are free at once, and it is recorded once. */
import { describe, expect, it } from 'vitest';
import { createLatch, giveToken, IDLE, startInProcess, until } from '../composition/in-process.ts';
import type { InProcess } from '../composition/in-process.ts';
import { send, sendAndLeave } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';

async function expectLeft({ requestRecords, throttle, eventsOf }: InProcess, attempts: number): Promise<void> {
  const ended = await requestRecords(1);
  expect(ended).toHaveLength(1);
  expect(ended[0]).toMatchObject({ code: 499, source: 'sidecar', attempts });
  expect(eventsOf('local-reply')).toEqual([]);
  expect(eventsOf('warning')).toEqual([]);
  expect(await throttle()).toEqual(IDLE);
}

describe('a client that leaves (invariant 7: its wait, its backoff and its upstream call end, a shared token request never)', () => {
  it('in the wait for a token leaves the shared token request to the others', async () => {
    const token = createLatch();
    const sidecar = await startInProcess({
      respondToTokenRequest: async (request, response, index) => {
        await token.opened;
        await giveToken(request, response, index);
      },
    });
    const { url, api, tokens, eventsOf } = sidecar;
    const leaver = sendAndLeave(`${url}/leaver`);
    const stayer = send(`${url}/stayer`);
    await until(() => tokens.requests.length === 1, 'the token request');
    // A third call on the way proves that the first two are inside.
    leaver.leave();
    await until(() => eventsOf('request-ended').length === 1, 'the client that left is recorded');
    token.open();
    expect((await stayer).status).toBe(200);
    expect(api.requests.map(({ path }) => path)).toEqual(['/stayer']);
    expect(tokens.requests).toHaveLength(1);
    expect(eventsOf('request-ended')[0]).toMatchObject({ code: 499, path: '/leaver', attempts: 0 });
  });

  it('in the queue frees its place, and no permit is spent on it', async () => {
    const first = createLatch();
    const sidecar = await startInProcess({
      respond: async (...call) => {
        await first.opened;
        await echo(...call);
      },
      env: { SIDECAR_MAX_IN_FLIGHT: '1' },
    });
    const { url, api, eventsOf, throttle } = sidecar;
    const inFlight = send(`${url}/first`);
    await until(() => eventsOf('permit-granted').length === 1, 'the first in flight');
    const leaver = sendAndLeave(`${url}/leaver`);
    await until(async () => (await throttle()).queued > 0, 'a request queued');
    leaver.leave();
    await until(() => eventsOf('request-ended').length === 1, 'the client that left is recorded');
    expect(await throttle()).toEqual({ queued: 0, inFlight: 1, streams: 0 });
    expect(eventsOf('queue-rejected')).toEqual([{ kind: 'queue-rejected', route: 'default', reason: 'client_left' }]);
    first.open();
    await inFlight;
    expect(eventsOf('permit-granted')).toHaveLength(1);
    expect(api.requests.map(({ path }) => path)).toEqual(['/first']);
  });

  it('in the queue with its body half sent is recorded as gone from there', async () => {
    const sidecar = await startInProcess({ env: { SIDECAR_RATE: '0.1' } });
    const { url, eventsOf, throttle } = sidecar;
    expect((await send(url)).status).toBe(200);
    const socket = await openSocket(url);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
    await until(async () => (await throttle()).queued > 0, 'a request queued');
    socket.destroy();
    await until(() => eventsOf('request-ended').length === 2, 'the client that left is recorded');
    expect(eventsOf('queue-rejected')).toEqual([{ kind: 'queue-rejected', route: 'default', reason: 'client_left' }]);
  });

  it('within its body leaves nothing for the upstream', async () => {
    const sidecar = await startInProcess();
    const { url, api, throttle } = sidecar;
    const socket = await openSocket(url);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
    await until(async () => (await throttle()).queued > 0, 'a request queued');
    socket.resetAndDestroy();
    await expectLeft(sidecar, 0);
    expect(api.requests).toHaveLength(0);
  });

  it('within a body that streams takes the upstream call with it', async () => {
    const sidecar = await startInProcess({ env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' } });
    const { url, api, eventsOf } = sidecar;
    let cut = 0;
    api.server.on('connection', (socket) => socket.once('close', () => cut++));
    const socket = await openSocket(url);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
    await until(() => eventsOf('permit-granted').length === 1, 'the call in flight');
    socket.resetAndDestroy();
    await expectLeft(sidecar, 1);
    await until(() => cut === 1, 'the upstream connection closed');
    expect(api.requests).toHaveLength(0);
  });

  it.each(['GET', 'POST'])('during the attempt of a %s ends that, and it is not repeated', async (method) => {
    let left = 0;
    const sidecar = await startInProcess({ respond: (_, response) => void response.once('close', () => left++) });
    const { url, api, eventsOf } = sidecar;
    const leaver = sendAndLeave(url, { method });
    await until(() => api.requests.length === 1, 'the call at the upstream');
    leaver.leave();
    await expectLeft(sidecar, 1);
    await until(() => left === 1, 'the upstream left as well');
    expect(eventsOf('attempt-ended')).toMatchObject([{ outcome: 'client_left', isOwn: true }]);
    expect(api.requests).toHaveLength(1);
  });

  it('by half-closing its connection has left as well', async () => {
    const sidecar = await startInProcess({ respond: () => undefined });
    const socket = await openSocket(sidecar.url);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => sidecar.api.requests.length === 1, 'the call at the upstream');
    socket.end();
    await expectLeft(sidecar, 1);
  });

  it('during the backoff ends that', async () => {
    const clock = new ManualClock();
    const sidecar = await startInProcess({
      clock,
      respond: (_, response) => void response.writeHead(503, { 'retry-after': '5' }).end(),
    });
    const { url, api, eventsOf } = sidecar;
    const leaver = sendAndLeave(url);
    await until(() => eventsOf('attempt-ended').length === 1, 'the first attempt');
    await clock.advance(1000);
    leaver.leave();
    await expectLeft(sidecar, 1);
    // What is left is the token's refresh.
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(10_000);
    expect(api.requests).toHaveLength(1);
    expect(eventsOf('retry')).toEqual([]);
  });

  it('in the queue with a 429 in hand is not given that', async () => {
    const clock = new ManualClock();
    const sidecar = await startInProcess({
      clock,
      respond: (_, response) => void response.writeHead(429, { 'retry-after': '5' }).end('later'),
    });
    const { url, eventsOf } = sidecar;
    const leaver = sendAndLeave(url);
    await until(() => eventsOf('rate-limited').length === 1, 'the pause');
    leaver.leave();
    await expectLeft(sidecar, 1);
    expect(eventsOf('queue-rejected').map(({ reason }) => reason)).toEqual(['client_left']);
  });

  it('within its response closes the upstream connection', async () => {
    let left = 0;
    const sidecar = await startInProcess({
      respond: (_, response) => {
        response.once('close', () => left++);
        response.writeHead(200, { 'content-length': 1000 }).write('half');
      },
    });
    const { url, throttle, eventsOf } = sidecar;
    const socket = await openSocket(url);
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    expect(await throttle()).toEqual({ queued: 0, inFlight: 1, streams: 0 });
    socket.destroy();
    await expectLeft(sidecar, 1);
    await until(() => left === 1, 'the upstream connection closed');
    expect(eventsOf('request-ended')[0]).toMatchObject({ responseBytes: 4 });
  });
});
