/** Clients that stall within their uploads keep nobody else from being served. */
import { expect, it } from 'vitest';
import { startInProcess, until, type InProcess } from '../sidecar/in-process.ts';
import { send } from '../sidecar/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, sendRaw } from '../support/raw-client.ts';

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
    answer: (_request, response) => {
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
