/** A trap of undici 8.13.1 that is mended in src/platform/undici.ts for the whole process, so that the peer as it is comes first, in a file of its own. */
import { Pool } from 'undici';
import { describe, expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';

describe('undici: a 100 (Continue) that was not requested breaks the connection off', () => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
  const BOUGHT = 'HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok';

  it('the peer: the response after it is lost', async () => {
    const upstream = await startRawUpstream((socket) => socket.write(CONTINUE + BOUGHT));
    const pool = new Pool(upstream.url);
    await expect(pool.request({ path: '/', method: 'POST', body: 'x' })).rejects.toThrow('bad response');
    await pool.destroy();
  });

  it.each([
    ['in one packet with the response', [CONTINUE + BOUGHT]],
    ['twice, by itself', [CONTINUE, CONTINUE, BOUGHT]],
  ])('here the client gets it: %s', async (_, packets) => {
    const upstream = await startRawUpstream((socket) => {
      const [first = '', ...others] = packets;
      socket.write(first, () => setImmediate(() => others.forEach((packet) => socket.write(packet))));
    });
    const { url, eventsOf } = await startInProcess({ apiUrl: upstream.url });
    expect(await send(url)).toMatchObject({ status: 201, text: 'ok' });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 201, text: 'ok' });
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['ok', 'ok']);
  });

  it('and where a token is asked for', async () => {
    const body = JSON.stringify({ access_token: 'a', token_type: 'Bearer', expires_in: 60 });
    const length = String(Buffer.byteLength(body));
    const server = await startRawUpstream((socket) => {
      socket.write(
        `${CONTINUE}HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
      );
    });
    const { url } = await startInProcess({ env: { SIDECAR_AUTH_URL: server.url } });
    expect((await send(url)).status).toBe(200);
  });
});
