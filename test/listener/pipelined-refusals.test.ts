/** Refusals on a connection with pending responses: they follow those responses, and are recorded once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { createLatch } from '../composition/in-process.ts';
import { waitUntil } from '../support/until.ts';
import type { Proxy } from './proxy.ts';
import { startProxy } from './proxy.ts';
import { startUpgrading, upgradeRequest } from './websocket/raw-upgrades.ts';

const HOST = 'Host: 127.0.0.1\r\n';
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`;

/** Responds with the requested path; to `/slow…` once `isReady` has resolved. */
function byPath(isReady: () => Promise<void>): RespondTo {
  return async ({ path }, response) => {
    if (path.startsWith('/slow')) await isReady();
    response.end(`[${path}]`);
  };
}

/** By then the sidecar, which runs in this process, has read what was written before. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}

const never: RespondTo = () => undefined;

function responses(bytes: Buffer): string[] {
  return bytes.toString('latin1').match(/HTTP\/1\.1 \d+|\[[^\]]*\]|"code":"\w+"/g) ?? [];
}

/** All that was recorded but for the order. */
function recorded({ ended, events }: Proxy) {
  return {
    requests: ended().map(({ code, localReply }) => localReply ?? code),
    localReplies: events.filter(({ kind }) => kind === 'local-reply').length,
    warnings: events.filter(({ kind }) => kind === 'warning').length,
  };
}

const LAST = [
  ['a CONNECT', `CONNECT elsewhere.example:443 HTTP/1.1\r\n${HOST}\r\n`, 405, 'METHOD_NOT_ALLOWED'],
  ['a WebSocket upgrade', upgradeRequest(), 403, 'UPGRADE_NOT_ALLOWED'],
  ['an upgrade with early bytes', `${upgradeRequest()}early`, 403, 'UPGRADE_NOT_ALLOWED'],
  ['an upgrade with a body', `${upgradeRequest('Content-Length: 2\r\n')}hi`, 400, 'BAD_REQUEST'],
  ['an upgrade with an unfinished body', `${upgradeRequest('Content-Length: 9\r\n')}hi`, 400, 'BAD_REQUEST'],
  ['an upgrade of another host', upgradeRequest().replace('127.0.0.1', 'evil.example'), 403, 'HOST_NOT_ALLOWED'],
  ['invalid bytes', '\x01nonsense\r\n\r\n', 400, 'BAD_REQUEST'],
  ['a bad field', get('/bad', 'a b: c\r\n'), 400, 'BAD_REQUEST'],
  ['two lengths', get('/bad', 'Content-Length: 1\r\nContent-Length: 2\r\n'), 400, 'BAD_REQUEST'],
  ['too large a head', get('/bad', `X: ${'x'.repeat(20_000)}\r\n`), 431, 'HEADERS_TOO_LARGE'],
] as const;

describe.each(LAST)('%s behind pending responses', (_, last, status, code) => {
  const PENDING = get('/slow') + get('/b');
  const inOrder = ['HTTP/1.1 200', '[/slow]', 'HTTP/1.1 200', '[/b]', `HTTP/1.1 ${String(status)}`, `"code":"${code}"`];

  it.each([
    ['one packet', [PENDING + last]],
    ['two packets', [PENDING, last]],
  ])('is refused after them and recorded once, in %s', async (_packets, packets) => {
    const { opened, open } = createLatch();
    await using upstream = await startRecordingUpstream(byPath(() => opened));
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    const reply = readToEnd(socket);
    for (const packet of packets) {
      await new Promise((resolve) => socket.write(packet, 'latin1', resolve));
      await waitUntil(
        () => proxy.server.activeRequests.count > 0 || proxy.ended().length > 0,
        'the packet has been read',
      );
    }
    await someTurns();
    open();
    const { bytes, end } = await reply;
    expect([responses(bytes), end]).toEqual([inOrder, 'fin']);
    await proxy.requestRecords(3);
    expect(recorded(proxy)).toEqual({ requests: [200, 200, code], localReplies: 1, warnings: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
  });

  it.each([
    ['FIN', (socket: Awaited<ReturnType<typeof openSocket>>) => socket.end()],
    ['RST', (socket: Awaited<ReturnType<typeof openSocket>>) => socket.resetAndDestroy()],
  ])('is recorded once when the client leaves by %s', async (_by, leave) => {
    await using upstream = await startRecordingUpstream(never);
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    socket.on('error', () => socket.destroy());
    socket.write(get('/a') + get('/b') + last, 'latin1');
    await waitUntil(() => upstream.requests.length === 2, 'the requests are at the upstream');
    leave(socket);
    await proxy.requestRecords(3);
    expect(recorded(proxy)).toEqual({ requests: [499, 499, code], localReplies: 1, warnings: 0 });
    expect(proxy.server.activeRequests.count).toBe(0);
    socket.destroy();
  });

  it('is recorded once after a response that closes the connection', async () => {
    const { opened, open } = createLatch();
    await using upstream = await startRecordingUpstream(byPath(() => opened));
    await using proxy = await startUpgrading(upstream.url);
    const socket = await openSocket(proxy.url);
    const reply = readToEnd(socket);
    socket.write(get('/slow') + last, 'latin1');
    await waitUntil(() => proxy.server.activeRequests.count === 1, 'the first is under way');
    proxy.server.startClosing();
    open();
    expect(responses((await reply).bytes)).toEqual(['HTTP/1.1 200', '[/slow]']);
    await proxy.requestRecords(2);
    expect(recorded(proxy)).toEqual({ requests: [200, code], localReplies: 1, warnings: 0 });
  });
});

it('an unfinished request head after a pending response gets 408 after that response', async () => {
  await using upstream = await startRecordingUpstream(byPath(someTurns));
  await using proxy = await startProxy(upstream.url, { headersTimeoutMs: 200 });
  const reply = await sendRaw(proxy.url, `${get('/a')}GET /half HTTP/1.1\r\n`);
  expect(responses(reply.bytes)).toEqual(['HTTP/1.1 200', '[/a]', 'HTTP/1.1 408', '"code":"REQUEST_TIMEOUT"']);
  await proxy.requestRecords(2);
  expect(recorded(proxy)).toEqual({ requests: [200, 'REQUEST_TIMEOUT'], localReplies: 1, warnings: 0 });
});

it('an upgrade after a response that closes the connection is neither served nor recorded', async () => {
  await using upstream = await startRecordingUpstream(byPath(someTurns));
  await using proxy = await startUpgrading(upstream.url);
  const bad = get('/x', 'x-sidecar-priority: urgent\r\n');
  const reply = await sendRaw(proxy.url, bad + upgradeRequest());
  expect(responses(reply.bytes).filter((each) => each.startsWith('HTTP'))).toEqual(['HTTP/1.1 400']);
  await proxy.requestRecords(1);
  expect(recorded(proxy).requests).toEqual(['BAD_REQUEST']);
  expect(upstream.requests).toEqual([]);
});

it('any number of pending requests in any packets get their responses in order before the refusal', async () => {
  await using upstream = await startRecordingUpstream(byPath(someTurns));
  await using proxy = await startUpgrading(upstream.url);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { minLength: 0, maxLength: 5 }),
      // An upgrade is served when no response is pending any more.
      fc.constantFrom(...LAST.filter(([, , , code]) => code !== 'UPGRADE_NOT_ALLOWED')),
      fc.array(fc.nat(400), { maxLength: 3 }),
      async (pending, [, last, status, code], cuts) => {
        const paths = pending.map((isSlow, at) => `/${isSlow ? 'slow' : 'fast'}${String(at)}`);
        const bytes = Buffer.from(paths.map((path) => get(path)).join('') + last, 'latin1');
        const before = proxy.ended().length;
        const socket = await openSocket(proxy.url);
        const reply = readToEnd(socket);
        let at = 0;
        for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
          if (cut <= at || cut > bytes.length) continue;
          socket.write(bytes.subarray(at, cut));
          await new Promise(setImmediate);
          at = cut;
        }
        const seen = responses((await reply).bytes);
        const ordinary = paths.flatMap((path) => ['HTTP/1.1 200', `[${path}]`]);
        expect(seen).toEqual([...ordinary, `HTTP/1.1 ${String(status)}`, `"code":"${code}"`]);
        await proxy.requestRecords(before + paths.length + 1);
      },
    ),
    { numRuns: 60 },
  );
  await waitUntil(() => proxy.server.activeRequests.count === 0, 'nothing is under way');
});
