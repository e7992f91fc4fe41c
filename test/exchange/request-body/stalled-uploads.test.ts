/** Clients that stall within their uploads keep no one else from being served. */
import { describe, expect, it } from 'vitest';
import { startInProcess, until, type InProcess } from '../../composition/in-process.ts';
import { send } from '../../composition/send.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../../support/raw-client.ts';

const STALLED_AFTER_MS = 1000;

interface Bodies {
  readonly readingBodies: number;
  readonly stalledBodies: number;
  readonly queued: number;
}

async function bodies({ sidecar }: InProcess): Promise<Bodies> {
  const { throttle } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { throttle: Bodies };
  const { readingBodies, stalledBodies, queued } = throttle;
  return { readingBodies, stalledBodies, queued };
}

const untilBodies = (chain: InProcess, wanted: Partial<Bodies>): Promise<void> =>
  until(
    async () => {
      const seen = await bodies(chain);
      return Object.entries(wanted).every(([name, value]) => seen[name as keyof Bodies] === value);
    },
    `the bodies ${JSON.stringify(wanted)}`,
  );

/** Sends a head and the first half of a body. */
async function beginUpload(url: string, path: string, framing: 'length' | 'chunked') {
  const socket = await openSocket(url);
  const response = readToEnd(socket);
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
  const isChunked = framing === 'chunked';
  const begin = isChunked ? 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n' : 'Content-Length: 8\r\n\r\nhalf';
  socket.write(head + begin);
  return { response, finish: () => void socket.write(isChunked ? '4\r\nrest\r\n0\r\n\r\n' : 'rest') };
}

it.each(['length', 'chunked'] as const)(
  'requests without a body, and with one that is here, pass uploads that have begun (%s); others wait a second at most',
  async (framing) => {
    const clock = new ManualClock();
    const chain = await startInProcess({ clock, env: { SIDECAR_MAX_IN_FLIGHT: '2' } });
    const stalled = [
      await beginUpload(chain.url, '/stalled-1', framing),
      await beginUpload(chain.url, '/stalled-2', framing),
    ];
    await untilBodies(chain, { readingBodies: 2 });
    expect((await send(`${chain.url}/get`)).status).toBe(200);
    expect((await send(`${chain.url}/post`, { method: 'POST', body: 'whole' })).status).toBe(200);
    const waiting = await beginUpload(chain.url, '/waiting', framing);
    await untilBodies(chain, { queued: 3 });
    // All of it is here by now: it needs no place for being read.
    waiting.finish();
    expect((await waiting.response).status).toBe(200);

    const another = await beginUpload(chain.url, '/another', framing);
    await untilBodies(chain, { queued: 3 });
    await clock.advance(STALLED_AFTER_MS);
    await untilBodies(chain, { readingBodies: 1, stalledBodies: 2, queued: 1 });
    for (const upload of [another, ...stalled]) {
      upload.finish();
      expect((await upload.response).status).toBe(200);
    }
    await untilBodies(chain, { readingBodies: 0, stalledBodies: 0, queued: 0 });
    expect(chain.api.requests.map(({ path, body }) => `${path} ${body.toString()}`)).toEqual([
      '/get ',
      '/post whole',
      '/waiting halfrest',
      '/another halfrest',
      '/stalled-1 halfrest',
      '/stalled-2 halfrest',
    ]);
  },
);

it('announced lengths of bodies that do not come take no replay memory from others', async () => {
  let refusals = 0;
  const chain = await startInProcess({
    respond: (_request, response) => {
      response.writeHead(refusals++ === 0 ? 429 : 200, { 'retry-after': '0' }).end();
    },
    env: { SIDECAR_REPLAY_BUFFER_BYTES: '1000', SIDECAR_REPLAY_TOTAL_BYTES: '1000' },
  });
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n';
  const sockets = await Promise.all([1, 2, 3].map(() => openSocket(chain.url)));
  for (const socket of sockets) socket.write(`${head}some`);
  await untilBodies(chain, { readingBodies: 3 });
  expect((await send(chain.url, { method: 'POST', body: Buffer.alloc(900) })).status).toBe(200);
  expect(chain.api.requests).toHaveLength(2);
  for (const socket of sockets) socket.destroy();
});

it('a stalled upload whose client leaves is gone, and one that stays silent gets its 408', async () => {
  const clock = new ManualClock();
  const env = { SIDECAR_MAX_IN_FLIGHT: '1', SIDECAR_BODY_IDLE_TIMEOUT_MS: '5000' };
  const chain = await startInProcess({ clock, env });
  const silent = await beginUpload(chain.url, '/silent', 'length');
  await untilBodies(chain, { readingBodies: 1 });
  const head = 'POST /left HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n';
  const leaving = await openSocket(chain.url);
  leaving.write(`${head}half`);
  await untilBodies(chain, { queued: 2 });
  await clock.advance(STALLED_AFTER_MS);
  await untilBodies(chain, { readingBodies: 1, stalledBodies: 1 });
  leaving.destroy();
  await untilBodies(chain, { readingBodies: 0, stalledBodies: 1 });
  await clock.advance(5000);
  expect((await silent.response).status).toBe(408);
  await untilBodies(chain, { readingBodies: 0, stalledBodies: 0, queued: 0 });
  expect(chain.api.requests).toHaveLength(0);
  expect((await sendRaw(chain.url, `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)).status).toBe(200);
});

describe('uploads that are streamed, and stall', () => {
  const streamed = { SIDECAR_REPLAY_BUFFER_BYTES: '3', SIDECAR_MAX_IN_FLIGHT: '2' };

  /** Two that have begun, so that both slots are taken, and a request that waits for one. */
  async function startStalled(env: Readonly<Record<string, string>>) {
    const clock = new ManualClock();
    const chain = await startInProcess({ clock, env: { ...streamed, ...env } });
    const uploads = [
      await beginUpload(chain.url, '/stalled-1', 'length'),
      await beginUpload(chain.url, '/stalled-2', 'length'),
    ];
    await until(async () => (await chain.throttle()).inFlight === 2, 'both slots taken');
    return { clock, chain, uploads };
  }

  it('keep their slots until another request waits for one', async () => {
    const { clock, chain, uploads } = await startStalled({});
    await clock.advance(10 * STALLED_AFTER_MS);
    expect(await chain.throttle()).toMatchObject({ inFlight: 2, streams: 0 });
    const waiting = send(`${chain.url}/waiting`);
    await untilBodies(chain, { queued: 1 });
    await clock.advance(STALLED_AFTER_MS);
    expect((await waiting).status).toBe(200);
    for (const { finish, response } of uploads) {
      finish();
      expect((await response).status).toBe(200);
    }
    const received = chain.api.requests.map(({ path, body }) => `${path} ${body.toString()}`);
    expect(received.toSorted()).toEqual(['/stalled-1 halfrest', '/stalled-2 halfrest', '/waiting ']);
    expect(await chain.throttle()).toEqual({ queued: 0, inFlight: 0, streams: 0 });
  });

  it('end with 408 when no stream may be open beside them', async () => {
    const { clock, chain, uploads } = await startStalled({ SIDECAR_THROTTLE_MAX_STREAMS: '0' });
    const waiting = send(`${chain.url}/waiting`);
    await untilBodies(chain, { queued: 1 });
    await clock.advance(STALLED_AFTER_MS);
    expect((await waiting).status).toBe(200);
    const statuses = [];
    for (const { finish, response } of uploads) {
      finish();
      statuses.push((await response).status);
    }
    // One is enough for the one that waits.
    expect(statuses.toSorted()).toEqual([200, 408]);
    expect(await chain.throttle()).toEqual({ queued: 0, inFlight: 0, streams: 0 });
  });
});
