/** The pool: refused requests cost nothing, aborts leave nothing behind, and a broken idle connection is no failure. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { afterHead, openUpstream, send, startWireServer, until } from './wire.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const REFUSED = [
  { headers: ['X-A', 'a\u0000b'] },
  { headers: ['X A', 'b'] },
  { headers: ['Transfer-Encoding', 'chunked'] },
  { headers: ['Expect', '100-continue'] },
  { path: 'no-slash' },
  { path: '/a b' },
  { method: 'G T' },
];

describe('requests that cannot be put into HTTP', () => {
  it.each([1, 3])('cost none of %i connections', async (connections) => {
    await using server = await startWireServer(afterHead(OK));
    await using upstream = openUpstream(server.url, { maxConnections: connections });
    for (const request of REFUSED) {
      for (let times = 0; times <= connections; times++) {
        expect(await send(upstream, request).end).toMatchObject({ kind: 'failed', failure: { kind: 'unsendable' } });
      }
    }
    expect(server.sockets).toHaveLength(0);
    expect(await send(upstream).end).toMatchObject({ kind: 'relayed', fault: undefined });
  });

  it('do not hold up those that wait behind a busy connection', async () => {
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) setTimeout(() => socket.write(OK), 20);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    const ends = [
      send(upstream),
      send(upstream, { path: 'bad' }),
      send(upstream),
      send(upstream, { path: 'bad' }),
      send(upstream),
    ];
    const kinds = (await Promise.all(ends.map(({ end }) => end))).map(({ kind }) => kind);
    expect(kinds).toEqual(['relayed', 'failed', 'relayed', 'failed', 'relayed']);
  });
});

describe('abort', () => {
  it('before the request has a connection: nothing of it is sent, and the next is served', async () => {
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) setTimeout(() => socket.write(OK), 20);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    const first = send(upstream, { path: '/first' });
    const body = new Readable({ read: () => undefined });
    const second = send(upstream, { path: '/second', method: 'POST', body });
    second.attempt.abort();
    second.attempt.abort();
    const third = send(upstream, { path: '/third' });
    expect(await second.end).toMatchObject({ kind: 'failed', failure: { kind: 'aborted' } });
    expect([(await first.end).kind, (await third.end).kind]).toEqual(['relayed', 'relayed']);
    expect(server.received.join('')).not.toContain('/second');
    expect(body.destroyed).toBe(true);
  });

  it('while it waits for another’s connection costs none: those behind it go on the one that comes free', async () => {
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) setTimeout(() => socket.write(OK), 20);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    const first = send(upstream, { path: '/first' });
    await until(() => server.received[0]?.includes('/first') === true);
    const second = send(upstream, { path: '/second' });
    const third = send(upstream, { path: '/third' });
    second.attempt.abort();
    expect([(await first.end).kind, (await third.end).kind]).toEqual(['relayed', 'relayed']);
    expect(server.received).toHaveLength(1);
    expect(server.received[0]).toContain('GET /third');
    expect(server.received[0]).not.toContain('/second');
  });

  it('while it waits for the response: the connection is closed, the next is served', async () => {
    await using server = await startWireServer((socket, _, index) => {
      if (index > 0) socket.write(OK);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    const body = new Readable({ read: () => undefined });
    body.push('half');
    const first = send(upstream, { method: 'POST', body });
    await until(() => server.received[0]?.includes('half') === true);
    first.attempt.abort();
    expect(await first.end).toMatchObject({ kind: 'failed', failure: { kind: 'aborted' } });
    await until(() => server.sockets[0]?.destroyed === true && body.destroyed);
    expect((await send(upstream).end).kind).toBe('relayed');
  });

  it('within the response: the client sees the cut', async () => {
    await using server = await startWireServer(afterHead('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'));
    await using upstream = openUpstream(server.url);
    const sent = send(upstream);
    await until(() => sent.seen.body.length === 4);
    sent.attempt.abort();
    expect((await sent.end).kind).toBe('relayed');
    expect(sent.seen.state).toBe('cut');
    await until(() => server.sockets[0]?.destroyed === true);
  });

  it('after the end changes nothing', async () => {
    await using server = await startWireServer(afterHead(OK));
    await using upstream = openUpstream(server.url);
    const sent = send(upstream);
    const end = await sent.end;
    sent.attempt.abort();
    expect([await sent.end, sent.seen.state]).toEqual([end, 'ended']);
  });
});

describe('an idle connection that the upstream ends', () => {
  it('by FIN is replaced unnoticed', async () => {
    await using server = await startWireServer((socket, received) => {
      if (/\r\n\r\nx?$/.test(received)) socket.write(OK);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    await send(upstream).end;
    server.sockets[0]?.end();
    const sent = send(upstream, { method: 'POST', body: Buffer.from('x') });
    expect(await sent.end).toMatchObject({ kind: 'relayed', fault: undefined });
    expect(server.sockets).toHaveLength(2);
  });

  it('within two seconds, as it has announced, is not used again', async () => {
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) socket.write(OK.replace('\r\n', '\r\nKeep-Alive: timeout=2\r\n'));
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    expect((await send(upstream).end).kind).toBe('relayed');
    expect((await send(upstream).end).kind).toBe('relayed');
    expect(server.sockets).toHaveLength(2);
  });

  it('by RST fails the next request before a byte of it is sent: every method may be tried again', async () => {
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) socket.write(OK);
    });
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    await send(upstream).end;
    server.sockets[0]?.resetAndDestroy();
    const sent = send(upstream, { method: 'POST', body: Buffer.from('x') });
    expect(await sent.end).toMatchObject({ kind: 'failed', failure: { kind: 'unreachable', permanent: false } });
    expect(server.received.join('')).not.toContain('POST');
    expect((await send(upstream).end).kind).toBe('relayed');
  });
});

it('never has more connections than it may', async () => {
  await using server = await startWireServer((socket, received) => {
    if (received.endsWith('\r\n\r\n')) setTimeout(() => socket.write(OK), 5);
  });
  await using upstream = openUpstream(server.url, { maxConnections: 3 });
  const ends = await Promise.all(Array.from({ length: 20 }, () => send(upstream).end));
  expect(ends.every(({ kind }) => kind === 'relayed')).toBe(true);
  expect(server.sockets).toHaveLength(3);
});

it('close ends what is under way, and what comes after it', async () => {
  await using server = await startWireServer(() => undefined);
  await using upstream = openUpstream(server.url);
  const underWay = send(upstream);
  await until(() => server.received[0]?.includes('GET') === true);
  await upstream.close();
  expect((await underWay.end).kind).toBe('failed');
  expect((await send(upstream).end).kind).toBe('failed');
});
