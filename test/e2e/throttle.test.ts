/** A numeric rate, seen from the upstream and from the clients. */
import { describe, expect, it } from 'vitest';
import { startNginx } from '../support/nginx.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import type { RawResponse } from '../support/raw-client.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';
import { maxCountInWindow } from '../support/windows.ts';

describe('rate 50, burst 1, queue time-out 5 s, 500 calls at once', () => {
  it('serves about 250 in order of arrival, never too many in half a second, and refuses the rest with a reason', async () => {
    // The witness has a process of its own: this one is busy with 500 clients.
    await using upstream = await startNginx();
    await using tokens = await startTokenServer();
    const env = {
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      SIDECAR_RATE: '50',
      SIDECAR_BURST: '1',
      SIDECAR_QUEUE_TIMEOUT_MS: '5000',
    };
    await using sidecar = await startSidecar({ name: 'rate-50', env });
    await waitUntilReady(sidecar);
    const responses = await callInOrder(sidecar.proxyUrl, 500);

    const served = responses.filter(({ status }) => status === 200);
    // nginx writes the line of a request after its response.
    await waitUntil(() => upstream.requests().length >= served.length, 'nginx has logged all');
    const arrivals = upstream.requests();
    const instants = arrivals.map(({ at }) => at);
    const fullest = maxCountInWindow(instants, 500);
    const seconds = (Math.max(...instants) - Math.min(...instants)) / 1000;
    console.info(`rate 50 for 5 s: ${served.length} of 500 served, at most ${fullest} in any 500 ms`);
    // 1 + 50 a second for 5 s, and more where the 500 take their time to arrive; a permit that a busy machine grants late is
    // not made up for. Calls of some moments may arrive together there: exact times are tested in virtual time (test/throttle).
    expect(served.length).toBeGreaterThanOrEqual(125);
    expect(served.length).toBeLessThanOrEqual(400);
    expect(arrivals).toHaveLength(served.length);
    expect(served.length).toBeLessThanOrEqual(1 + 50 * seconds + 15);
    expect(fullest).toBeLessThanOrEqual(50);

    // Two that a busy witness finds waiting on two connections may change places.
    const order = arrivals.map(({ path }) => Number(path.slice('/calls/'.length)));
    const inOrder = order.toSorted((a, b) => a - b);
    expect(Math.max(...order.map((call, place) => Math.abs(call - inOrder[place]!)))).toBeLessThanOrEqual(10);

    for (const refused of responses.filter(({ status }) => status !== 200)) {
      expect(refused.status).toBe(503);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(refused.headers['proxy-status']).toContain('bearer-sidecar; error=connection_limit_reached');
      expect(refused.body.toString()).toMatch(/"code":"QUEUE_(TIMEOUT|FULL)"/);
    }
  });
});

/** Connects `count` clients first, then lets each send its call after the one before it: arrival has an order. */
async function callInOrder(url: string, count: number): Promise<RawResponse[]> {
  const responses: Promise<RawResponse>[] = [];
  const sockets = [];
  for (let index = 0; index < count; index++) sockets.push(await openSocket(url));
  for (const [index, socket] of sockets.entries()) {
    responses.push(readToEnd(socket));
    socket.write(`GET /calls/${String(index)} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\n\r\n`);
  }
  return Promise.all(responses);
}
