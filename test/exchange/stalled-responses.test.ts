/** Clients that do not read their responses keep no one else from being served, and their waits are no latency of the upstream. */
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess, until, type InProcess, type InProcessOptions } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, type RawResponse } from '../support/raw-client.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

/** More than the kernel takes for a client that reads nothing, on both connections together. */
const LARGE_BYTES = 24 * 1024 * 1024;
const PIECE = Buffer.alloc(256 * 1024, 'x');

/** `/large` has a body that no buffer holds; what else is asked for is answered at once. */
const respond: RespondTo = ({ path }, response) => {
  if (!path.startsWith('/large')) {
    response.end('ok');
    return;
  }
  let left = LARGE_BYTES;
  response.writeHead(200, { 'content-length': LARGE_BYTES });
  const writeMore = (): void => {
    while (left > 0) {
      left -= PIECE.length;
      if (!response.write(PIECE)) break;
    }
    if (left <= 0) response.end();
    else response.once('drain', writeMore);
  };
  writeMore();
};

interface StalledState {
  readonly inFlight: number;
  readonly streams: number;
  readonly queued: number;
  readonly stalledResponses: number;
  readonly stalledInFlight: number;
}

interface Shown {
  readonly throttle: StalledState;
}

async function readShown({ sidecar }: InProcess): Promise<Shown> {
  const status: unknown = await (await fetch(`${sidecar.adminUrl}/status`)).json();
  return status as Shown;
}

async function start(clock: ManualClock, env: InProcessOptions['env'] = {}): Promise<InProcess> {
  return startInProcess({ clock, respond, env });
}

/** Connections that ask, and read nothing until `readToEnd`. */
async function openUnread({ url }: InProcess, count: number, requests = 1): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openSocket(url)));
  for (const socket of sockets) {
    socket.pause();
    socket.on('error', () => socket.destroy());
    const isLast = (at: number): boolean => at === requests - 1;
    for (let at = 0; at < requests; at++)
      socket.write(`GET /large HTTP/1.1\r\nHost: localhost\r\n${isLast(at) ? 'Connection: close\r\n' : ''}\r\n`);
  }
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

/** A client reads on, to the end of its connection. */
function readOn(socket: Socket | undefined): Promise<RawResponse> {
  if (socket === undefined) throw new Error('there is no such client');
  socket.resume();
  return readToEnd(socket);
}

/** Until that many clients are seen to have taken nothing for a second. */
async function untilStalled(chain: InProcess, clock: ManualClock, count: number): Promise<void> {
  await until(
    async () => {
      await clock.advance(100);
      return (await readShown(chain)).throttle.stalledResponses === count;
    },
    `${String(count)} stalled responses`,
  );
}

describe('clients that do not read their responses', () => {
  it('as many as places in flight: another request is answered at once, and they get every byte when they read', async () => {
    const clock = new ManualClock();
    const chain = await start(clock);
    const sockets = await openUnread(chain, 64);
    await untilStalled(chain, clock, 64);
    expect((await readShown(chain)).throttle).toMatchObject({ inFlight: 64, streams: 0, stalledInFlight: 64 });
    for (let call = 0; call < 3; call++) expect((await send(`${chain.url}/quick`)).text).toBe('ok');
    expect((await readShown(chain)).throttle).toMatchObject({ inFlight: 63, streams: 1, stalledInFlight: 63 });
    for (const socket of sockets.slice(0, 2)) expect((await readOn(socket)).body.length).toBe(LARGE_BYTES);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await readShown(chain)).throttle.inFlight === 0, 'none in flight');
    expect(await chain.throttle()).toEqual({ queued: 0, inFlight: 0, streams: 0 });
  }, 120_000);

  it('keep their places while no other request waits', async () => {
    const clock = new ManualClock();
    const chain = await start(clock, { SIDECAR_MAX_IN_FLIGHT: '2' });
    await openUnread(chain, 2);
    await untilStalled(chain, clock, 2);
    await clock.advance(200_000);
    expect((await readShown(chain)).throttle).toMatchObject({ inFlight: 2, streams: 0, stalledResponses: 2 });
    expect(chain.eventsOf('response-broken-off')).toEqual([]);
  });

  it('with maxInFlight given: none yields, and after 30 s the one that has stalled longest is broken off', async () => {
    const clock = new ManualClock();
    const chain = await start(clock, { SIDECAR_MAX_IN_FLIGHT: '2' });
    const [oldest] = await openUnread(chain, 1);
    await untilStalled(chain, clock, 1);
    await openUnread(chain, 1);
    await untilStalled(chain, clock, 2);
    const waiting = send(`${chain.url}/quick`);
    await until(async () => (await chain.throttle()).queued === 1, 'a request that waits');
    for (let second = 0; second < 25; second++) await clock.advance(1000);
    expect((await readShown(chain)).throttle).toMatchObject({ queued: 1, inFlight: 2, streams: 0 });
    const headline = 'Clients do not read their responses: 2 of them, with 2 of 2 places in flight';
    expect(await readShown(chain)).toMatchObject({ verdict: { where: 'application', headline } });
    for (let second = 0; second < 6; second++) await clock.advance(1000);
    expect((await waiting).text).toBe('ok');
    const { body } = await readOn(oldest);
    expect(body.length).toBeGreaterThan(0);
    expect(body.length).toBeLessThan(LARGE_BYTES);
    expect(chain.eventsOf('response-broken-off')).toMatchObject([{ route: 'default' }]);
    expect(
      chain
        .eventsOf('attempt-ended')
        .map(({ outcome }) => outcome)
        .toSorted(),
    ).toEqual(['client_left', 'ok']);
    expect((await chain.requestRecords(2)).map(({ code }) => code).toSorted()).toEqual([200, 499]);
    expect(await chain.throttle()).toEqual({ queued: 0, inFlight: 1, streams: 0 });
    expect(await chain.metric('bearer_sidecar_responses_broken_off_total{route="default"}')).toBe(1);
  }, 120_000);

  it('of pipelined requests: also a response that waits behind an unread one gives its place to a request', async () => {
    const clock = new ManualClock();
    const chain = await start(clock, { SIDECAR_RATE: 'auto' });
    await openUnread(chain, 2, 2);
    await untilStalled(chain, clock, 4);
    const calls = Array.from({ length: 12 }, () => send(`${chain.url}/quick`));
    for (const call of calls) expect((await call).text).toBe('ok');
  });

  it('are cut by the drain, which counts them', async () => {
    const clock = new ManualClock();
    const chain = await start(clock, { SIDECAR_DRAIN_MS: '5000' });
    await openUnread(chain, 3);
    await untilStalled(chain, clock, 3);
    const drained = chain.sidecar.drain();
    for (let second = 0; second < 10; second++) await clock.advance(1000);
    expect(await drained).toBe(3);
  });
});

describe('the time that an attempt waits for its client', () => {
  const latency = async (chain: InProcess): Promise<number> =>
    1000 * (await chain.metric('bearer_sidecar_upstream_duration_seconds_sum{route="default",outcome="ok"}'));

  it('is no latency of the upstream: a response that is read late', async () => {
    const clock = new ManualClock();
    const chain = await start(clock);
    const [socket] = await openUnread(chain, 1);
    await untilStalled(chain, clock, 1);
    await clock.advance(60_000);
    expect((await readOn(socket)).body.length).toBe(LARGE_BYTES);
    await chain.requestRecords(1);
    expect(await latency(chain)).toBe(0);
  });

  it.each([
    'Content-Length: 8\r\n\r\nhalf|rest',
    'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n|4\r\nrest\r\n0\r\n\r\n',
    'Transfer-Encoding: chunked\r\n\r\n8\r\nhalfrest\r\n|0\r\n\r\n',
  ])('is no latency of the upstream: an upload that is streamed slowly (%#)', async (parts) => {
    const clock = new ManualClock();
    const { promise: isOpen, resolve: open } = Promise.withResolvers<undefined>();
    const chain = await startInProcess({
      clock,
      respond: async (_request, response) => {
        await isOpen;
        response.end('ok');
      },
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '3' },
    });
    const [begin = '', rest = ''] = parts.split('|');
    const socket = await openSocket(chain.url);
    const response = readToEnd(socket);
    socket.write(`POST /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${begin}`);
    await until(async () => (await chain.throttle()).inFlight === 1, 'the upload in flight');
    await clock.advance(200);
    for (let second = 0; second < 20; second++) await clock.advance(1000);
    expect(await readShown(chain)).not.toMatchObject({ verdict: { where: 'partner' } });
    socket.write(rest);
    await until(() => chain.api.requests.length === 1, 'the whole upload at the upstream');
    await clock.advance(300);
    open(undefined);
    expect((await response).status).toBe(200);
    expect(await latency(chain)).toBeGreaterThanOrEqual(300);
    expect(await latency(chain)).toBeLessThan(1000);
  });
});
