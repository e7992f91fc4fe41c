/**
 * How the connection of a client ends when its response breaks off: with a reset, in every version of HTTP and for every framing, once the
 * client has had time to read what came before. A FIN would make the body whole for many HTTP stacks (RFC 9112 §8).
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { IDLE, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, SEES_RESET_BEHIND_DATA, sendRaw } from '../support/raw-client.ts';
import { waitUntilStable } from '../support/until.ts';

const QUIET_MS = 200;
const LONGEST_MS = 2000;
const MIB = 1024 * 1024;

/** What the client of these tests may see of a reset that it reads together with data. */
const RESET_BEHIND_DATA: unknown = SEES_RESET_BEHIND_DATA ? 'reset' : expect.stringMatching(/^(?:fin|reset)$/);

/** Where a reset behind data is taken for the end of the connection, it makes a response whole that has neither length nor chunks. */
const FRAMINGS = SEES_RESET_BEHIND_DATA ? (['length', 'chunked', 'close'] as const) : (['length', 'chunked'] as const);

const request = (path = '/', version = '1.1', method = 'GET'): string =>
  `${method} ${path} HTTP/${version}\r\nHost: localhost\r\n\r\n`;
const head = (field: string): string => `HTTP/1.1 200 OK\r\n${field}\r\n`;
const [WITH_LENGTH, CHUNKED, UNTIL_CLOSE] = [
  (bytes: number) => head(`Content-Length: ${String(bytes)}\r\n`),
  head('Transfer-Encoding: chunked\r\n'),
  head('Connection: close\r\n'),
] as const;
const chunk = (bytes: Buffer | string): string => `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`;

/** The upstream sends `bytes` for each request, and breaks off when `break` is called. */
async function startBreaking(bytes: string | Buffer | ((path: string) => string | Buffer), env = {}) {
  const clock = new ManualClock();
  const upstream = await startRawUpstream((socket, _, received) => {
    const path = received.split(' ')[1] ?? '';
    socket.write(typeof bytes === 'function' ? bytes(path) : bytes, 'latin1');
  });
  const sidecar = await startInProcess({ apiUrl: upstream.url, clock, env });
  // Its connection has timers of its own.
  await until(() => sidecar.eventsOf('token-requested').length > 0, 'the token');
  const breakOff = (): void => upstream.sockets.forEach((socket) => void socket.resetAndDestroy());
  return { ...sidecar, upstream, clock, breakOff };
}

type Breaking = Awaited<ReturnType<typeof startBreaking>>;

interface Client {
  readonly socket: Socket;
  /** Everything received so far. */
  text(): string;
  /** How the connection has ended; undefined while it is open. */
  end(): 'fin' | 'reset' | undefined;
}

async function openClient(url: string, bytes: string): Promise<Client> {
  const socket = await openSocket(url);
  onTestFinished(() => void socket.destroy());
  return watch(socket, bytes);
}

function watch(socket: Socket, bytes: string): Client {
  const received: Buffer[] = [];
  let ended: 'fin' | 'reset' | undefined;
  socket.on('data', (part: Buffer) => received.push(part));
  socket.once('end', () => (ended ??= 'fin')).once('error', () => (ended ??= 'reset'));
  socket.once('close', () => (ended ??= 'reset'));
  socket.write(bytes);
  return { socket, text: () => Buffer.concat(received).toString('latin1'), end: () => ended };
}

/** Breaks the response off once the client has its beginning; the sidecar's timers have not run yet. */
async function breakOffBehind({ breakOff, requestRecords }: Breaking, client: Client, received: string) {
  await until(() => client.text().includes(received), 'the client has the beginning');
  breakOff();
  const [record] = await requestRecords(1);
  return record;
}

describe('a response that breaks off', () => {
  const BEHIND = [
    ['its head, with a length', WITH_LENGTH(100), '\r\n\r\n'],
    ['its head, with chunks', CHUNKED, '\r\n\r\n'],
    ['its head, until the connection ends', UNTIL_CLOSE, '\r\n\r\n'],
    ['a part, with a length', `${WITH_LENGTH(100)}part`, 'part'],
    ['a chunk', `${CHUNKED}${chunk('part')}`, 'part'],
    ['a part, until the connection ends', `${UNTIL_CLOSE}part`, 'part'],
    ['all but its last byte', `${WITH_LENGTH(5)}part`, 'part'],
    ['all but its final chunk', `${CHUNKED}${chunk('part')}0\r\n`, 'part'],
  ] as const;
  const CLIENTS = ['1.1', '1.0'].flatMap((version) => BEHIND.map((behind) => [version, ...behind] as const));

  it.each(CLIENTS)(
    'to a client of HTTP/%s, behind %s: ends with a reset after 200 ms, recorded and freed at the break',
    async (version, _, bytes, received) => {
      const started = await startBreaking(bytes);
      const { url, clock, eventsOf, throttle } = started;
      const client = await openClient(url, request('/', version));
      const record = await breakOffBehind(started, client, received);
      expect(record).toMatchObject({ code: 200, source: 'upstream', cutBy: 'upstream' });
      expect(await throttle()).toEqual(IDLE);
      await clock.advance(QUIET_MS - 1);
      expect(client.end()).toBeUndefined();
      await clock.advance(1);
      await until(() => client.end() !== undefined, 'the connection has ended');
      expect(client.end()).toBe('reset');
      expect(client.text()).not.toMatch(/\r\n0\r\n\r\n$/);
      expect(eventsOf('request-ended')).toHaveLength(1);
      expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['cut']);
    },
  );

  it('in its middle has given its client every byte that came, however the upstream wrote it', async () => {
    const scene = fc.record({
      parts: fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 8 }),
      framing: fc.constantFrom(...FRAMINGS),
      version: fc.constantFrom('1.1', '1.0' as const),
      /** 503: held for a retry, and sent when there is none. */
      status: fc.constantFrom('200', '503'),
      isPaced: fc.boolean(),
    });
    let made: (typeof scene extends fc.Arbitrary<infer T> ? T : never) | undefined;
    const upstream = await startRawUpstream((socket) => {
      if (made !== undefined) void respond(socket, made);
    });
    const respond = async (socket: Socket, { parts, framing, status, isPaced }: NonNullable<typeof made>) => {
      const field = { length: 'Content-Length: 9999999\r\n', chunked: 'Transfer-Encoding: chunked\r\n', close: '' };
      socket.write(`HTTP/1.1 ${status} X\r\nConnection: close\r\n${field[framing]}\r\n`);
      for (const bytes of parts) {
        const part = Buffer.alloc(bytes, 'x');
        socket.write(framing === 'chunked' ? chunk(part) : part);
        if (isPaced) await new Promise(setImmediate);
      }
      // A FIN, which a response until the end of its connection takes for its end.
      if (framing === 'close') socket.write('', () => setTimeout(() => socket.resetAndDestroy(), 20));
      else socket.end();
    };
    const { url } = await startInProcess({ apiUrl: upstream.url, env: { SIDECAR_RETRY_ATTEMPTS: '1' } });
    await fc.assert(
      fc.asyncProperty(scene, async (drawn) => {
        made = drawn;
        const { status, end, bytes } = await sendRaw(url, request('/', drawn.version));
        // A break in the turn of the head is a reply of the sidecar's own.
        if (status === 502) return;
        expect([status, end]).toEqual([Number(drawn.status), RESET_BEHIND_DATA]);
        const sent = drawn.parts.reduce((sum, part) => sum + part, 0);
        expect(bytes.toString('latin1').split('\r\n\r\n').slice(1).join('').replaceAll(/[^x]/g, '')).toHaveLength(sent);
      }),
      { numRuns: 15 },
    );
  });

  it('because the sidecar was idle for too long ends with a reset', async () => {
    const started = await startBreaking(`${UNTIL_CLOSE}part`, { SIDECAR_BODY_IDLE_TIMEOUT_MS: '5000' });
    const client = await openClient(started.url, request());
    await until(() => client.text().includes('part'), 'the beginning has come');
    await started.clock.advance(5000);
    await started.requestRecords(1);
    expect(client.end()).toBeUndefined();
    await started.clock.advance(QUIET_MS);
    await until(() => client.end() !== undefined, 'the connection has ended');
    expect(client.end()).toBe('reset');
  });

  it('to a client that takes nothing ends with a reset after 2 s, and leaves no timer and no connection', async () => {
    const started = await startBreaking(`${UNTIL_CLOSE}${'x'.repeat(12 * MIB)}`);
    const { url, clock, breakOff, requestRecords, throttle, listener } = started;
    const timers = clock.pendingTimers;
    const socket = await openSocket(url);
    onTestFinished(() => void socket.destroy());
    socket.pause();
    socket.on('error', () => undefined);
    socket.write(request());
    await waitUntilStable(() => started.upstream.sockets[0]?.writableLength ?? 0);
    breakOff();
    // The sidecar does not read on, and so does not see the break, while its client takes nothing.
    await clock.advance(300_000);
    await requestRecords(1);
    expect(await throttle()).toEqual(IDLE);
    expect((await listener()).connections).toBe(1);
    await clock.advance(LONGEST_MS - 1);
    expect((await listener()).connections).toBe(1);
    await clock.advance(1);
    await until(async () => (await listener()).connections === 0, 'the connection has ended');
    expect(clock.pendingTimers).toBe(timers);
    const { end } = await readToEnd(socket.resume());
    expect(end).toEqual(RESET_BEHIND_DATA);
  });

  it('does not wait for a client that leaves, by FIN or by RST', async () => {
    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const started = await startBreaking(`${CHUNKED}${chunk('part')}`);
      const timers = started.clock.pendingTimers;
      const client = await openClient(started.url, request());
      client.socket.allowHalfOpen = true;
      const record = await breakOffBehind(started, client, 'part');
      expect(record).toMatchObject({ code: 200, cutBy: 'upstream' });
      client.socket[leave]();
      await until(async () => (await started.listener()).connections === 0, 'the connection is gone');
      expect(client.end()).toBe('reset');
      expect(started.clock.pendingTimers).toBe(timers);
      expect(started.eventsOf('request-ended')).toHaveLength(1);
    }
  });

  it('carries out no request that follows on its connection, sent before the break or after it', async () => {
    const started = await startBreaking((path) => (path === '/first' ? `${CHUNKED}${chunk('part')}` : ''));
    const { url, clock, upstream, eventsOf, requestRecords } = started;
    const client = await openClient(url, request('/first') + request('/second'));
    await until(() => upstream.received.length === 2, 'both are at the upstream');
    await until(() => client.text().includes('part'), 'the client has the beginning');
    upstream.sockets.find((_, at) => upstream.received[at]?.startsWith('GET /first'))?.resetAndDestroy();
    await requestRecords(1);
    await until(() => upstream.sockets.every(({ destroyed }) => destroyed), 'the second call has been cancelled');
    for (let at = 0; at < 5; at++) client.socket.write(request(`/late-${String(at)}`));
    await clock.advance(QUIET_MS - 1);
    expect(client.end()).toBeUndefined();
    await clock.advance(1);
    await until(() => client.end() !== undefined, 'the connection has ended');
    expect(client.end()).toBe('reset');
    expect(client.text()).not.toMatch(/HTTP\/1\.1.*HTTP\/1\.1/s);
    const records = await requestRecords(2);
    expect(records.map(({ code }) => code)).toEqual([200, 499]);
    expect(upstream.received.join('')).not.toContain('late');
    expect(eventsOf('request-ended')).toHaveLength(2);
  });

  it('does not take invalid input behind it for a reason to write into its body', async () => {
    for (const isLate of [false, true]) {
      const started = await startBreaking(`${UNTIL_CLOSE}part`);
      const client = await openClient(started.url, request('/', '1.0') + (isLate ? '' : 'NO HTTP\r\n\r\n'));
      await breakOffBehind(started, client, 'part');
      if (isLate) client.socket.write('NO HTTP\r\n\r\n');
      await started.clock.advance(QUIET_MS);
      await until(() => client.end() !== undefined, 'the connection has ended');
      expect([client.end(), client.text().split('\r\n\r\n')[1]]).toEqual(['reset', 'part']);
    }
  });

  it('reads no more than a part of what a client sends that only writes', async () => {
    const upload = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n${'x'.repeat(1000)}`;
    for (const sent of [request(), upload]) {
      const started = await startBreaking(`${UNTIL_CLOSE}part`);
      const client = await openClient(started.url, sent);
      const socket = client.socket;
      await breakOffBehind(started, client, 'part');
      let takenBytes = 0;
      const flood = Buffer.alloc(64 * 1024, 'GET / HTTP/1.1\r\n\r\n');
      for (let at = 0; at < 1024; at++) socket.write(flood, (error) => (takenBytes += error ? 0 : flood.length));
      // The kernel's buffers hold a part of it.
      expect(await waitUntilStable(() => takenBytes)).toBeLessThan(24 * MIB);
      await started.clock.advance(LONGEST_MS);
      await until(() => client.end() !== undefined, 'the connection has ended');
      expect(client.end()).toBe('reset');
    }
  });
});

describe('pipelined responses', () => {
  const FIRST = `${WITH_LENGTH(3 * MIB)}${'f'.repeat(3 * MIB)}`;

  it('that are whole reach a client within 2 s, before the reset of the one that breaks off behind them', async () => {
    const started = await startBreaking((path) => (path === '/first' ? FIRST : `${UNTIL_CLOSE}part`));
    const { url, clock, upstream, requestRecords } = started;
    const socket = await openSocket(url);
    onTestFinished(() => void socket.destroy());
    socket.pause();
    socket.write(request('/first') + request('/second'));
    await until(() => upstream.received.length === 2, 'both are at the upstream');
    await waitUntilStable(() => socket.bytesRead);
    upstream.sockets.find((_, at) => upstream.received[at]?.startsWith('GET /second'))?.resetAndDestroy();
    await requestRecords(1);
    await clock.advance(LONGEST_MS - 1);
    const reading = readToEnd(socket.resume());
    await waitUntilStable(() => socket.bytesRead);
    await clock.advance(LONGEST_MS);
    const { bytes, end } = await reading;
    expect(end).toBe('reset');
    const [, first = '', second = ''] = bytes.toString('latin1').split(/HTTP\/1\.1 200 OK\r\n/);
    expect(first.split('\r\n\r\n')[1]).toHaveLength(3 * MIB);
    expect(second).toContain('part');
  });

  it('may be unread for 2 s once they have been written', async () => {
    const started = await startBreaking((path) =>
      path === '/first' ? `${WITH_LENGTH(5)}first` : `${UNTIL_CLOSE}part`,
    );
    const { clock, url } = started;
    const client = await openClient(url, request('/first') + request('/second'));
    await until(() => client.text().includes('part'), 'both have come');
    started.breakOff();
    await started.requestRecords(2);
    await clock.advance(LONGEST_MS - 1);
    expect(client.end()).toBeUndefined();
    await clock.advance(1);
    await until(() => client.end() !== undefined, 'the connection has ended');
    expect(client.end()).toBe('reset');
  });
});

describe('a held response that the upstream broke off', () => {
  it.each(['1.1', '1.0'])('reaches a client of HTTP/%s as far as it came, and ends with a reset', async (version) => {
    const body = 'x'.repeat(100_000);
    const upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 503 Busy\r\nContent-Length: 200000\r\n\r\n${body}`);
    });
    const clock = new ManualClock();
    const { url, requestRecords } = await startInProcess({
      apiUrl: upstream.url,
      clock,
      env: { SIDECAR_RETRY_ATTEMPTS: '1' },
    });
    const client = await openClient(url, request('/', version));
    const [record] = await requestRecords(1);
    expect(record).toMatchObject({ code: 503, source: 'upstream', cutBy: 'upstream' });
    await until(() => client.text().endsWith(body), 'all that was held has come');
    await clock.advance(QUIET_MS);
    await until(() => client.end() !== undefined, 'the connection has ended');
    expect(client.end()).toBe('reset');
  });
});

describe('the drain', () => {
  it('ends a response that it cuts with a reset, also for a client that takes nothing', async () => {
    for (const isReading of [true, false]) {
      const upstream = await startRawUpstream((socket) => {
        socket.write(UNTIL_CLOSE + (isReading ? 'part' : 'x'.repeat(12 * MIB)));
      });
      const { url, sidecar, requestRecords } = await startInProcess({
        apiUrl: upstream.url,
        env: { SIDECAR_DRAIN_MS: '2000' },
      });
      const socket = await openSocket(url);
      socket.pause();
      socket.on('error', () => undefined).write(request());
      await until(() => upstream.received.length === 1, 'the call is at the upstream');
      await waitUntilStable(() => upstream.sockets[0]?.writableLength ?? 0);
      const earlyReading = isReading ? readToEnd(socket.resume()) : undefined;
      const startedAt = performance.now();
      expect(await sidecar.drain()).toBe(1);
      expect(performance.now() - startedAt).toBeLessThan(2500);
      expect(await requestRecords(1)).toMatchObject([{ code: 200, cutBy: 'sidecar' }]);
      expect((await (earlyReading ?? readToEnd(socket.resume()))).end).toEqual(RESET_BEHIND_DATA);
    }
  });

  it('waits for a response that has just broken off, and does not count it as cut by the drain', async () => {
    const upstream = await startRawUpstream((socket) => void socket.write(`${UNTIL_CLOSE}part`));
    const { url, sidecar, requestRecords } = await startInProcess({
      apiUrl: upstream.url,
      env: { SIDECAR_DRAIN_MS: '5000' },
    });
    const socket = await openSocket(url);
    const reading = readToEnd(socket);
    socket.write(request());
    await once(socket, 'data');
    upstream.sockets[0]?.resetAndDestroy();
    await requestRecords(1);
    const startedAt = performance.now();
    expect(await sidecar.drain()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(LONGEST_MS + 500);
    expect((await reading).end).toBe('reset');
  });
});

it('five responses that break off at once each reach their client at its own pace, and leave nothing behind', async () => {
  const started = await startBreaking(`${UNTIL_CLOSE}${'x'.repeat(100_000)}`);
  const { url, clock, breakOff, requestRecords, listener } = started;
  const timers = clock.pendingTimers;
  const sockets = await Promise.all(Array.from({ length: 5 }, () => openSocket(url)));
  // More than the client's stream reads ahead: the rest, and the reset behind it, stay in the kernel.
  for (const socket of sockets) socket.pause().write(request('/', '1.0'));
  await until(() => started.upstream.received.length === 5, 'all are at the upstream');
  await waitUntilStable(() => started.upstream.sockets.reduce((sum, { writableLength }) => sum + writableLength, 0));
  const readings: ReturnType<typeof readToEnd>[] = [];
  const startReading = (): void => {
    const socket = sockets[readings.length];
    if (socket !== undefined) readings.push(readToEnd(socket.resume()));
  };
  startReading();
  breakOff();
  await requestRecords(5);
  startReading();
  await clock.advance(QUIET_MS - 1);
  startReading();
  await clock.advance(1);
  await until(async () => (await listener()).connections === 0, 'all connections have ended');
  startReading();
  await clock.advance(LONGEST_MS);
  startReading();
  const responses = await Promise.all(readings);
  expect(responses.map(({ body, end }) => [body.length, end])).toEqual(
    responses.map(() => [100_000, RESET_BEHIND_DATA]),
  );
  expect([responses.length, clock.pendingTimers]).toEqual([5, timers]);
});

it('on a unix: listener the connection of a response that breaks off ends, since such a socket has no reset', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'broken-off-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'sidecar.sock');
  const upstream = await startRawUpstream((socket) => {
    socket.write(`${WITH_LENGTH(100)}part`, () => setTimeout(() => socket.resetAndDestroy(), 20));
  });
  const { requestRecords } = await startInProcess({ apiUrl: upstream.url, env: { SIDECAR_LISTEN: `unix:${path}` } });
  for (const [at, version] of ['1.1', '1.0'].entries()) {
    const socket = connect(path);
    const reading = readToEnd(socket);
    socket.write(request('/', version));
    const { status, body, end } = await reading;
    expect([status, body.toString(), end]).toEqual([200, 'part', 'fin']);
    expect((await requestRecords(at + 1))[at]).toMatchObject({ code: 200, cutBy: 'upstream' });
  }
});
