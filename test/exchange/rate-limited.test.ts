/** What a 429, a 403 for the rate and a 503 with Retry-After set off: waiting in the queue, and the upstream's own response when there is no time. */
import { describe, expect, it } from 'vitest';
import { startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { echo } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

/** Refuses the first `times` requests. */
function refusing(times: number, status = 429, fields: Readonly<Record<string, string>> = {}): RespondTo {
  return (request, response, index) => {
    if (index >= times) return echo(request, response, index);
    response.writeHead(status, { 'x-refusal': String(index), ...fields }).end(`refused ${String(index)}`);
  };
}

describe('a 429', () => {
  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    'is waited out for %s: it was not carried out',
    async (method) => {
      const { url, api, eventsOf } = await startInProcess({ respond: refusing(2) });
      const body = ['GET', 'HEAD', 'OPTIONS'].includes(method) ? {} : { body: 'again' };
      const response = await send(url, { method, ...body });
      expect(response.status).toBe(200);
      expect(api.requests.map((request) => request.body.toString())).toEqual(Array(3).fill(body.body ?? ''));
      expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(['rate_limited', 'rate_limited']);
    },
  );

  it('does not count among the attempts', async () => {
    const { url, api } = await startInProcess({ respond: refusing(9), env: { SIDECAR_RETRY_ATTEMPTS: '1' } });
    expect((await send(url, { method: 'POST', body: 'x' })).status).toBe(200);
    expect(api.requests).toHaveLength(10);
  });

  it.each(['POST', 'PATCH'])('of a %s goes to the client where retry.unsafeOn429 is false', async (method) => {
    const { url, api } = await startInProcess({
      respond: refusing(1),
      env: { SIDECAR_RETRY_UNSAFE_ON_429: 'false' },
    });
    expect(await send(url, { method, body: 'x' })).toMatchObject({ status: 429, text: 'refused 0' });
    expect(api.requests).toHaveLength(1);
    expect((await send(url, { method: 'PUT', body: 'x' })).status).toBe(200);
  });

  it('holds all requests back for as long as its Retry-After says, to the millisecond', async () => {
    const clock = new ManualClock();
    const { url, api, eventsOf } = await startInProcess({ clock, respond: refusing(1, 429, { 'retry-after': '2' }) });
    const first = send(url, { method: 'POST', body: 'first' });
    await until(() => eventsOf('rate-limited').length === 1, 'a pause');
    const second = send(url, { method: 'POST', body: 'second' });
    await clock.advance(1999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await first).text).toBe('first');
    expect((await second).text).toBe('second');
    expect(api.requests.map(({ body }) => body.toString())).toEqual(['first', 'first', 'second']);
  });

  it('whose wait would pass the deadline goes to the client at once and unchanged', async () => {
    const { url, api } = await startInProcess({
      respond: refusing(1, 429, { 'retry-after': '61', 'content-type': 'text/odd', 'x-partner': 'kept' }),
    });
    const response = await send(url, { method: 'POST', body: 'x' });
    expect(response).toMatchObject({ status: 429, text: 'refused 0', code: undefined });
    expect(response.fields).toMatchObject({ 'retry-after': '61', 'content-type': 'text/odd', 'x-partner': 'kept' });
    expect(response.fields['proxy-status']).toBeUndefined();
    expect(api.requests).toHaveLength(1);
  });

  it('whose wait would pass the queue time-out goes to the client at once', async () => {
    const { url } = await startInProcess({
      respond: refusing(1, 429, { 'retry-after': '3' }),
      env: { SIDECAR_QUEUE_TIMEOUT_MS: '2000' },
    });
    expect(await send(url)).toMatchObject({ status: 429, text: 'refused 0' });
  });

  it('is relayed when the queue then takes too long', async () => {
    const clock = new ManualClock();
    const { url, eventsOf } = await startInProcess({
      clock,
      // The first refusal states a wait that fits; meanwhile the second one's makes it too long.
      respond: (request, response, index) => {
        const wait = request.path === '/late' ? '50' : '10';
        response.writeHead(429, { 'retry-after': wait }).end(`refused ${String(index)}`);
      },
    });
    const waiting = send(`${url}/first`, { method: 'POST', body: 'x' });
    await until(() => eventsOf('rate-limited').length === 1, 'the first refusal');
    await clock.advance(10_000);
    await until(() => eventsOf('rate-limited').length === 2, 'the second refusal');
    await clock.advance(10_000);
    await until(() => eventsOf('rate-limited').length === 3, 'the third refusal');
    // 20 of the queue's 30 seconds are used up: another 10 would be the end of them.
    expect(await waiting).toMatchObject({ status: 429, text: 'refused 2' });
    // An attempt that was never made is no retry.
    expect(eventsOf('retry')).toHaveLength(2);
  });

  it('whose body breaks off is still waited out', async () => {
    const upstream = await startRawUpstream((socket, index) => {
      if (index === 0) socket.end('HTTP/1.1 429 Too Many Requests\r\nContent-Length: 100\r\n\r\nbroken');
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const { url, eventsOf } = await startInProcess({ apiUrl: upstream.url });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, text: 'ok' });
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['rate_limited', 'ok']);
    expect(eventsOf('request-ended')[0]).toMatchObject({ attempts: 2 });
  });

  it('too large to be held goes to the client whole', async () => {
    const large = 'x'.repeat(300 * 1024);
    const { url, api } = await startInProcess({ respond: (_, response) => void response.writeHead(429).end(large) });
    expect(await send(url)).toMatchObject({ status: 429, text: large });
    expect(api.requests).toHaveLength(1);
  });
});

describe('a 403', () => {
  it.each([
    ['with Retry-After', { 'retry-after': '2' }],
    ['with nothing left', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2' }],
  ])('%s is waited out as a 429 is, for a POST as well, and pauses all', async (_, fields) => {
    const clock = new ManualClock();
    const { url, api, eventsOf } = await startInProcess({ clock, respond: refusing(1, 403, fields) });
    const call = send(url, { method: 'POST', body: 'x' });
    await until(() => eventsOf('rate-limited').length === 1, 'a pause');
    await clock.advance(1999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect(await call).toMatchObject({ status: 200, text: 'x' });
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['rate_limited', 'ok']);
    expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(['rate_limited']);
    const values = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, Number(value)]));
    expect(eventsOf('rate-limited')).toMatchObject([{ status: 403, pauseMs: 2000, stated: true, fields: values }]);
  });

  it('with Retry-After goes to the client where retry.unsafeOn429 is false', async () => {
    const { url, api } = await startInProcess({
      respond: refusing(1, 403, { 'retry-after': '1' }),
      env: { SIDECAR_RETRY_UNSAFE_ON_429: 'false' },
    });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 403, text: 'refused 0' });
    expect(api.requests).toHaveLength(1);
  });

  it('whose wait would pass the deadline goes to the client at once and unchanged', async () => {
    const { url, api } = await startInProcess({ respond: refusing(1, 403, { 'retry-after': '86400' }) });
    const response = await send(url, { method: 'POST', body: 'x' });
    expect(response).toMatchObject({ status: 403, text: 'refused 0', code: undefined });
    expect(api.requests).toHaveLength(1);
  });

  it.each([
    ['plain', {}],
    ['with calls left', { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '2' }],
    [
      'that asks for a scope',
      { 'retry-after': '2', 'www-authenticate': 'Bearer error="insufficient_scope", scope="quotes"' },
    ],
  ])('%s is relayed unchanged, and pauses no other call', async (_, fields) => {
    const { url, api, eventsOf } = await startInProcess({ respond: refusing(1, 403, fields) });
    const response = await send(url);
    expect(response).toMatchObject({ status: 403, text: 'refused 0' });
    expect(response.fields).toMatchObject(fields);
    expect(eventsOf('rate-limited')).toEqual([]);
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['error_status']);
    expect((await send(url)).status).toBe(200);
    expect(api.requests).toHaveLength(2);
  });
});

describe('a 503', () => {
  it('is retried for an idempotent method once its Retry-After is over', async () => {
    const clock = new ManualClock();
    const { url, api, eventsOf } = await startInProcess({ clock, respond: refusing(1, 503, { 'retry-after': '3' }) });
    const call = send(url);
    await until(() => eventsOf('attempt-ended').length === 1, 'a first attempt');
    await clock.advance(2999);
    expect(api.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await call).status).toBe(200);
    expect(eventsOf('retry').map(({ reason }) => reason)).toEqual(['status']);
    expect(eventsOf('rate-limited')).toEqual([]);
  });

  it('without Retry-After is retried for an idempotent method and pauses no other call', async () => {
    const { url, api, eventsOf } = await startInProcess({ respond: refusing(2, 503) });
    expect((await send(url)).status).toBe(200);
    expect(api.requests).toHaveLength(3);
    expect(eventsOf('rate-limited')).toEqual([]);
  });

  it('of a POST goes to the client, with Retry-After and without', async () => {
    for (const fields of [{}, { 'retry-after': '1' }]) {
      const { url, api } = await startInProcess({ respond: refusing(1, 503, fields) });
      expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 503, text: 'refused 0' });
      expect(api.requests).toHaveLength(1);
    }
  });

  it('pauses all when two in a row state a wait', async () => {
    const clock = new ManualClock();
    const { url, eventsOf, api } = await startInProcess({ clock, respond: refusing(2, 503, { 'retry-after': '5' }) });
    await send(url, { method: 'POST', body: '1' });
    await send(url, { method: 'POST', body: '2' });
    expect(eventsOf('rate-limited')).toMatchObject([{ status: 503, pauseMs: 5000, stated: true }]);
    const third = send(url, { method: 'POST', body: '3' });
    await clock.advance(4999);
    expect(api.requests).toHaveLength(2);
    await clock.advance(1);
    expect((await third).status).toBe(200);
  });
});
