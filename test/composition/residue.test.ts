/** After each kind of outcome, a request leaves exactly one recorded outcome, and no timer, listener, slot or memory. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sendRaw } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { heldBytes } from './heap.ts';
import { IDLE, startInProcess, until } from './in-process.ts';
import type { InProcess } from './in-process.ts';
import { send, sendAndLeave } from './send.ts';

/** Every kind of response, by the path that requests it. */
const everyKind: RespondTo = (request, response, index) => {
  switch (request.path) {
    case '/trouble':
      return void response.writeHead(503).end('trouble');
    case '/limited':
      return void response.writeHead(index % 2 === 0 ? 429 : 200).end('limited');
    case '/refused':
      return void response.writeHead(401).end('refused');
    case '/reset':
      return void response.destroy();
    case '/cut':
      return void response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy());
    case '/silent':
      return undefined;
    default:
      return echo(request, response, index);
  }
};

const PATHS = ['/echo', '/trouble', '/limited', '/refused', '/reset', '/cut'];

async function sendEveryKind({ url, api }: InProcess): Promise<number> {
  let count = 0;
  for (const path of PATHS) {
    for (const method of ['GET', 'POST']) {
      count++;
      await send(url + path, { method, ...(method === 'POST' ? { body: 'x' } : {}) }).catch(() => undefined);
    }
  }
  const silent = (): number => api.requests.filter(({ path }) => path === '/silent').length;
  const before = silent();
  const leaver = sendAndLeave(`${url}/silent`);
  await until(() => silent() > before, 'the silent call at the upstream');
  leaver.leave();
  await sendRaw(url, 'GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
  await sendRaw(url, 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');
  return count + 3;
}

describe('invariant 7: every request ends in exactly one outcome, counted once', () => {
  it('in events and in metrics, which agree', async () => {
    const sidecar = await startInProcess({ respond: everyKind });
    const { requestRecords, eventsOf, metric, throttle, api } = sidecar;
    const count = await sendEveryKind(sidecar);
    const ended = await requestRecords(count);
    expect(ended).toHaveLength(count);
    // Each attempt is one permit, one end, and the first or a retry of its request.
    const attempts = eventsOf('attempt-ended').length;
    expect(eventsOf('permit-granted')).toHaveLength(attempts);
    expect(ended.reduce((sum, each) => sum + each.attempts, 0)).toBe(attempts);
    expect(ended.filter((each) => each.attempts > 0).length + eventsOf('retry').length).toBe(attempts);
    expect(api.requests.length).toBeLessThanOrEqual(attempts);
    expect(eventsOf('local-reply')).toHaveLength(ended.filter(({ localReply }) => localReply !== undefined).length);
    expect(await sumOf(sidecar, 'bearer_sidecar_requests_total')).toBe(count);
    expect(await sumOf(sidecar, 'bearer_sidecar_upstream_attempts_total')).toBe(attempts);
    expect(await sumOf(sidecar, 'bearer_sidecar_retries_total')).toBe(eventsOf('retry').length);
    expect(await metric('bearer_sidecar_in_flight{route="default"}')).toBe(0);
    expect(eventsOf('warning')).toEqual([]);
    expect(await throttle()).toEqual(IDLE);
  });

  it('and leaves no timer behind except that of the token refresh', async () => {
    const clock = new ManualClock();
    const sidecar = await startInProcess({ clock, respond: everyKind });
    const { requestRecords, eventsOf } = sidecar;
    let done = 0;
    const all = sendEveryKind(sidecar).then((count) => (done = count));
    while (done === 0) {
      await clock.advance(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await requestRecords(await all);
    await until(() => clock.pendingTimers === 1, 'one timer');
    expect(eventsOf('token-requested').length).toBeGreaterThan(0);
  });

  it('and leaves no listener on a kept connection', async () => {
    const { url, requestRecords } = await startInProcess();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    const see = (message: unknown): void => {
      const { socket } = message as { socket: Socket };
      if (socket.localPort === Number(new URL(url).port)) sockets.add(socket);
    };
    subscribe('http.server.request.start', see);
    const counts: number[] = [];
    for (let times = 0; times < 30; times++) {
      await callKept(agent, url);
      await requestRecords(times + 1);
      const [socket] = sockets;
      counts.push(socket!.eventNames().reduce((sum, name) => sum + socket!.listenerCount(name), 0));
    }
    unsubscribe('http.server.request.start', see);
    expect(sockets.size).toBe(1);
    expect(new Set(counts.slice(1)).size).toBe(1);
    agent.destroy();
  });
});

describe('invariant 8: memory is bounded', () => {
  it('10 000 sequential requests do not grow the heap', async () => {
    let calls = 0;
    // One that keeps nothing itself.
    const forgetful = createServer((request, response) => {
      request.resume().once('end', () => response.writeHead(++calls % 50 === 0 ? 429 : 200).end('ok'));
    });
    const apiUrl = await listenOnLoopback(forgetful);
    const { url } = await startInProcess({ apiUrl, keepsEvents: false });
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const callOften = async (times: number): Promise<void> => {
      for (let index = 0; index < times; index++) await callKept(agent, url);
    };
    const round = (times: number): Promise<unknown> =>
      Promise.all(
        Array(4)
          .fill(times / 4)
          .map(callOften),
      );
    await round(2000);
    const before = await heldBytes();
    await round(10_000);
    // A leak of 100 bytes a request would show.
    expect((await heldBytes()) - before).toBeLessThan(1_000_000);
    agent.destroy();
    await closeServer(forgetful);
  });
});

async function callKept(agent: Agent, url: string): Promise<void> {
  const call = httpRequest(url, { agent, method: 'POST' });
  call.end('x'.repeat(500));
  const [reply] = (await once(call, 'response')) as [IncomingMessage];
  await reply.toArray();
}

/** All samples of a metric added up. */
async function sumOf({ sidecar }: InProcess, name: string): Promise<number> {
  const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
