/** An attempt's outcome for everything that an upstream can do wrong, held and relayed; time-outs in virtual time. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { HELD_RESPONSE_MAX_BYTES } from '../../src/upstream/response-receiver.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { waitUntilStable } from '../support/until.ts';
import { afterHead, openUpstream, SeenResponse, send, soFar, startWireServer, until } from './wire.ts';
import type { SendOptions } from './wire.ts';

const KEPT = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** The outcome of one request to which the server responds with these bytes, and then as `then` says. */
async function respondedWith(bytes: string, then: 'fin' | 'reset' | 'stay', options: SendOptions = {}) {
  await using server = await startWireServer(
    afterHead(bytes, (socket) => {
      if (then === 'fin') socket.end();
      else if (then === 'reset') socket.resetAndDestroy();
    }),
  );
  await using upstream = openUpstream(server.url);
  const { end, seen, heads } = send(upstream, options);
  return { end: await end, seen, heads };
}

describe('before the response head', () => {
  it.each([
    ['FIN at once', '', 'fin', 'reset'],
    ['RST at once', '', 'reset', 'reset'],
    ['FIN in the status line', 'HTTP/1.1 20', 'fin', 'reset'],
    ['RST in the fields', 'HTTP/1.1 200 OK\r\nContent-Le', 'reset', 'reset'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'stay', 'protocol'],
    ['a status that is none', 'HTTP/1.1 9999 X\r\n\r\n', 'stay', 'protocol'],
    ['a NUL in a field', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n', 'stay', 'protocol'],
    [
      'an upgrade that was not requested',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
      'stay',
      'protocol',
    ],
    ['fields of 1 MB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1_000_000)}\r\n\r\n`, 'stay', 'protocol'],
  ] as const)('%s fails', async (_, bytes, then, kind) => {
    for (const hold of [true, false]) {
      const { end, heads } = await respondedWith(bytes, then, { hold });
      expect(end).toMatchObject({ kind: 'failed', failure: { kind } });
      expect(heads).toEqual([]);
    }
  });
});

describe('within the response body', () => {
  it.each([
    [
      'FIN before its length',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
      'fin',
      /before its response was complete/,
    ],
    [
      'RST before its length',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
      'reset',
      /before its response was complete/,
    ],
    [
      'FIN between chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      'fin',
      /before its response was complete/,
    ],
    [
      'FIN before the last line',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n',
      'fin',
      /before its response was complete/,
    ],
    [
      'a chunk size that is none',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nZZ\r\n',
      'stay',
      /not valid HTTP/,
    ],
    [
      'FIN before the length of a last response',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf',
      'fin',
      /before its response was complete/,
    ],
    [
      'RST before the length of a last response',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf',
      'reset',
      /before its response was complete/,
    ],
    [
      'FIN between the chunks of a last response',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      'fin',
      /before its response was complete/,
    ],
    [
      'RST of a body without a length',
      'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf',
      'reset',
      /before its response was complete/,
    ],
  ] as const)('%s is cut for the client, and known to be a part when held', async (_, bytes, then, fault) => {
    const relayed = await respondedWith(bytes, then);
    expect(relayed.end).toMatchObject({ kind: 'relayed', head: { status: 200 } });
    expect(relayed.end.kind === 'relayed' ? relayed.end.fault?.detail : '').toMatch(fault);
    expect([relayed.seen.state, relayed.seen.body.toString()]).toEqual(['cut', 'half']);

    const held = await respondedWith(bytes, then, { hold: true });
    expect(held.end).toMatchObject({ kind: 'held', head: { status: 200 } });
    expect(held.end.kind === 'held' ? held.end.fault?.detail : '').toMatch(fault);
    expect(held.seen.head).toBeUndefined();
  });

  it.each([
    ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a length and chunks', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'],
  ])('%s contradict each other: no response', async (_, rest) => {
    for (const hold of [true, false]) {
      const { end, seen } = await respondedWith(`HTTP/1.1 200 OK\r\n${rest}`, 'stay', { hold });
      expect([end.kind, seen.state]).toEqual(['failed', 'open']);
    }
  });

  it('a FIN is the proper end where neither length nor chunks were announced', async () => {
    const { end, seen } = await respondedWith('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it', 'fin');
    expect(end).toMatchObject({ kind: 'relayed', fault: undefined });
    expect([seen.state, seen.body.toString()]).toEqual(['ended', 'all of it']);
  });

  it('bytes beyond the length are dropped, and their connection is not used again', async () => {
    await using server = await startWireServer(afterHead(`${KEPT}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`));
    await using upstream = openUpstream(server.url, { maxConnections: 1 });
    const first = send(upstream);
    expect((await first.end).kind).toBe('relayed');
    expect(first.seen.body.toString()).toBe('ok');
    const second = send(upstream);
    expect((await second.end).kind).toBe('relayed');
    expect(second.seen.body.toString()).toBe('ok');
    expect(server.sockets).toHaveLength(2);
  });
});

describe('a head', () => {
  it('after interim responses is the only one that counts', async () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n';
    const { end, heads, seen } = await respondedWith(interim + KEPT, 'stay');
    expect(end).toMatchObject({ kind: 'relayed', head: { status: 200 } });
    expect(heads.map(({ status }) => status)).toEqual([200]);
    expect(seen.body.toString()).toBe('ok');
  });

  it.each([
    ['none', '', ''],
    ['Latin-1', ' Tr\xe8s bien', 'Tr\u00e8s bien'],
    ['UTF-8', ` ${Buffer.from('✓ ok').toString('latin1')}`, '\u00e2\u009c\u0093 ok'],
  ])('may have any reason phrase: %s', async (_, phrase, seenAs) => {
    const { end, seen } = await respondedWith(`HTTP/1.1 200${phrase}\r\nContent-Length: 2\r\n\r\nok`, 'stay');
    expect(end).toMatchObject({ kind: 'relayed', fault: undefined });
    // A phrase that cannot be passed on is dropped: RFC 9112 §4 tells clients to ignore it.
    expect(['', seenAs]).toContain(seen.head?.statusText);
    expect(seen.head?.statusText ?? '').toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
  });

  it('that comes before the request has been sent is the response', async () => {
    await using server = await startWireServer(
      afterHead('HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig'),
    );
    await using upstream = openUpstream(server.url);
    const endless = new Readable({ read: () => undefined });
    endless.push(Buffer.alloc(1000));
    const sent = send(upstream, { method: 'POST', body: endless });
    expect(await sent.end).toMatchObject({ kind: 'relayed', head: { status: 413 }, fault: undefined });
    expect(sent.seen.body.toString()).toBe('big');
    await until(() => endless.destroyed);
  });
});

describe('a held response', () => {
  it('is given whole', async () => {
    const { end, seen } = await respondedWith(KEPT, 'stay', { hold: true });
    expect(end).toMatchObject({ kind: 'held', head: { status: 200 } });
    expect(end.kind === 'held' ? end.body.toString() : '').toBe('ok');
    expect(seen.head).toBeUndefined();
  });

  it.each([0, 1])('of 256 KiB and %i bytes is streamed only when it is larger', async (extra) => {
    const body = 'x'.repeat(HELD_RESPONSE_MAX_BYTES + extra);
    const bytes = `HTTP/1.1 429 Too Many\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`;
    const { end, seen } = await respondedWith(bytes, 'stay', { hold: true });
    expect(end.kind).toBe(extra === 0 ? 'held' : 'relayed');
    const length = end.kind === 'held' ? end.body.length : seen.body.length;
    expect(length).toBe(body.length);
    expect(seen.state).toBe(extra === 0 ? 'open' : 'ended');
  });

  it('that grew too large and then breaks off is cut', async () => {
    const body = 'x'.repeat(HELD_RESPONSE_MAX_BYTES + 1);
    const bytes = `HTTP/1.1 429 Too Many\r\nContent-Length: 9999999\r\n\r\n${body}`;
    const { end, seen } = await respondedWith(bytes, 'fin', { hold: true });
    expect(end).toMatchObject({ kind: 'relayed', head: { status: 429 } });
    expect([seen.state, seen.body.length]).toEqual(['cut', body.length]);
  });
});

describe('time-outs', () => {
  it('fails when the response does not begin in time after the last request byte', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer(() => undefined);
    await using upstream = openUpstream(server.url, { clock });
    const sent = send(upstream, { requestTimeoutMs: 1000 });
    await until(() => clock.pendingTimers === 1);
    await clock.advance(999);
    expect(await soFar(sent.end)).toBe('waiting');
    await clock.advance(1);
    expect(await sent.end).toMatchObject({ kind: 'failed', failure: { kind: 'timeout' } });
    await until(() => server.sockets[0]?.destroyed === true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('does not restart at an interim response', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer(afterHead('HTTP/1.1 103 Early Hints\r\n\r\n'));
    await using upstream = openUpstream(server.url, { clock });
    const sent = send(upstream, { requestTimeoutMs: 1000 });
    await until(() => clock.pendingTimers === 1);
    await clock.advance(1000);
    expect(await sent.end).toMatchObject({ failure: { kind: 'timeout' } });
  });

  it('a body that falls silent is cut', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer(afterHead('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab'));
    await using upstream = openUpstream(server.url, { clock });
    const sent = send(upstream, { bodyIdleTimeoutMs: 1000 });
    await until(() => sent.seen.body.length === 2);
    await clock.advance(900);
    server.sockets[0]?.write('c');
    await until(() => sent.seen.body.length === 3);
    await clock.advance(999);
    expect(await soFar(sent.end)).toBe('waiting');
    await clock.advance(1);
    expect([(await sent.end).kind, sent.seen.state]).toEqual(['relayed', 'cut']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('does not wait for the body of a held response for more than two seconds', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer(afterHead('HTTP/1.1 429 Slow\r\nContent-Length: 9\r\n\r\nab'));
    await using upstream = openUpstream(server.url, { clock });
    const sent = send(upstream, { hold: true, bodyIdleTimeoutMs: 300_000 });
    await until(() => sent.heads.length === 1);
    await clock.advance(1999);
    expect(await soFar(sent.end)).toBe('waiting');
    await clock.advance(1);
    const response = {
      head: { status: 429 },
      body: Buffer.from('ab'),
      fault: { detail: expect.stringMatching(/2000 ms/) as string, cutBy: 'upstream' },
    };
    expect(await sent.end).toMatchObject({ kind: 'held', ...response });
    expect(clock.pendingTimers).toBe(0);
  });

  it('0 sets no limit for a body', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer(afterHead('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab'));
    await using upstream = openUpstream(server.url, { clock });
    const sent = send(upstream);
    await until(() => sent.seen.body.length === 2);
    await clock.advance(1e9);
    server.sockets[0]?.write('cdefghi');
    expect(await sent.end).toMatchObject({ kind: 'relayed', fault: undefined });
    expect(sent.seen.body.toString()).toBe('abcdefghi');
  });
});

describe('backpressure', () => {
  it('stops reading while the client takes nothing, and goes on from there', async () => {
    const body = 'x'.repeat(8_000_000);
    await using server = await startWireServer(
      afterHead(`HTTP/1.1 200 OK\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`),
    );
    await using upstream = openUpstream(server.url);
    const seen = new SeenResponse();
    seen.takesMore = false;
    const sent = send(upstream, { seen });
    await until(() => seen.resume !== undefined);
    expect(await waitUntilStable(() => seen.body.length)).toBeLessThan(1_000_000);
    seen.takesMore = true;
    seen.resume?.();
    expect((await sent.end).kind).toBe('relayed');
    expect(seen.body.length).toBe(body.length);
  });
});
