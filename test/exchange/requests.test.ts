/** What reaches the upstream: in which order, with which bearer, and with what of the client's own fields. */
import { describe, expect, it } from 'vitest';
import { createLatch, sendToken, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sendRaw } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';

describe('a body without a Content-Type', () => {
  it.each([
    ['whole', '1000000'],
    ['streamed', '1'],
  ])('and %s is sent as application/json', async (_, replayBufferBytes) => {
    const { url, api } = await startInProcess({ env: { SIDECAR_REPLAY_BUFFER_BYTES: replayBufferBytes } });
    await send(url, { method: 'POST', body: '{"a":1}' });
    expect(api.requests[0]!.headers['content-type']).toBe('application/json');
  });

  it('that has one keeps it, and a request without a body gets none', async () => {
    const { url, api } = await startInProcess();
    await send(url, { method: 'POST', body: 'x', headers: { 'content-type': 'text/odd' } });
    await send(url, { method: 'POST' });
    await send(url);
    expect(api.requests.map(({ headers }) => headers['content-type'])).toEqual(['text/odd', undefined, undefined]);
  });
});

it('a chunked body that came in one packet with its refused head counts as received', async () => {
  const { url, requestRecords } = await startInProcess({
    env: { SIDECAR_RATE: '0.01', SIDECAR_BURST: '1', SIDECAR_QUEUE_TIMEOUT_MS: '50' },
  });
  await send(url);
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
  await sendRaw(url, `${head}5\r\nhello\r\n0\r\n\r\n`);
  const [, refused] = await requestRecords(2);
  expect(refused).toMatchObject({ code: 503, localReply: 'QUEUE_TIMEOUT', requestBytes: 5 });
});

describe('the Authorization of a client', () => {
  it('is replaced, and counted once however many attempts there are', async () => {
    const { url, api, eventsOf, metric } = await startInProcess({
      respond: (request, response, index) => {
        if (index === 0) response.writeHead(429).end();
        else void echo(request, response, index);
      },
    });
    await send(url, { headers: { authorization: 'Basic bm90OmhlcmU=' } });
    await send(url);
    expect(api.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill('Bearer token-1-of-the-tests'),
    );
    expect(eventsOf('authorization-overridden')).toHaveLength(1);
    expect(await metric('bearer_sidecar_client_authorization_overridden_total')).toBe(1);
  });

  it('invariant 1: exactly one bearer is sent, for all client headers', async () => {
    const { url, api } = await startInProcess();
    const evil = [
      'Authorization: Bearer a\r\nAuthorization: Bearer b',
      'Connection: close, authorization\r\nAuthorization: x',
      'authorization: x\r\nAuthorization_: y\r\nProxy-Authorization: Basic x',
    ];
    for (const fields of evil)
      await sendRaw(url, `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${fields}\r\n\r\n`);
    for (const { rawHeaders } of api.requests) {
      const values = rawHeaders.filter((_, at) => /^authorization$/i.test(rawHeaders[at - 1] ?? ''));
      expect(values).toEqual(['Bearer token-1-of-the-tests']);
      expect(rawHeaders.join()).not.toMatch(/proxy-authorization/i);
    }
    expect(api.requests).toHaveLength(3);
  });
});

describe('invariant 1: a token is sent only to the configured origin', () => {
  it.each([
    ['GET http://localhost:PORT/x', 1],
    ['GET //evil.example/x', 1],
    ['GET /http://evil.example/', 1],
    ['GET http://127.0.0.1:1/x', 0],
    ['GET http://evil.example/x', 0],
  ])('%s', async (line, sent) => {
    const { url, api } = await startInProcess();
    const request = line.replace('PORT', new URL(url).port);
    await sendRaw(url, `${request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    for (const { headers } of api.requests) expect(headers.host).toBe(new URL(api.url).host);
    expect(api.requests).toHaveLength(sent);
  });

  it('and not to where a redirect points', async () => {
    const elsewhere = await startRawUpstream(() => undefined);
    const { url } = await startInProcess({
      respond: (_, response) => void response.writeHead(307, { location: `${elsewhere.url}/x` }).end(),
    });
    const response = await send(url, { method: 'POST', body: 'x' });
    expect(response.status).toBe(307);
    expect(response.fields.location).toBe(`${elsewhere.url}/x`);
    expect(elsewhere.received).toEqual([]);
  });

  it('and appears in no event, metric, status or reply', async () => {
    const { url, sidecar, events, api } = await startInProcess({
      respond: (_, response, index) => {
        if (index % 2 === 0) response.writeHead(401).end();
        else response.destroy();
      },
    });
    const texts: string[] = [];
    for (const method of ['GET', 'POST']) texts.push((await send(`${url}/?q=1`, { method })).text);
    for (const path of ['/metrics', '/status', '/', '/readyz'])
      texts.push(await (await fetch(sidecar.adminUrl + path)).text());
    texts.push(JSON.stringify(events));
    expect(api.requests.length).toBeGreaterThan(2);
    expect(texts.filter((text) => /token-\d-of-the-tests/.test(text))).toEqual([]);
  });
});

describe('requests', () => {
  it('reach the upstream in the order of their arrival', async () => {
    const clock = new ManualClock();
    const { url, api, eventsOf, throttle } = await startInProcess({
      clock,
      env: { SIDECAR_RATE: '10', SIDECAR_BURST: '1', SIDECAR_MAX_IN_FLIGHT: '2' },
    });
    const calls: Promise<unknown>[] = [];
    for (let index = 0; index < 8; index++) {
      // Bodies of very different sizes, so that the later ones would be ready first.
      calls.push(send(`${url}/${String(index)}`, { method: 'POST', body: 'x'.repeat(index % 2 === 0 ? 500_000 : 1) }));
      if (index === 0) await until(() => eventsOf('permit-granted').length === 1, 'the first call');
      else await until(async () => (await throttle()).queued >= index, 'all queued');
    }
    while (eventsOf('permit-granted').length < 8) await clock.advance(100);
    await Promise.all(calls);
    expect(api.requests.map(({ path }) => path)).toEqual(Array.from({ length: 8 }, (_, index) => `/${String(index)}`));
  });

  it('retries go to the head of the queue', async () => {
    const clock = new ManualClock();
    const { url, api, eventsOf, throttle } = await startInProcess({
      clock,
      respond: (request, response, index) => {
        if (index === 0) response.writeHead(429, { 'retry-after': '1' }).end();
        else void echo(request, response, index);
      },
      env: { SIDECAR_RATE: '10', SIDECAR_BURST: '1' },
    });
    const calls = [send(`${url}/first`)];
    await until(() => eventsOf('rate-limited').length === 1, 'the refusal');
    calls.push(send(`${url}/second`));
    await until(async () => (await throttle()).queued >= 2, 'all queued');
    while (eventsOf('permit-granted').length < 3) await clock.advance(100);
    await Promise.all(calls);
    expect(api.requests.map(({ path }) => path)).toEqual(['/first', '/first', '/second']);
  });
});

it('invariant 3: a token that ends while a request is queued costs no permit and is never sent', async () => {
  const clock = new ManualClock();
  const renewal = createLatch();
  const { url, api, eventsOf, throttle } = await startInProcess({
    clock,
    respondToTokenRequest: async (_, response, index) => {
      if (index > 0) await renewal.opened;
      sendToken(response, index, index === 0 ? 10 : 3600);
    },
    // A permit every 20 s: the second request outlives the token in the queue.
    env: { SIDECAR_RATE: '0.05', SIDECAR_BURST: '1', SIDECAR_AUTH_TIMEOUT_MS: '60000' },
  });
  expect((await send(`${url}/first`)).status).toBe(200);
  const second = send(`${url}/second`);
  await until(async () => (await throttle()).queued > 0, 'a request queued');
  await clock.advance(20_000);
  expect(api.requests).toHaveLength(1);
  renewal.open();
  // Granted once for nothing, given back, and granted again at once: the pace is none the slower.
  expect((await second).status).toBe(200);
  expect(api.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer token-1-of-the-tests',
    'Bearer token-2-of-the-tests',
  ]);
  expect(eventsOf('attempt-ended')).toHaveLength(2);
});
