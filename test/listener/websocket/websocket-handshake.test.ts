/** The opening handshake (RFC 6455 §4): which requests are sent upstream, and which responses accept them. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSocket, sendRaw } from '../../support/raw-client.ts';
import { waitUntil } from '../../support/until.ts';
import { startProxy } from '../proxy.ts';
import { KEY, startRawUpstream, startUpgrading, SWITCHING, upgradeRequest } from './raw-upgrades.ts';

const ACCEPT_LINE = /Sec-WebSocket-Accept: [^\r]*\r\n/;

describe('a 101 that does not accept the WebSocket', () => {
  it.each([
    ['another protocol', SWITCHING.replace('Upgrade: websocket', 'Upgrade: evil')],
    ['several protocols', SWITCHING.replace('Upgrade: websocket', 'Upgrade: websocket, evil')],
    ['no protocol', SWITCHING.replace('Upgrade: websocket\r\n', '')],
    ['no Connection: upgrade', SWITCHING.replace('Connection: Upgrade\r\n', '')],
    ['another Connection', SWITCHING.replace('Connection: Upgrade', 'Connection: keep-alive')],
    ['no Sec-WebSocket-Accept', SWITCHING.replace(ACCEPT_LINE, '')],
    [
      'the accept value of another key',
      SWITCHING.replace(ACCEPT_LINE, `Sec-WebSocket-Accept: ${acceptFor('other')}\r\n`),
    ],
    ['the key itself', SWITCHING.replace(ACCEPT_LINE, `Sec-WebSocket-Accept: ${KEY}\r\n`)],
    ['two accept values', SWITCHING.replace(ACCEPT_LINE, (line) => line + line)],
    ['a subprotocol that was not offered', SWITCHING.replace('\r\n\r\n', '\r\nSec-WebSocket-Protocol: chat\r\n\r\n')],
    [
      'an extension that was not offered',
      SWITCHING.replace('\r\n\r\n', '\r\nSec-WebSocket-Extensions: x-a; b\r\n\r\n'),
    ],
  ])('(%s) is a 502, and both connections end', async (_, response) => {
    await using upstream = await startRawUpstream((socket) => {
      socket.on('end', () => socket.end());
      socket.resume().write(`${response}SECRET`);
    });
    await using proxy = await startUpgrading(upstream.url);
    const reply = await sendRaw(proxy.url, upgradeRequest());
    expect([reply.status, reply.end]).toEqual([502, 'fin']);
    expect(JSON.parse(reply.body.toString())).toMatchObject({ code: 'UPSTREAM_PROTOCOL_ERROR' });
    expect(reply.bytes.toString()).not.toContain('SECRET');
    await waitUntil(() => upstream.open === 0, 'the upstream connection is closed');
    expect(await proxy.requestRecords(1)).toMatchObject([
      { code: 502, localReply: 'UPSTREAM_PROTOCOL_ERROR', attempts: 1 },
    ]);
    expect(proxy.events.filter(({ kind }) => kind === 'attempt-ended')).toHaveLength(1);
    expect(proxy.events.filter(({ kind }) => kind === 'local-reply')).toHaveLength(1);
    expect(proxy.throttle.state()).toMatchObject({ inFlight: 0, streams: 0, queued: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it('is distinguished from a valid one for every case, order and key', async () => {
    let respond = (key: string): string => key;
    await using upstream = await startRawUpstreamWithKey((key) => respond(key));
    await using proxy = await startUpgrading(upstream.url);
    const asKey = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('base64'));
    const asCase = fc.constantFrom('websocket', 'WebSocket', 'WEBSOCKET');
    const asConnection = fc.constantFrom('upgrade', 'Upgrade', 'keep-alive, Upgrade', 'Upgrade , x', ',UPGRADE');
    await fc.assert(
      fc.asyncProperty(asKey, asCase, asConnection, fc.boolean(), async (key, protocol, connection, isRight) => {
        respond = (seen) =>
          `HTTP/1.1 101 x\r\nconnection: ${connection}\r\nSEC-WEBSOCKET-ACCEPT:  ${acceptFor(isRight ? seen : `${seen} `)} \r\n` +
          `Upgrade: ${protocol}\r\n\r\n`;
        const socket = await openSocket(proxy.url);
        socket.write(upgradeRequest('', `Sec-WebSocket-Key: ${key}\r\n`));
        const [data] = (await once(socket, 'data')) as [Buffer];
        expect(data.toString().split(' ')[1]).toBe(isRight ? '101' : '502');
        socket.destroy();
      }),
      { numRuns: 60 },
    );
    await waitUntil(() => proxy.throttle.state().streams === 0, 'all slots are free');
  });

  it('is valid with a subprotocol and an extension that were offered', async () => {
    const chosen =
      'Sec-WebSocket-Protocol: b\r\nSec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n';
    await using upstream = await startRawUpstream((socket) =>
      socket.write(SWITCHING.replace('\r\n\r\n', `\r\n${chosen}\r\n`)),
    );
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    socket.write(
      upgradeRequest(
        'Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Extensions: x, permessage-deflate; client_max_window_bits\r\n',
      ),
    );
    const [data] = (await once(socket, 'data')) as [Buffer];
    expect(data.toString()).toMatch(/^HTTP\/1\.1 101 /);
    socket.destroy();
    await proxy.requestRecords(1);
  });
});

describe('an upgrade that is not sent upstream', () => {
  const BODIES = [
    ['a finished body', 'Content-Length: 2\r\n', 'hi'],
    ['an unfinished body', 'Content-Length: 200\r\n', 'hi'],
    ['a large body', 'Content-Length: 300000\r\n', 'x'.repeat(300_000)],
    ['a finished chunked body', 'Transfer-Encoding: chunked\r\n', '2\r\nhi\r\n0\r\n\r\n'],
    ['an unfinished chunked body', 'Transfer-Encoding: chunked\r\n', '2\r\nhi\r\n'],
    ['an empty chunked body', 'Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
    ['a broken chunked body', 'Transfer-Encoding: chunked\r\n', '2\r\nhi\r\nzz\r\n'],
    ['a body behind Expect', 'Content-Length: 2\r\nExpect: 100-continue\r\n', ''],
  ] as const;

  it.each(BODIES)('has %s: 400, counted once', async (_, lines, body) => {
    await using upstream = await startRawUpstream((socket) => socket.write(SWITCHING));
    await using proxy = await startUpgrading(upstream.url);
    for (const isSplit of [false, true]) {
      const socket = await openSocket(proxy.url);
      const seen: Buffer[] = [];
      // What is still being sent when the connection closes resets it: the reply was here before.
      socket.on('error', () => socket.destroy());
      const ended = once(socket, 'end');
      socket.on('data', (bytes: Buffer) => seen.push(bytes));
      socket.write(isSplit ? upgradeRequest(lines) : upgradeRequest(lines) + body);
      if (isSplit) {
        await waitUntil(() => seen.length > 0, 'the reply is here');
        if (body !== '') socket.write(body);
      }
      await ended;
      expect(Buffer.concat(seen).toString()).toMatch(
        /^HTTP\/1\.1 400 .*"code":"BAD_REQUEST","requestId":"[^"]+"\}\n$/s,
      );
      socket.destroy();
    }
    expect(await proxy.requestRecords(2)).toMatchObject([{ localReply: 'BAD_REQUEST' }, { localReply: 'BAD_REQUEST' }]);
    await waitUntil(() => proxy.server.activeRequests.count === 0, 'nothing is under way');
    expect(proxy.events.filter(({ kind }) => kind === 'request-ended')).toHaveLength(2);
    expect(proxy.events.filter(({ kind }) => kind === 'warning')).toEqual([]);
    expect(upstream.sockets).toEqual([]);
  });

  it.each([
    ['no key', ''],
    ['an empty key', 'Sec-WebSocket-Key:\r\n'],
    ['a key of 15 bytes', `Sec-WebSocket-Key: ${randomBytes(15).toString('base64')}\r\n`],
    ['a key of 17 bytes', `Sec-WebSocket-Key: ${randomBytes(17).toString('base64')}\r\n`],
    ['a key that is not base64', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ!==\r\n'],
    ['two keys', `Sec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Key: ${KEY}\r\n`],
  ])('has %s: 400', async (_, key) => {
    await using upstream = await startRawUpstream((socket) => socket.write(SWITCHING));
    await using proxy = await startUpgrading(upstream.url);
    expect(await sendRaw(proxy.url, upgradeRequest('', key))).toMatchObject({ status: 400, end: 'fin' });
    expect(await proxy.requestRecords(1)).toMatchObject([{ localReply: 'BAD_REQUEST' }]);
    expect(upstream.sockets).toEqual([]);
  });

  it('has a body while WebSockets are off: 403, which names the setting', async () => {
    await using upstream = await startRawUpstream((socket) => socket.write(SWITCHING));
    await using proxy = await startProxy(upstream.url);
    const reply = await sendRaw(proxy.url, `${upgradeRequest('Content-Length: 200\r\n')}hi`);
    expect([reply.status, reply.end]).toEqual([403, 'fin']);
    expect(reply.body.toString()).toContain('SIDECAR_WEBSOCKET');
    expect(await proxy.requestRecords(1)).toMatchObject([{ localReply: 'UPGRADE_NOT_ALLOWED' }]);
  });
});

it('another version of the protocol is refused by the upstream', async () => {
  await using upstream = await startRawUpstream((socket) =>
    socket.end('HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n'),
  );
  await using proxy = await startUpgrading(upstream.url);
  const reply = await sendRaw(proxy.url, upgradeRequest().replace('Version: 13', 'Version: 12'));
  expect(reply).toMatchObject({ status: 426, headers: { 'sec-websocket-version': '13' } });
});

it('an upgrade with Content-Length: 0 is served', async () => {
  await using upstream = await startRawUpstream((socket) => socket.write(SWITCHING));
  await using proxy = await startUpgrading(upstream.url);
  const socket = await openSocket(proxy.url);
  socket.write(upgradeRequest('Content-Length: 0\r\n'));
  const [data] = (await once(socket, 'data')) as [Buffer];
  expect(data.toString()).toMatch(/^HTTP\/1\.1 101 /);
  socket.destroy();
  await proxy.requestRecords(1);
});

function acceptFor(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** Responds by the key that reached it. */
function startRawUpstreamWithKey(respond: (key: string) => string): ReturnType<typeof startRawUpstream> {
  return startRawUpstream((socket, _early, head) => {
    socket.on('end', () => socket.end());
    socket.resume().write(respond(/sec-websocket-key: *([^\r]*)/i.exec(head)?.[1] ?? ''));
  });
}

describe('the headers of the response', () => {
  const HEADERS =
    'Set-Cookie: sid=\xe9; Secure; Domain=127.0.0.1; Path=/v1\r\nX-Hop: 1\r\nConnection: X-Hop\r\nset-cookie: b=2\r\n' +
    'Location: /v1/feed/2\r\n';
  const REWRITTEN = ['set-cookie: sid=\xe9; Path=/', 'set-cookie: b=2', 'location: /feed/2'];

  it.each([
    ['a 101', SWITCHING.replace('\r\n\r\n', `\r\n${HEADERS}\r\n`), ['connection: Upgrade', 'upgrade: websocket']],
    ['a refusal', `HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n${HEADERS}\r\n`, ['connection: close']],
  ])(
    '%s: those that the client can use, without the connection-specific ones of the upstream',
    async (_, response, own) => {
      await using upstream = await startRawUpstream((socket) => void socket.resume().write(response, 'latin1'));
      await using proxy = await startUpgrading(`${upstream.url}/v1`, { cookieRoot: '' });
      const socket = await openSocket(proxy.url);
      socket.write(upgradeRequest());
      const [data] = (await once(socket, 'data')) as [Buffer];
      const [, ...lines] = data.toString('latin1').split('\r\n\r\n', 1)[0]?.split('\r\n') ?? [];
      expect(lines.filter((line) => !/^(?:content-length|sec-websocket-accept): /.test(line)).toSorted()).toEqual(
        [...REWRITTEN, ...own].toSorted(),
      );
      socket.destroy();
    },
  );
});
