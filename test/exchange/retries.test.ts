/** Which attempts are repeated, how often, and what the client gets in the end. */
import { describe, expect, it } from 'vitest';
import { HELD_RESPONSE_MAX_BYTES } from '../../src/upstream/response-receiver.ts';
import { createLatch, startInProcess, until } from '../composition/in-process.ts';
import { closedPort, startRawUpstream } from '../composition/raw-upstream.ts';
import { send, sendAndLeave } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { echo } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

const IDEMPOTENT = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'];
const OTHERS = ['POST', 'PATCH'];

const failingOnce =
  (status: number): RespondTo =>
  (request, response, index) => {
    if (index > 0) return echo(request, response, index);
    response.writeHead(status).end('in trouble');
  };

const resettingOnce: RespondTo = (request, response, index) => {
  if (index > 0) return echo(request, response, index);
  response.destroy();
};

describe.each([408, 502, 503, 504])('a %i', (status) => {
  it.each(IDEMPOTENT)('is retried for %s', async (method) => {
    const { url, api } = await startInProcess({ respond: failingOnce(status) });
    expect((await send(url, { method })).status).toBe(200);
    expect(api.requests).toHaveLength(2);
  });

  it.each(OTHERS)('goes to the client for %s', async (method) => {
    const { url, api } = await startInProcess({ respond: failingOnce(status) });
    expect(await send(url, { method, body: 'x' })).toMatchObject({ status, text: 'in trouble', code: undefined });
    expect(api.requests).toHaveLength(1);
  });
});

it.each([400, 404, 409, 422, 500, 501])('relays a %i to the client without a retry', async (status) => {
  const { url, api } = await startInProcess({ respond: failingOnce(status) });
  expect(await send(url)).toMatchObject({ status, text: 'in trouble' });
  expect(api.requests).toHaveLength(1);
});

describe('an Idempotency-Key', () => {
  const post = { method: 'POST', body: 'x', headers: { 'idempotency-key': '"k"' } };

  it('makes a POST repeatable where it is trusted', async () => {
    const env = { SIDECAR_RETRY_TRUST_IDEMPOTENCY_KEY: 'true' };
    for (const respond of [failingOnce(502), resettingOnce]) {
      const { url, api } = await startInProcess({ respond, env });
      expect((await send(url, post)).status).toBe(200);
      expect(api.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['"k"', '"k"']);
    }
  });

  it.each(['', ' ', '\u00a0', '""'])('that is blank (%j) is none, and is passed on', async (value) => {
    const env = { SIDECAR_RETRY_TRUST_IDEMPOTENCY_KEY: 'true' };
    const { url, api } = await startInProcess({ respond: failingOnce(502), env });
    expect((await send(url, { ...post, headers: { 'idempotency-key': value } })).status).toBe(502);
    expect(api.requests.map(({ headers }) => headers['idempotency-key'])).toEqual([value.replace(' ', '')]);
  });

  it('is only passed on where it is not', async () => {
    const { url, api } = await startInProcess({ respond: failingOnce(502) });
    expect((await send(url, post)).status).toBe(502);
    expect(api.requests).toHaveLength(1);
  });
});

describe('a connection that breaks', () => {
  it.each(IDEMPOTENT)('before the response is retried for %s', async (method) => {
    const { url, api, eventsOf } = await startInProcess({ respond: resettingOnce });
    expect((await send(url, { method })).status).toBe(200);
    expect(api.requests).toHaveLength(2);
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['reset', 'ok']);
    expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(['reset']);
  });

  it.each(OTHERS)(
    'before the response is reported to the client of a %s, which may have been carried out',
    async (method) => {
      const { url, api } = await startInProcess({ respond: resettingOnce });
      const response = await send(url, { method, body: 'x' });
      expect(response).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
      expect(response.fields['proxy-status']).toBe('bearer-sidecar; error=connection_terminated');
      expect(api.requests).toHaveLength(1);
    },
  );

  it('is not followed by a retry on another kept one, which may be about to break as well', async () => {
    const kept = new WeakSet<object>();
    const [warm, busy, released] = [createLatch(), createLatch(), createLatch()];
    const { url, api, requestRecords } = await startInProcess({
      respond: async (request, response, index) => {
        const socket = response.socket!;
        if (request.path === '/busy') await busy.opened;
        else if (kept.has(socket)) {
          // By the time that this connection breaks, another one has become free.
          busy.open();
          await released.opened;
          return void response.destroy();
        }
        kept.add(socket);
        if (index === 1) warm.open();
        await warm.opened;
        await echo(request, response, index);
      },
    });
    await Promise.all([send(url), send(url)]);
    const busyCall = send(`${url}/busy`).then(released.open);
    await until(() => api.requests.some(({ path }) => path === '/busy'), 'the busy call at the upstream');
    expect((await send(url)).status).toBe(200);
    expect((await requestRecords(4)).at(-1)).toMatchObject({ path: '/', code: 200, attempts: 2 });
    await busyCall;
  });

  it('after a held response counts: that response is of an earlier attempt', async () => {
    const { url, api, requestRecords } = await startInProcess({
      respond: (_request, response, index) => {
        if (index === 0) response.writeHead(503).end('in trouble');
        else response.destroy();
      },
    });
    expect(await send(url)).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
    expect(api.requests).toHaveLength(4);
    expect(await requestRecords(1)).toMatchObject([{ attempts: 4, source: 'sidecar', localReply: 'UPSTREAM_RESET' }]);
  });

  it('invariant 6: after the first byte of a response is never retried, not even for a GET', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', () => socket.resetAndDestroy());
    });
    const { url } = await startInProcess({ apiUrl: upstream.url });
    await expect(send(url)).rejects.toThrow();
    expect(upstream.received).toHaveLength(1);
  });
});

describe('a connection that never opens', () => {
  it('is tried again for every method, as often as retry.attempts says', async () => {
    const { url, eventsOf, requestRecords } = await startInProcess({
      apiUrl: await closedPort(),
      env: { SIDECAR_RETRY_ATTEMPTS: '3' },
    });
    const response = await send(url, { method: 'POST', body: 'x' });
    expect(response).toMatchObject({ status: 502, code: 'UPSTREAM_UNREACHABLE' });
    expect(response.fields['proxy-status']).toBe('bearer-sidecar; error=connection_refused');
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(Array(3).fill('unreachable'));
    expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(['connect', 'connect']);
    expect(await requestRecords(1)).toMatchObject([{ attempts: 3, localReply: 'UPSTREAM_UNREACHABLE' }]);
  });

  it('is tried no more once the retry budget is spent', async () => {
    const { url, eventsOf, metric } = await startInProcess({
      apiUrl: await closedPort(),
      env: { SIDECAR_RETRY_ATTEMPTS: '3' },
    });
    for (let calls = 0; calls < 8; calls++) await send(url, { method: 'POST', body: 'x' });
    // Ten retries in ten seconds are always allowed; two for each of the first five calls.
    expect(eventsOf('retry')).toHaveLength(10);
    expect(eventsOf('attempt-ended')).toHaveLength(18);
    expect(eventsOf('retry-budget-exhausted')).toEqual(
      Array(3).fill({ kind: 'retry-budget-exhausted', route: 'default', reason: 'connect' }),
    );
    expect(await metric('bearer_sidecar_retry_budget_exhausted_total{reason="connect"}')).toBe(3);
  });
});

describe('the retry budget', () => {
  it('loses nothing when a response is too large to be held', async () => {
    const { url, api, eventsOf } = await startInProcess({
      respond: (request, response, index) => {
        const body = 'x'.repeat(request.path === '/large' ? HELD_RESPONSE_MAX_BYTES + 1 : 1);
        if (index > 12) void echo(request, response, index);
        else response.writeHead(503).end(body);
      },
    });
    for (let calls = 0; calls < 12; calls++) expect((await send(`${url}/large`)).status).toBe(503);
    expect((await send(`${url}/small`)).status).toBe(200);
    expect(api.requests).toHaveLength(14);
    expect(eventsOf('retry')).toEqual([{ kind: 'retry', route: 'default', reason: 'status' }]);
    expect(eventsOf('retry-budget-exhausted')).toEqual([]);
  });

  it('loses nothing to a client that leaves before its retry is made', async () => {
    const clock = new ManualClock();
    const { url, eventsOf, requestRecords } = await startInProcess({
      clock,
      respond: (request, response, index) => {
        if (index > 12) void echo(request, response, index);
        else response.writeHead(502).end('in trouble');
      },
    });
    for (let calls = 1; calls <= 12; calls++) {
      const leaver = sendAndLeave(url);
      await until(() => eventsOf('attempt-ended').length === calls, 'the first attempt');
      leaver.leave();
      await requestRecords(calls);
    }
    const stayer = send(url);
    // It waits as soon as its first response is whole.
    await until(async () => {
      await clock.advance(1);
      return eventsOf('attempt-ended').length === 14;
    }, 'the second attempt of one that stays');
    expect((await stayer).status).toBe(200);
    expect(eventsOf('retry')).toEqual([{ kind: 'retry', route: 'default', reason: 'status' }]);
    expect(eventsOf('retry-budget-exhausted')).toEqual([]);
  });
});

it('attempts are counted over every kind of trouble together', async () => {
  const { url, api, requestRecords } = await startInProcess({
    respond: (_request, response, index) => {
      if (index === 0) response.writeHead(429).end();
      else if (index % 2 === 0) response.writeHead(502).end(`trouble ${String(index)}`);
      else response.destroy();
    },
    env: { SIDECAR_RETRY_ATTEMPTS: '3' },
  });
  // 429, reset, 502, reset: three that count, and the result of the last.
  expect(await send(url)).toMatchObject({ status: 502, code: 'UPSTREAM_RESET' });
  expect(api.requests).toHaveLength(4);
  expect(await requestRecords(1)).toMatchObject([{ attempts: 4, code: 502, source: 'sidecar' }]);
});
