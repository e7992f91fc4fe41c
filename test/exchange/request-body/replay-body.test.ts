/** What is kept of a body for another attempt, and what is not: bounded for one request and for all together. */
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { heldBytes } from '../../composition/heap.ts';
import { createLatch, giveToken, IDLE, startInProcess, until } from '../../composition/in-process.ts';
import { send, sendAndLeave } from '../../composition/send.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../../support/raw-client.ts';
import { echo } from '../../support/recording-upstream.ts';
import type { RespondTo } from '../../support/recording-upstream.ts';

const refusingFirst =
  (status: number): RespondTo =>
  (request, response, index) => {
    if (index > 0) return echo(request, response, index);
    response.writeHead(status).end('refused');
  };

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** A body of unknown length, in pieces. */
const chunked = (bytes: Buffer, pieceBytes: number): Readable =>
  Readable.from(
    (function* () {
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
    })(),
  );

describe('a body', () => {
  const env = { SIDECAR_REPLAY_BUFFER_BYTES: '1000' };

  it.each([
    ['with a Content-Length', (bytes: Buffer) => bytes],
    ['chunked', (bytes: Buffer) => chunked(bytes, 100)],
  ])('of just replayBufferBytes, %s, is sent again byte for byte', async (_, form) => {
    const bytes = randomBytes(1000);
    const { url, api } = await startInProcess({ respond: refusingFirst(429), env });
    expect((await send(url, { method: 'POST', body: form(bytes) })).status).toBe(200);
    expect(api.requests.map(({ bodySha256 }) => bodySha256)).toEqual([sha256(bytes), sha256(bytes)]);
    expect(api.requests.map(({ headers }) => headers['content-length'])).toEqual(['1000', '1000']);
  });

  it.each([
    [429, 'with a Content-Length', (bytes: Buffer) => bytes],
    [401, 'with a Content-Length', (bytes: Buffer) => bytes],
    [429, 'chunked', (bytes: Buffer) => chunked(bytes, 100)],
    [401, 'chunked', (bytes: Buffer) => chunked(bytes, 100)],
  ])('of one byte more streams once: its %i, %s, goes to the client', async (status, _, form) => {
    const bytes = randomBytes(1001);
    const { url, api } = await startInProcess({ respond: refusingFirst(status), env });
    expect(await send(url, { method: 'PUT', body: form(bytes) })).toMatchObject({ status, text: 'refused' });
    expect(api.requests).toHaveLength(1);
    expect(api.requests[0]).toMatchObject({ bodySha256: sha256(bytes) });
  });

  it('of several megabytes arrives byte for byte', async () => {
    const bytes = randomBytes(5_000_001);
    const { url, api, requestRecords } = await startInProcess();
    await send(url, { method: 'POST', body: bytes });
    await send(url, { method: 'POST', body: chunked(bytes, 7001) });
    expect(api.requests.map(({ bodySha256 }) => bodySha256)).toEqual([sha256(bytes), sha256(bytes)]);
    expect((await requestRecords(2)).map(({ requestBytes }) => requestBytes)).toEqual([bytes.length, bytes.length]);
  });

  it('that ends in the very piece that is one too many is streamed to its end', async () => {
    const { url, api } = await startInProcess({ env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' } });
    const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    const response = await sendRaw(url, `${head}8\r\n12345678\r\n3\r\n9ab\r\n0\r\n\r\n`);
    expect(response.status).toBe(200);
    expect(api.requests.map(({ body }) => body.toString())).toEqual(['123456789ab']);
  });

  it('that breaks off before it is whole never reaches the upstream', async () => {
    const { url, api, eventsOf } = await startInProcess();
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nnot a size\r\n');
    expect((await reading).status).toBe(400);
    await until(() => eventsOf('request-ended').length === 1, 'its end');
    expect(api.requests).toHaveLength(0);
    expect(eventsOf('permit-granted')).toEqual([]);
  });

  it.each([
    ['while it is read', 0, {}],
    ['while it waits for its turn', 1, { SIDECAR_RATE: '0.1', SIDECAR_BURST: '1', SIDECAR_MAX_IN_FLIGHT: '1' }],
  ])('whose framing breaks %s is refused for that, and has not left the queue', async (_, before, slow) => {
    const { url, eventsOf, throttle, metric, requestRecords } = await startInProcess({ env: slow });
    await send(url);
    const others = Array.from({ length: before }, () => sendAndLeave(url));
    const isQueued = (count: number) =>
      until(async () => (await throttle()).queued === count, `${String(count)} queued`);
    await isQueued(before);
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write('POST /broken HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n');
    await isQueued(before + 1);
    socket.write('not a size\r\n');
    expect((await reading).status).toBe(400);
    expect((await requestRecords(2))[1]).toMatchObject({ path: '/broken', code: 400, localReply: 'BAD_REQUEST' });
    expect(await throttle()).toEqual({ ...IDLE, queued: before });
    expect(eventsOf('queue-rejected')).toEqual([]);
    expect(await metric('bearer_sidecar_queue_rejected_total{route="default",reason="client_left"}')).toBe(0);
    for (const other of others) other.leave();
  });

  it('in chunks of one byte costs memory of the order of its length', async () => {
    const release = createLatch();
    const { url, eventsOf } = await startInProcess({
      respond: async (_request, response) => {
        await release.opened;
        response.end();
      },
    });
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    const before = await heldBytes();
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
    const hundredThousand = Buffer.from('1\r\nx\r\n'.repeat(100_000));
    for (let sent = 0; sent < 4; sent++) await new Promise((resolve) => socket.write(hundredThousand, resolve));
    socket.write('0\r\n\r\n');
    await until(() => eventsOf('permit-granted').length === 1, 'the body whole');
    expect((await heldBytes()) - before).toBeLessThan(8 * 1024 * 1024);
    release.open();
    expect((await reading).status).toBe(200);
  });
});

it('a refused body is not kept for as long as its connection is idle', async () => {
  const env = { SIDECAR_MAX_IN_FLIGHT: '1', SIDECAR_QUEUE_TIMEOUT_MS: '1000' };
  const clock = new ManualClock();
  const hold = createLatch();
  const { url, throttle, requestRecords } = await startInProcess({ clock, env, respond: () => hold.opened });
  const isQueued = (count: number) => until(async () => (await throttle()).queued === count, `${String(count)} queued`);
  const holder = sendAndLeave(url);
  await until(async () => (await throttle()).inFlight === 1, 'the only slot taken');
  const reading = await openSocket(url);
  reading.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx');
  await isQueued(1);
  const body = Buffer.alloc(60_000);
  const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(url)));
  const before = await heldBytes();
  for (const socket of sockets) {
    socket.resume().write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${String(body.length)}\r\n\r\n`);
  }
  await isQueued(101);
  for (const socket of sockets) socket.write(body);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  await clock.advance(1000);
  expect((await requestRecords(100)).map(({ localReply }) => localReply)).toContain('QUEUE_TIMEOUT');
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect((await heldBytes()) - before).toBeLessThan(2_000_000);
  holder.leave();
  for (const socket of [reading, ...sockets]) socket.destroy();
});

describe('a body in chunks of one byte', () => {
  it('costs memory of the order of its length while its request waits for a token', async () => {
    const token = createLatch();
    const { url, tokens, api } = await startInProcess({
      respondToTokenRequest: async (...call) => {
        await token.opened;
        await giveToken(...call);
      },
    });
    await until(() => tokens.requests.length === 1, 'the token request');
    const before = await heldBytes();
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunks = Buffer.from('1\r\nx\r\n'.repeat(60_000));
    socket.write(chunks);
    socket.write('0\r\n\r\n');
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    expect((await heldBytes()) - before).toBeLessThan(4 * 1024 * 1024);
    token.open();
    expect((await reading).status).toBe(200);
    expect(api.requests.map(({ bodyBytes }) => bodyBytes)).toEqual([60_000]);
  });
});

it('a chunked body that fits is sent again, however its chunks grow and its request waits', async () => {
  const token = createLatch();
  const { url, tokens, api, throttle } = await startInProcess({
    respondToTokenRequest: async (...call) => {
      await token.opened;
      await giveToken(...call);
    },
    respond: refusingFirst(429),
    env: { SIDECAR_REPLAY_BUFFER_BYTES: '1000' },
  });
  await until(() => tokens.requests.length === 1, 'the token request');
  const socket = await openSocket(url);
  const reading = readToEnd(socket);
  const write = async (text: string): Promise<void> => {
    socket.write(text);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  };
  await write('POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n');
  // 650 bytes are here when the token comes, in memory for 1200.
  for (const length of [300, 250, 100]) await write(`${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`);
  token.open();
  await until(async () => (await throttle()).queued === 1, 'its body being read');
  await write('1\r\ny\r\n0\r\n\r\n');
  expect((await reading).status).toBe(200);
  expect(api.requests.map(({ bodyBytes }) => bodyBytes)).toEqual([651, 651]);
});

describe('all replay buffers together', () => {
  it('are bounded: past the total a body streams once, and is replayable again when memory has come back', async () => {
    const hold = createLatch();
    const { url, api } = await startInProcess({
      respond: async (request, response, index) => {
        if (request.path === '/holder') await hold.opened;
        if (request.path !== '/holder' && index === 1) return void response.writeHead(429).end('refused');
        await echo(request, response, index);
      },
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '1000', SIDECAR_REPLAY_TOTAL_BYTES: '1500' },
    });
    const holder = send(`${url}/holder`, { method: 'POST', body: randomBytes(1000) });
    await until(() => api.requests.length === 1, 'the holder at the upstream');
    const streamed = await send(`${url}/streamed`, { method: 'POST', body: randomBytes(501) });
    expect(streamed).toMatchObject({ status: 429, text: 'refused' });
    hold.open();
    await holder;
    expect((await send(`${url}/whole`, { method: 'POST', body: randomBytes(1000) })).status).toBe(200);
  });

  it('its memory is given back when the response begins', async () => {
    const hold = createLatch();
    const { url } = await startInProcess({
      respond: async (request, response, index) => {
        if (request.path === '/whole') {
          if (index === 1) response.writeHead(429).end('refused');
          else await echo(request, response, index);
          return;
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
        await hold.opened;
        response.end();
      },
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '1000', SIDECAR_REPLAY_TOTAL_BYTES: '1000' },
    });
    const stream = await fetch(`${url}/stream`, { method: 'POST', body: randomBytes(1000) });
    expect((await send(`${url}/whole`, { method: 'POST', body: randomBytes(1000) })).status).toBe(200);
    hold.open();
    expect(await stream.text()).toBe('data: 1\n\n');
  });

  it('invariant 8: memory is given back by every outcome, so that the last of hundreds of requests is as replayable as the first', async () => {
    const kinds = ['/ok', '/refused', '/reset', '/left', '/trouble'];
    const refusedOnce = new Set<string>();
    const { url, api, eventsOf } = await startInProcess({
      respond: (request, response, index) => {
        const path = new URL(request.path, 'http://x').pathname;
        if (path === '/reset') return void response.destroy();
        if (path === '/left') return undefined;
        if (path === '/trouble') return void response.writeHead(503).end('x'.repeat(500));
        if (path === '/refused' && !refusedOnce.has(request.path)) {
          refusedOnce.add(request.path);
          return void response.writeHead(429).end('x'.repeat(500));
        }
        return echo(request, response, index);
      },
      // Room for one at a time.
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '1000', SIDECAR_REPLAY_TOTAL_BYTES: '1000' },
    });
    const body = randomBytes(500);
    for (let round = 0; round < 300; round++) {
      const kind = kinds[round % kinds.length]!;
      const aborter = new AbortController();
      const call = send(`${url}${kind}?${String(round)}`, { method: 'POST', body, signal: aborter.signal });
      if (kind === '/left') {
        const path = `${kind}?${String(round)}`;
        await until(() => api.requests.at(-1)?.path === path, 'the call at the upstream');
        aborter.abort();
        await call.catch(() => undefined);
      } else {
        await call;
      }
      await until(() => eventsOf('request-ended').length === round + 1, 'its end');
    }
    const last = `${url}/refused?last`;
    expect((await send(last, { method: 'POST', body: randomBytes(1000) })).status).toBe(200);
  });
});
