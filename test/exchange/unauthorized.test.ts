/** What a 401 of the upstream sets off: one refresh, one replay, and never more of either. */
import { describe, expect, it } from 'vitest';
import { createLatch, giveToken, sendToken, startInProcess, until } from '../composition/in-process.ts';
import { startRawUpstream } from '../composition/raw-upstream.ts';
import { send } from '../composition/send.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sendRaw } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

/** All that comes back for a POST, to the end of the connection. */
async function readWire(url: string): Promise<string> {
  const { bytes } = await sendRaw(url, 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx');
  return bytes.toString('latin1');
}

/** Refuses every token but those of the numbers given. */
function accepting(...numbers: readonly number[]): RespondTo {
  return (request, response, index) => {
    const number = Number(/token-(\d+)-/.exec(request.headers.authorization ?? '')?.[1]);
    if (numbers.includes(number)) return echo(request, response, index);
    response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end('refused');
  };
}

const bearersOf = (requests: readonly { headers: { authorization?: string | undefined } }[]): (string | undefined)[] =>
  requests.map(({ headers }) => headers.authorization);

/** Runs all that falls due at one instant in one turn, without a promise being settled in between. */
class CrowdedClock extends ManualClock {
  readonly #instant: number;
  readonly #isReversed: boolean;
  readonly #due: (() => void)[] = [];

  constructor(instant: number, isReversed: boolean) {
    super();
    this.#instant = instant;
    this.#isReversed = isReversed;
  }

  override exactlyAt(at: number, run: () => void): () => void {
    if (at !== this.#instant) return super.exactlyAt(at, run);
    if (this.#due.length === 0) super.exactlyAt(at, () => this.#runAll());
    this.#due.push(run);
    return () => {
      const index = this.#due.indexOf(run);
      if (index >= 0) this.#due.splice(index, 1, () => undefined);
    };
  }

  #runAll(): void {
    for (let index = 0; index < this.#due.length; index++)
      this.#due[this.#isReversed ? this.#due.length - 1 - index : index]?.();
  }
}

describe('a 401 that is held', () => {
  it.each([
    [
      '{"error":"invalid_client","error_description":"suspended"}',
      'Bearer',
      'the partner says "invalid_client: suspended"',
    ],
    ['{"code":7,"message":"no subscription\\nfor claims"}', 'Bearer', 'the partner says "no subscription for claims"'],
    [
      '{"message":"of the body"}',
      'Bearer error="invalid_token", error_description="of the field"',
      'invalid_token: of the field',
    ],
    ['<html>no</html>', 'Bearer', undefined],
    [`{"message":"long","more":"${'x'.repeat(3000)}"}`, 'Bearer', undefined],
  ])('is quoted from its JSON body where its challenge has no description: %.60s', async (body, challenge, words) => {
    const { url, eventsOf } = await startInProcess({
      respond: (_, response) => {
        response.writeHead(401, { 'www-authenticate': challenge, 'content-type': 'application/json' }).end(body);
      },
    });
    expect((await send(url)).text).toBe(body);
    const details = eventsOf('unauthorized').map(({ detail }) => detail);
    if (words === undefined) expect(details).toEqual([]);
    else expect(details.at(-1)).toContain(words);
  });
});

describe('a 401 whose refresh fails in the turn of the event loop in which the deadline passes', () => {
  it.each([false, true])('goes to the client and is counted once: the refresh first %s', async (isReversed) => {
    const clock = new CrowdedClock(5000, isReversed);
    const [apiLatch, never] = [createLatch(), createLatch()];
    const { url, api, tokens, eventsOf, requestRecords } = await startInProcess({
      clock,
      respond: async (_, response) => {
        await apiLatch.opened;
        response.writeHead(401).end('refused');
      },
      respondToTokenRequest: async (request, response, index) => {
        if (index > 0) await never.opened;
        await giveToken(request, response, index);
      },
      env: { SIDECAR_DEADLINE_MS: '5000', SIDECAR_AUTH_TIMEOUT_MS: '4000' },
    });
    const call = send(url, { method: 'POST', body: 'x' });
    await until(() => api.requests.length === 1, 'the attempt');
    await clock.advance(1000);
    apiLatch.open();
    await until(() => tokens.requests.length === 2, 'the refresh');
    await clock.advance(4000);
    expect(await call).toMatchObject({ status: 401, text: 'refused', code: undefined });
    expect(eventsOf('attempt-ended')).toMatchObject([{ outcome: 'unauthorized', durationMs: 1000 }]);
    expect(await requestRecords(1)).toMatchObject([{ code: 401, source: 'upstream', attempts: 1 }]);
    await until(() => eventsOf('token-requested').length === 2, 'the refresh counted');
    expect(eventsOf('token-requested')).toMatchObject([{ outcome: 'ok' }, { outcome: 'unavailable' }]);
    never.open();
  });
});

describe('a 401', () => {
  it('is replayed once with a newer token, for every method', async () => {
    const { url, api, tokens, eventsOf } = await startInProcess({ respond: accepting(2) });
    const response = await send(`${url}/policies`, { method: 'POST', body: '{"a":1}' });
    expect(response).toMatchObject({ status: 200, text: '{"a":1}' });
    expect(bearersOf(api.requests)).toEqual(['Bearer token-1-of-the-tests', 'Bearer token-2-of-the-tests']);
    expect(tokens.requests).toHaveLength(2);
    expect(eventsOf('retry')).toEqual([{ kind: 'retry', route: 'default', reason: 'unauthorized' }]);
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['unauthorized', 'ok']);
  });

  it('a second time goes to the client as it is', async () => {
    const { url, api, tokens } = await startInProcess({ respond: accepting() });
    const response = await send(url, { method: 'POST', body: 'x' });
    expect(response).toMatchObject({ status: 401, text: 'refused', code: undefined });
    expect(response.fields['www-authenticate']).toBe('Bearer error="invalid_token"');
    expect(api.requests).toHaveLength(2);
    expect(tokens.requests).toHaveLength(2);
  });

  it('of 30 concurrent calls costs one refresh, and each gets its own response', async () => {
    const { url, tokens, api, eventsOf } = await startInProcess({ respond: accepting(2) });
    const bodies = Array.from({ length: 30 }, (_, index) => `{"index":${String(index)}}`);
    const responses = await Promise.all(bodies.map((body) => send(url, { method: 'POST', body })));
    expect(responses.map(({ text }) => text)).toEqual(bodies);
    expect(tokens.requests).toHaveLength(2);
    expect(api.requests.length).toBeLessThanOrEqual(60);
    // A permit that finds the token gone is given back, and recorded when it is spent.
    expect(eventsOf('permit-granted')).toHaveLength(api.requests.length);
  });

  it('of a streamed body is passed on, and the token is replaced all the same', async () => {
    const { url, tokens, api } = await startInProcess({
      respond: accepting(2),
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' },
    });
    const first = await send(url, { method: 'POST', body: 'longer than ten bytes' });
    expect(first).toMatchObject({ status: 401, text: 'refused' });
    await until(() => tokens.requests.length === 2, 'a second token request');
    const second = await send(url, { method: 'POST', body: 'longer than ten bytes' });
    expect(second.status).toBe(200);
    expect(api.requests).toHaveLength(2);
  });

  it('of 30 streamed bodies at once marks the token once', async () => {
    const [apiLatch, refresh] = [createLatch(), createLatch()];
    const { url, tokens, api } = await startInProcess({
      respond: async (request, response, index) => {
        await apiLatch.opened;
        await accepting(2)(request, response, index);
      },
      respondToTokenRequest: async (request, response, index) => {
        if (index > 0) await refresh.opened;
        await giveToken(request, response, index);
      },
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' },
    });
    const calls = Array.from({ length: 30 }, () => send(url, { method: 'POST', body: 'longer than ten bytes' }));
    await until(() => api.requests.length === 30, '30 calls at the upstream');
    apiLatch.open();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(30).fill(401));
    refresh.open();
    await until(() => tokens.requests.length === 2, 'a second token request');
  });

  it('whose body is too large to be held is passed on, and the token is replaced all the same', async () => {
    const large = Buffer.alloc(300 * 1024, 'x');
    const { url, tokens } = await startInProcess({
      respond: (_request, response) => void response.writeHead(401).end(large),
    });
    const response = await send(url);
    expect(response.status).toBe(401);
    expect(response.text).toHaveLength(large.length);
    await until(() => tokens.requests.length === 2, 'a second token request');
  });

  it('whose body breaks off is still replayed', async () => {
    const upstream = await startRawUpstream((socket, index) => {
      if (index === 0) socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nbroken');
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const { url, eventsOf } = await startInProcess({ apiUrl: upstream.url });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, text: 'ok' });
    expect(eventsOf('attempt-ended').map(({ outcome }) => outcome)).toEqual(['unauthorized', 'ok']);
  });

  it('whose body breaks off goes to the client as far as it came when no newer token is to be had', async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nbroken');
    });
    const { url, requestRecords } = await startInProcess({
      apiUrl: upstream.url,
      respondToTokenRequest: (_request, response, index) => {
        if (index === 0) sendToken(response, index, 3600);
        else response.writeHead(503, { 'retry-after': '60' }).end();
      },
    });
    expect(await readWire(url)).toMatch(/^HTTP\/1\.1 401 [^]*\r\ncontent-length: 100\r\n[^]*\r\n\r\nbroken$/i);
    expect(await requestRecords(1)).toMatchObject([{ code: 401, source: 'upstream', attempts: 1 }]);
    expect((await requestRecords(1))[0]?.fault).toMatch(/closed the connection before its response was complete/);
  });

  it('goes to the client when no newer token is to be had, and the old one stays in use', async () => {
    const { url, tokens } = await startInProcess({
      respond: accepting(),
      respondToTokenRequest: (_request, response, index) => {
        if (index === 0) sendToken(response, index, 3600);
        else response.writeHead(503, { 'retry-after': '60' }).end();
      },
    });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 401, text: 'refused' });
    expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 401, text: 'refused' });
    expect(tokens.requests).toHaveLength(2);
  });

  it('invariant 5: a 401 invalidates the very token that was sent; a late one for an older token does nothing', async () => {
    const late = createLatch();
    const { url, tokens, api, eventsOf } = await startInProcess({
      respond: async (request, response, index) => {
        if (index === 0) await late.opened;
        await accepting(2)(request, response, index);
      },
    });
    const slow = send(`${url}/slow`, { method: 'POST', body: 'slow' });
    await until(() => eventsOf('permit-granted').length === 1, 'the slow call on its way');
    expect((await send(`${url}/quick`)).status).toBe(200);
    expect(tokens.requests).toHaveLength(2);
    late.open();
    expect(await slow).toMatchObject({ status: 200, text: 'slow' });
    expect(tokens.requests).toHaveLength(2);
    expect(eventsOf('token-invalidated')).toHaveLength(1);
    expect(api.requests).toHaveLength(4);
  });
});

describe('a new token that the API does not accept yet', () => {
  it('is replaced by the previous one: no client sees a 401, and no token is requested', async () => {
    const clock = new ManualClock();
    const accepted = [1];
    const { url, api, tokens, eventsOf, metric } = await startInProcess({
      clock,
      respond: (request, response, index) => accepting(...accepted)(request, response, index),
    });
    expect((await send(url)).status).toBe(200);
    // Random numbers are 0: at three quarters of the lifetime.
    await clock.advance(0.75 * 3_600_000);
    await until(() => eventsOf('token-requested').length === 2, 'the renewal');
    await clock.advance(15_000);
    const bodies = ['{"a":1}', '{"b":2}', '{"c":3}'];
    for (const body of bodies)
      expect(await send(url, { method: 'POST', body })).toMatchObject({ status: 200, text: body });
    const bearer = (serial: number): string => `Bearer token-${String(serial)}-of-the-tests`;
    expect(bearersOf(api.requests)).toEqual([1, 2, 1, 1, 1].map(bearer));
    expect(eventsOf('token-invalidated')).toEqual([]);
    expect(await metric('bearer_sidecar_token_fallbacks_total{credential="default"}')).toBe(1);
    // At one and a half times its age it is used again: the client does not see the 401.
    await clock.advance(7_500);
    expect((await send(url)).status).toBe(200);
    accepted.push(2);
    await clock.advance(11_250);
    expect((await send(url)).status).toBe(200);
    expect((await send(url)).status).toBe(200);
    expect(bearersOf(api.requests.slice(5))).toEqual([2, 1, 2, 2].map(bearer));
    expect(tokens.requests).toHaveLength(2);
    expect(eventsOf('token-accepted-late')).toMatchObject([{ credential: 'default' }]);
  });

  it('is not tested by a call whose body cannot be sent again', async () => {
    const clock = new ManualClock();
    const { url, api, tokens, eventsOf } = await startInProcess({
      clock,
      respond: accepting(1),
      env: { SIDECAR_REPLAY_BUFFER_BYTES: '10' },
    });
    expect((await send(url)).status).toBe(200);
    // Random numbers are 0: at three quarters of the lifetime.
    await clock.advance(0.75 * 3_600_000);
    await until(() => eventsOf('token-requested').length === 2, 'the renewal');
    for (let n = 0; n < 3; n++) {
      expect(await send(url, { method: 'POST', body: 'longer than ten bytes' })).toMatchObject({ status: 200 });
      await clock.advance(10_000);
    }
    expect(new Set(bearersOf(api.requests))).toEqual(new Set(['Bearer token-1-of-the-tests']));
    expect(tokens.requests).toHaveLength(2);
  });
});

it('passes each 401 on with retry.on401: false, and replaces the token all the same', async () => {
  const { url, api, tokens, eventsOf } = await startInProcess({
    respond: accepting(2),
    env: { SIDECAR_RETRY_ON_401: 'false' },
  });
  expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 401, text: 'refused' });
  await until(() => eventsOf('token-requested').length === 2, 'the refresh');
  expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 200, text: 'x' });
  expect(api.requests).toHaveLength(2);
  expect(tokens.requests).toHaveLength(2);
  expect(eventsOf('retry')).toEqual([]);
});

it('relays a 403 without a token refresh', async () => {
  const { url, tokens, api } = await startInProcess({
    respond: (_request, response) => void response.writeHead(403).end('not yours'),
  });
  expect(await send(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 403, text: 'not yours' });
  expect(api.requests).toHaveLength(1);
  expect(tokens.requests).toHaveLength(1);
});
