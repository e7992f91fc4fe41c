/**
 * An `Upgrade` that is not a GET for `websocket` alone is ignored: generated requests on one connection, in generated packets, reach the
 * upstream as if they had no such field, and each gets its response.
 */
import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { until } from '../upstream/wire.ts';
import { startProxy } from './proxy.ts';

interface GeneratedRequest {
  readonly method: string;
  readonly upgrade: readonly string[];
  readonly connection: readonly string[];
  readonly framing: 'none' | 'length' | 'chunked';
  readonly body: string;
  readonly chunkSize: number;
}

const UPGRADES: readonly (readonly string[])[] = [
  ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'],
  ['upgrade: TLS/1.0, HTTP/1.1'],
  ['Upgrade: websocket, h2c'],
  ['Upgrade: h2c,websocket'],
  ['Upgrade: websocket', 'Upgrade: h2c'],
  ['Upgrade: websocket', 'UPGRADE: websocket'],
  ['Upgrade: websocket/13'],
  ['Upgrade:'],
  ['Upgrade: '],
  [],
];
const CONNECTIONS: readonly (readonly string[])[] = [
  ['Connection: Upgrade, HTTP2-Settings, X-Hop'],
  ['connection: keep-alive,upgrade , x-hop'],
  ['Connection: X-Hop', 'Connection: UPGRADE'],
  ['Connection: Upgrade, X-Hop', 'Proxy-Connection: keep-alive'],
  ['Connection: X-Hop'],
];

const generatedRequest: fc.Arbitrary<GeneratedRequest> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'),
  upgrade: fc.constantFrom(...UPGRADES),
  connection: fc.constantFrom(...CONNECTIONS),
  framing: fc.constantFrom('none', 'length', 'chunked'),
  // A body that is read as a request would show at the upstream.
  body: fc.oneof(
    fc.constant(''),
    fc.constant('GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'),
    fc.string({ maxLength: 200 }),
  ),
  chunkSize: fc.integer({ min: 1, max: 50 }),
});

function format({ method, upgrade, connection, framing, body, chunkSize }: GeneratedRequest, index: number): string {
  const content = Buffer.from(body).toString('latin1');
  const lines = [`${method} /${String(index)} HTTP/1.1`, 'Host: 127.0.0.1', ...connection, 'X-Hop: 1', ...upgrade];
  if (framing === 'none') return `${lines.join('\r\n')}\r\n\r\n`;
  if (framing === 'length')
    return `${[...lines, `Content-Length: ${String(content.length)}`].join('\r\n')}\r\n\r\n${content}`;
  const chunks = content.match(new RegExp(`[^]{1,${String(chunkSize)}}`, 'g')) ?? [];
  const coded = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  return `${[...lines, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n${coded}0\r\n\r\n`;
}

/** By then the sidecar, which runs in this process, has read what was written before. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise(setImmediate);
}

const LAST = 'GET /last HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n';

it('requests with ignored upgrades reach the upstream whole, once and without the fields', async () => {
  await using upstream = await startRecordingUpstream((request, response) => {
    response.end(`[${request.path} ${request.body.toString('hex')}]`);
  });
  await using proxy = await startProxy(upstream.url);
  await fc.assert(
    fc.asyncProperty(
      fc.array(generatedRequest, { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat({ max: 4000 }), { maxLength: 6 }),
      async (requests, cuts) => {
        const before = upstream.requests.length;
        const bytes = Buffer.from(requests.map(format).join('') + LAST, 'latin1');
        const socket = await openSocket(proxy.url);
        const response = readToEnd(socket);
        const ends = cuts.map((cut) => cut % bytes.length).toSorted((one, other) => one - other);
        for (const [index, end] of [...ends, bytes.length].entries()) {
          socket.write(bytes.subarray(ends[index - 1] ?? 0, end));
          await someTurns();
        }
        const text = (await response).bytes.toString('latin1');
        const expected = requests.map(({ framing, body }, index) => {
          const hex = framing === 'none' ? '' : Buffer.from(body).toString('hex');
          return `[/${String(index)} ${hex}]`;
        });
        expect(text.match(/\[[^\]]*\]/g)).toEqual([...expected, '[/last ]']);
        expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(Array(requests.length + 1).fill('HTTP/1.1 200'));
        expect(text).not.toMatch(/^upgrade:/im);
        const received = upstream.requests.slice(before);
        expect(received).toHaveLength(requests.length + 1);
        for (const { headers } of received)
          for (const name of ['upgrade', 'http2-settings', 'x-hop', 'proxy-connection'])
            expect(headers).not.toHaveProperty(name);
      },
    ),
    { numRuns: 300 },
  );
});

const OFFER = 'Host: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';

describe('an ignored upgrade', () => {
  it('with Expect: 100-continue gets its 100, then its response, and its connection is kept', async () => {
    await using upstream = await startRecordingUpstream((_, response) => void response.end('[done]'));
    await using proxy = await startProxy(upstream.url);
    const socket = await openSocket(proxy.url);
    let seen = '';
    socket.on('data', (bytes) => (seen += bytes.toString('latin1')));
    const body = 'x'.repeat(100_000);
    socket.write(`POST /a HTTP/1.1\r\n${OFFER}Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n`);
    await until(() => seen.startsWith('HTTP/1.1 100 '));
    socket.write(body);
    await until(() => seen.includes('[done]'));
    socket.write(LAST);
    await once(socket, 'close');
    expect(seen.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200', 'HTTP/1.1 200']);
    expect(String(upstream.requests[0]?.body)).toBe(body);
    expect(upstream.requests[0]?.headers).not.toHaveProperty('expect');
  });

  it.each([
    ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['a POST', `POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`],
    ['HEAD', `HEAD /a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`],
  ])('to websocket with %s is served', async (_, bytes) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    expect(await sendRaw(proxy.url, bytes)).toMatchObject({ status: 200, end: 'fin' });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('upgrade');
  });

  it('of a request that the guard refuses is refused for that reason', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const reply = await sendRaw(
      proxy.url,
      `GET / HTTP/1.1\r\n${OFFER.replace('127.0.0.1', 'evil.example')}\r\n`.replace('Upgrade,', 'Upgrade, close,'),
    );
    expect(reply.status).toBe(403);
    expect(reply.body.toString()).toContain('HOST_NOT_ALLOWED');
    expect(upstream.requests).toEqual([]);
  });

  it.each([
    [
      'an upgrade to websocket',
      'GET /feed HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      403,
    ],
    ['a CONNECT', 'CONNECT partner.example:443 HTTP/1.1\r\nHost: partner.example:443\r\n\r\n', 405],
    ['invalid bytes', '\x01nonsense\r\n\r\n', 400],
    ['an invalid field', 'GET /bad HTTP/1.1\r\na b: c\r\n\r\n', 400],
  ])('and the requests behind it get their responses before the refusal of %s', async (_, last, status) => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url);
    const bytes = `GET /a HTTP/1.1\r\n${OFFER}\r\nPOST /b HTTP/1.1\r\n${OFFER}Content-Length: 2\r\n\r\nhi${last}`;
    for (let cut = 0; cut < bytes.length; cut += 3) {
      const socket = await openSocket(proxy.url);
      const response = readToEnd(socket);
      socket.write(bytes.slice(0, cut), 'latin1');
      await someTurns();
      socket.write(bytes.slice(cut), 'latin1');
      const text = (await response).bytes.toString();
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', `HTTP/1.1 ${String(status)}`]);
    }
    expect(new Set(upstream.requests.map(({ path }) => path))).toEqual(new Set(['/a', '/b']));
  });

  it.each(['2\r\nhi\r\nZZ\r\n', '2\r\nhi!\r\n0\r\n\r\n', '2\r\nhi\r\n0\r\nbad trailer\r\n\r\n'])(
    'with broken chunks is refused, and does not reach the upstream: %j',
    async (chunks) => {
      await using upstream = await startRecordingUpstream();
      await using proxy = await startProxy(upstream.url);
      const head = `POST /a HTTP/1.1\r\n${OFFER}Transfer-Encoding: chunked\r\n\r\n`;
      for (let cut = head.length - 1; cut < head.length + chunks.length; cut++) {
        const socket = await openSocket(proxy.url);
        const response = readToEnd(socket);
        socket.write((head + chunks).slice(0, cut));
        await someTurns();
        socket.write((head + chunks).slice(cut));
        expect((await response).status).toBe(400);
      }
      expect(upstream.requests).toEqual([]);
    },
  );
});
