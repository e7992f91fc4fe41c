/** How the sidecar stops: readiness first, then new connections, then requests under way, then the admin port. */
import { Agent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, waitUntilRefused } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';
import { createLatch, giveToken, sendToken, startInProcess, until } from './in-process.ts';
import { send } from './send.ts';

const DRAIN = { SIDECAR_DRAIN_MS: '10000', SIDECAR_DRAIN_DELAY_MS: '2000' };

const readiness = async (adminUrl: string): Promise<number> => (await fetch(`${adminUrl}/readyz`)).status;

describe('invariant 10: drain', () => {
  it('ends readiness first, keeps the listener open for the delay, and closes the admin port last', async () => {
    const clock = new ManualClock();
    const { url, sidecar, eventsOf } = await startInProcess({ clock, env: DRAIN });
    await until(() => eventsOf('token-requested').length === 1, 'a token');
    expect(await readiness(sidecar.adminUrl)).toBe(200);
    const drained = sidecar.drain();
    expect(await readiness(sidecar.adminUrl)).toBe(503);
    // Until load balancers notice, requests are served on connections that close after them.
    const served = await send(url);
    expect(served.status).toBe(200);
    expect(served.fields.connection).toBe('close');
    await clock.advance(2000);
    expect(await drained).toBe(0);
    await expect(openSocket(url)).rejects.toThrow('ECONNREFUSED');
    await expect(openSocket(sidecar.adminUrl)).rejects.toThrow('ECONNREFUSED');
    expect(eventsOf('draining')).toEqual([{ kind: 'draining', inFlight: 0, queued: 0, drainMs: 10_000 }]);
    expect(eventsOf('stopped')).toEqual([{ kind: 'stopped', cut: 0 }]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('finishes requests in flight and in the queue, and refuses new connections and late requests', async () => {
    const clock = new ManualClock();
    const release = createLatch();
    const { url, sidecar, eventsOf, throttle } = await startInProcess({
      clock,
      respond: async (...call) => {
        if (call[0].path !== '/kept') await release.opened;
        await echo(...call);
      },
      env: { ...DRAIN, SIDECAR_DRAIN_DELAY_MS: '0', SIDECAR_MAX_IN_FLIGHT: '2' },
    });
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await callKept(kept, `${url}/kept`);
    expect([first.status, first.connection]).toEqual([200, 'keep-alive']);
    const calls = Array.from({ length: 4 }, (_, index) => send(url, { method: 'POST', body: String(index) }));
    await until(async () => (await throttle()).queued >= 2, 'all queued');

    const drained = sidecar.drain();
    await waitUntilRefused(url);
    const late = await callKept(kept, `${url}/late`);
    expect(late).toMatchObject({ status: 503, code: 'DRAINING', connection: 'close', retryAfter: '1' });
    expect(await readiness(sidecar.adminUrl)).toBe(503);
    release.open();
    const responses = await Promise.all(calls);
    expect(responses.map(({ status, text }) => [status, text])).toEqual([0, 1, 2, 3].map((n) => [200, String(n)]));
    expect(responses.map(({ fields }) => fields.connection)).toEqual(Array(4).fill('close'));
    expect(await drained).toBe(0);
    expect(eventsOf('draining')).toMatchObject([{ inFlight: 2, queued: 2 }]);
    kept.destroy();
  });

  it('replies to a late request on an open connection when no request is under way', async () => {
    const { url, sidecar } = await startInProcess({ env: { ...DRAIN, SIDECAR_DRAIN_DELAY_MS: '0' } });
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    await callKept(kept, `${url}/kept`);
    const drained = sidecar.drain();
    await waitUntilRefused(url);
    expect(await callKept(kept, `${url}/late`)).toMatchObject({ status: 503, code: 'DRAINING', connection: 'close' });
    expect(await drained).toBe(0);
    kept.destroy();
  });

  it('aborts and counts the requests that are left at its end, with DRAINING if they were not sent', async () => {
    let begunHeads = 0;
    const clock = new ManualClock();
    const { url, sidecar, eventsOf, events, throttle, requestRecords } = await startInProcess({
      clock,
      respond: (request, response) => {
        if (request.path !== '/begun') return;
        response.writeHead(200).write('begun');
        begunHeads++;
      },
      env: { ...DRAIN, SIDECAR_DRAIN_DELAY_MS: '0', SIDECAR_MAX_IN_FLIGHT: '2' },
    });
    const begun = expect(send(`${url}/begun`)).rejects.toThrow();
    await until(() => begunHeads === 1, 'a response has begun');
    const waiting = send(`${url}/in-flight`);
    await until(() => eventsOf('permit-granted').length === 2, 'a second in flight');
    const queued = send(`${url}/queued`);
    await until(async () => (await throttle()).queued > 0, 'a request is queued');
    const reading = await openSocket(url);
    const readingEnd = readToEnd(reading);
    reading.write('POST /reading HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf');
    await until(async () => (await throttle()).queued >= 2, 'all queued');

    const drained = sidecar.drain();
    await clock.advance(10_000);
    const inFlight = await waiting;
    expect(inFlight).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT' });
    expect([inFlight.fields.connection, inFlight.fields['retry-after']]).toEqual(['close', undefined]);
    expect(await queued).toMatchObject({ status: 503, code: 'DRAINING' });
    expect((await readingEnd).status).toBe(503);
    await begun;
    expect(await drained).toBe(4);
    expect(eventsOf('stopped')).toEqual([{ kind: 'stopped', cut: 4 }]);
    // The log closes after `stopped`.
    expect(events.findLastIndex(({ kind }) => kind === 'request-ended')).toBeLessThan(
      events.findIndex(({ kind }) => kind === 'stopped'),
    );
    expect(eventsOf('queue-rejected').map(({ reason }) => reason)).not.toContain('client_left');
    const ended = await requestRecords(4);
    expect(ended).toHaveLength(4);
    expect(ended.map(({ path, code }) => `${path} ${String(code)}`).toSorted()).toEqual([
      '/begun 200',
      '/in-flight 504',
      '/queued 503',
      '/reading 503',
    ]);
  });

  it('goes on renewing the token for waiting requests', async () => {
    const clock = new ManualClock();
    const { url, sidecar, tokens, api, throttle } = await startInProcess({
      clock,
      respondToTokenRequest: (_, response, index) => sendToken(response, index, 10),
      env: { SIDECAR_DRAIN_MS: '60000', SIDECAR_RATE: '0.05', SIDECAR_BURST: '1' },
    });
    await send(url);
    const waiting = send(url);
    await until(async () => (await throttle()).queued > 0, 'a request is queued');
    const drained = sidecar.drain();
    for (let second = 0; second < 20; second++) {
      await clock.advance(1000);
      await until(() => tokens.requests.length >= 1 + Math.floor((second + 1) / 8), 'the renewal');
    }
    expect((await waiting).status).toBe(200);
    expect(await drained).toBe(0);
    expect(tokens.requests.length).toBeGreaterThanOrEqual(3);
    expect(api.requests[1]!.headers.authorization).not.toBe(api.requests[0]!.headers.authorization);
  });

  it('aborts a request that waits for a token', async () => {
    const clock = new ManualClock();
    const never = createLatch();
    const { url, sidecar, tokens, requestRecords } = await startInProcess({
      clock,
      respondToTokenRequest: async (request, response, index) => {
        await never.opened;
        await giveToken(request, response, index);
      },
      env: { ...DRAIN, SIDECAR_DRAIN_DELAY_MS: '0', SIDECAR_AUTH_TIMEOUT_MS: '60000' },
    });
    const call = send(url);
    await until(() => tokens.requests.length === 1 && clock.pendingTimers >= 2, 'the token request');
    const drained = sidecar.drain();
    await clock.advance(10_000);
    expect(await call).toMatchObject({ status: 503, code: 'DRAINING' });
    expect(await drained).toBe(1);
    expect(await requestRecords(1)).toMatchObject([{ code: 503, localReply: 'DRAINING' }]);
    never.open();
  });
});

interface KeptResponse {
  readonly status: number | undefined;
  readonly connection: string | undefined;
  readonly retryAfter: string | undefined;
  readonly code: string | undefined;
}

async function callKept(agent: Agent, url: string): Promise<KeptResponse> {
  const [reply] = (await once(httpRequest(url, { agent }).end(), 'response')) as [IncomingMessage];
  const text = (await reply.toArray()).join('');
  const { connection } = reply.headers;
  const code = text.startsWith('{') ? (JSON.parse(text) as { code?: string }).code : undefined;
  return { status: reply.statusCode, connection, retryAfter: reply.headers['retry-after'], code };
}
