/** Requests as bytes on the wire: framing of every method and kind of body, fields and paths as they came. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { afterHead, openUpstream, send, startWireServer, until } from './wire.ts';
import type { SendOptions } from './wire.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'PROPFIND', 'PURGE', 'M-SEARCH'];
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** What reaches the server of one request. */
async function onTheWire(request: SendOptions, isWhole: (bytes: string) => boolean): Promise<string> {
  await using server = await startWireServer((socket, received) => {
    if (isWhole(received)) socket.end(OK);
  });
  await using upstream = openUpstream(server.url);
  expect((await send(upstream, request).end).kind).toBe('relayed');
  return server.received[0] ?? '';
}

function framingOf(bytes: string): string[] {
  return (bytes.match(/^(?:content-length|transfer-encoding): .*$/gim) ?? []).map((line) => line.toLowerCase().trim());
}

const hasHead = (bytes: string): boolean => bytes.includes('\r\n\r\n');

describe.each(METHODS)('%s', (method) => {
  it('without a body has no framing, or says 0 where a body is expected', async () => {
    const bytes = await onTheWire({ method }, hasHead);
    const expectsBody = ['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND'].includes(method);
    expect(framingOf(bytes)).toEqual(expectsBody ? ['content-length: 0'] : []);
    expect(bytes.endsWith('\r\n\r\n')).toBe(true);
  });

  it('with a buffer has its length', async () => {
    const bytes = await onTheWire({ method, body: Buffer.from('grüße') }, (text) => text.includes('\r\n\r\ngr'));
    expect(framingOf(bytes)).toEqual(['content-length: 7']);
    expect(Buffer.from(bytes.split('\r\n\r\n')[1] ?? '', 'latin1').toString()).toBe('grüße');
  });

  it('with a stream of known length has that length', async () => {
    const body = Readable.from([Buffer.from('ab'), Buffer.from('cde')]);
    const bytes = await onTheWire({ method, body, contentLength: 5 }, (text) => text.endsWith('cde'));
    expect(framingOf(bytes)).toEqual(['content-length: 5']);
    expect(bytes.endsWith('\r\n\r\nabcde')).toBe(true);
  });

  it('with a stream of unknown length is chunked', async () => {
    const body = Readable.from([Buffer.from('ab'), Buffer.from('cde')]);
    const bytes = await onTheWire({ method, body }, (text) => text.endsWith('0\r\n\r\n'));
    expect(framingOf(bytes)).toEqual(['transfer-encoding: chunked']);
    expect(bytes.endsWith('\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n')).toBe(true);
  });
});

it('writes the path, the fields and their bytes as they were given, and the upstream’s Host', async () => {
  const fields = [
    'X-Case',
    'a',
    'x-case',
    'b',
    'Cookie',
    'a=1',
    'X-Latin',
    'caf\u00e9 \u00ff',
    'Authorization',
    'Bearer t',
  ];
  const path = "/v1//a%2F;p=(1)?q=a'b|c{d}&x=%zz&e=\u00e9";
  const bytes = await onTheWire({ path, headers: fields }, hasHead);
  const [requestLine, ...lines] = bytes.split('\r\n');
  expect(requestLine).toBe(`GET ${path} HTTP/1.1`);
  expect(lines.filter((line) => /^(?:x-|cookie|authorization)/i.test(line))).toEqual([
    'X-Case: a',
    'x-case: b',
    'Cookie: a=1',
    'X-Latin: caf\u00e9 \u00ff',
    'Authorization: Bearer t',
  ]);
  expect(bytes.match(/^host: 127\.0\.0\.1:\d+$/gim)).toHaveLength(1);
  expect(bytes).not.toMatch(/^(?:via|x-forwarded|expect|te|user-agent|accept)/im);
});

it('a stream that ends short of its length is a failure, and the upstream sees no whole request', async () => {
  await using server = await startWireServer(() => undefined);
  await using upstream = openUpstream(server.url);
  const body = Readable.from([Buffer.from('ab')]);
  const sent = send(upstream, { method: 'POST', body, contentLength: 5 });
  expect((await sent.end).kind).toBe('failed');
  await until(() => server.sockets[0]?.destroyed !== false);
  expect(server.received.join('')).not.toMatch(/ab.{3}/s);
});

it('keeps a connection for the next request', async () => {
  await using server = await startWireServer((socket, received) => {
    if (received.endsWith('\r\n\r\n')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
  });
  await using upstream = openUpstream(server.url, { maxConnections: 1 });
  for (const path of ['/a', '/b', '/c']) expect((await send(upstream, { path }).end).kind).toBe('relayed');
  expect(server.sockets).toHaveLength(1);
  expect(server.received[0]?.match(/^GET .*$/gm)?.map((line) => line.split(' ')[1])).toEqual(['/a', '/b', '/c']);
});

it('keeps the order, case, repetition and bytes of response headers', async () => {
  const head = 'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-Latin: caf\xe9\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n';
  await using server = await startWireServer(afterHead(head));
  await using upstream = openUpstream(server.url);
  const sent = send(upstream);
  await sent.end;
  expect(sent.seen.head).toMatchObject({ status: 200, statusText: 'OK' });
  const expected = ['Set-Cookie', 'a=1', 'X-Latin', 'caf\u00e9', 'set-cookie', 'b=2', 'Content-Length', '0'];
  expect(sent.seen.head?.headers).toEqual(expected);
});
