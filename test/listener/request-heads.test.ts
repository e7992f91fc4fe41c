/** The memory for request heads: beyond it requests are not refused, they wait in their connections, and all are served. */
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createLatch } from '../composition/in-process.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { waitUntil } from '../support/until.ts';
import type { Proxy } from './proxy.ts';
import { startProxy } from './proxy.ts';

const HOST = 'Host: 127.0.0.1\r\n';
const KIB = 1024;
const MAX_HEAD_BYTES = 200 * KIB;
/** A head of 16 KiB in 200 fields. */
const LARGEST_HEAD_BYTES = 60 * KIB;

interface GeneratedHead {
  readonly fields: number;
  readonly bytes: number;
  /** The connection has had a response before. */
  readonly isKept: boolean;
  readonly packetBytes: number;
}

const generatedHead: fc.Arbitrary<GeneratedHead> = fc.record({
  fields: fc.integer({ min: 1, max: 195 }),
  bytes: fc.integer({ min: 0, max: 13_000 }),
  isKept: fc.boolean(),
  packetBytes: fc.constantFrom(500, 100_000),
});

function format(path: string, { fields, bytes }: Pick<GeneratedHead, 'fields' | 'bytes'>, last = ''): string {
  const value = 'v'.repeat(Math.floor(bytes / fields));
  const names = Array.from({ length: fields }, (_, at) => `X-${String(at)}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${HOST}${names.join('')}${last}\r\n`;
}

const warnings = ({ events }: Proxy): number =>
  events.filter((event) => event.kind === 'warning' && event.message.includes('heads of pending requests')).length;

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

/** A connection that has had a response. */
async function openKept(url: string): Promise<Socket> {
  const socket = await openSocket(url);
  socket.write(format('/first', { fields: 1, bytes: 0 }));
  await new Promise((resolve) => socket.once('data', resolve));
  return socket;
}

it('any heads on new and kept connections are all served, and never more at a time than the limit allows', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(generatedHead, { minLength: 30, maxLength: 60 }), async (heads) => {
      const { opened, open } = createLatch();
      await using upstream = await startRecordingUpstream(async ({ path }, response) => {
        if (path !== '/first') await opened;
        response.end(path);
      });
      await using proxy = await startProxy(upstream.url, { maxInFlight: 100, maxHeadBytes: MAX_HEAD_BYTES });
      const kept = await Promise.all(heads.map(async ({ isKept }) => (isKept ? openKept(proxy.url) : undefined)));
      const replies = await Promise.all(
        heads.map(async (head, at) => {
          const socket = kept[at] ?? (await openSocket(proxy.url));
          const reply = readToEnd(socket);
          const bytes = format(`/${String(at)}`, head, 'Connection: close\r\n');
          for (let from = 0; from < bytes.length; from += head.packetBytes)
            socket.write(bytes.slice(from, from + head.packetBytes));
          return { reply };
        }),
      );
      await waitUntil(() => proxy.server.activeRequests.count > 0, 'requests are under way');
      await someTurns();
      const smallest = Math.min(...heads.map(({ fields, bytes }) => 6 * KIB + 190 * fields + bytes));
      const allowed = (MAX_HEAD_BYTES + LARGEST_HEAD_BYTES) / smallest;
      expect(proxy.server.activeRequests.count).toBeLessThanOrEqual(allowed);
      open();
      const served = await Promise.all(replies.map(async ({ reply }) => reply));
      expect(served.map(({ status, body }) => [status, body.toString()])).toEqual(
        heads.map((_, at) => [200, `/${String(at)}`]),
      );
    }),
    { numRuns: 10 },
  );
});

it('beyond the limit connections wait, also new ones; a pipelined request is refused, and no connection is displaced', async () => {
  const { opened, open } = createLatch();
  await using upstream = await startRecordingUpstream(async (_request, response) => {
    await opened;
    response.end('ok');
  });
  await using proxy = await startProxy(upstream.url, { maxInFlight: 100, maxHeadBytes: 50 * KIB, maxConnections: 3 });
  const large = { fields: 190, bytes: 12_000 };
  const [first, second] = [await openSocket(proxy.url), await openSocket(proxy.url)];
  first.write(format('/first', large));
  await waitUntil(() => upstream.requests.length === 1, 'the first request is at the upstream');
  second.write(format('/second', large, 'Connection: close\r\n'));
  const third = await openSocket(proxy.url);
  third.write(format('/third', large, 'Connection: close\r\n'));
  await someTurns();
  expect(upstream.requests).toHaveLength(1);
  expect((await readToEnd(await openSocket(proxy.url))).status).toBe(503);
  first.write(format('/pipelined', large));
  const replies = [first, second, third].map(readToEnd);
  await someTurns();
  open();
  const [ofFirst, ofSecond, ofThird] = await Promise.all(replies);
  expect(ofFirst?.bytes.toString().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503']);
  expect([ofSecond?.status, ofThird?.status]).toEqual([200, 200]);
  expect(upstream.requests.map(({ path }) => path).toSorted()).toEqual(['/first', '/second', '/third']);
  expect(warnings(proxy)).toBe(1);
});

it('a client that leaves while it is not read is found when reading resumes, and leaves nothing behind', async () => {
  const { opened, open } = createLatch();
  await using upstream = await startRecordingUpstream(async (_request, response) => {
    await opened;
    response.end('ok');
  });
  await using proxy = await startProxy(upstream.url, { maxHeadBytes: 10 * KIB });
  const [first, second] = [await openSocket(proxy.url), await openSocket(proxy.url)];
  const reply = readToEnd(first);
  first.write(format('/first', { fields: 100, bytes: 1000 }, 'Connection: close\r\n'));
  await waitUntil(() => upstream.requests.length === 1, 'the first request is at the upstream');
  second.write(format('/second', { fields: 1, bytes: 1 }));
  await someTurns();
  second.resetAndDestroy();
  await someTurns();
  open();
  expect((await reply).status).toBe(200);
  await waitUntil(() => proxy.server.connections.state().connections === 0, 'both connections are closed');
  await waitUntil(() => proxy.server.activeRequests.count === 0, 'no request is under way');
  expect(proxy.throttle.state()).toMatchObject({ queued: 0, inFlight: 0 });
});
