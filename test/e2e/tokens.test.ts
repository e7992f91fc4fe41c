/** The token's whole life, seen from outside: one fetch for all, renewed in time, replaced when it is refused. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call, post, callConcurrently } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { echo } from '../support/recording-upstream.ts';

/** For how long a busy machine may hold up a call on its way. Exact times are tested in virtual time (test/token). */
const ON_ITS_WAY_MS = 1000;

/** Enough at once that the throttle is not what is measured. */
const UNTHROTTLED = { SIDECAR_RATE: '5000', SIDECAR_BURST: '500' };

describe('one token for all', () => {
  it('200 concurrent first calls make 1 token request', async () => {
    await using chain = await startSidecarStack({
      name: 'first-calls',
      token: { delayMs: 300 },
      env: UNTHROTTLED,
      waitsForToken: false,
    });
    const responses = await callConcurrently(200, (index) => post(`${chain.sidecar.proxyUrl}/things`, { index }));
    expect(responses.map(({ status }) => status)).toEqual(Array(200).fill(200));
    expect(responses.map(({ text }) => text)).toEqual(
      Array.from({ length: 200 }, (_, index) => JSON.stringify({ index })),
    );
    expect(chain.tokens.requests).toHaveLength(1);
  });

  it('a token of 2 s under steady traffic for 8 s: no request carries an expired one', async () => {
    await using chain = await startSidecarStack({ name: 'short-lived', token: { expiresIn: 2 }, env: UNTHROTTLED });
    const statuses: number[] = [];
    const until = performance.now() + 8000;
    while (performance.now() < until) {
      statuses.push((await call(`${chain.sidecar.proxyUrl}/steady`)).status);
      await sleep(15);
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(statuses.length).toBeGreaterThan(40);
    const ends = new Map(chain.tokens.issued.map(({ value, expiresAt }) => [`Bearer ${value}`, expiresAt]));
    const late = chain.upstream.requests.filter(
      ({ headers, arrivedAt }) => arrivedAt >= (ends.get(headers.authorization ?? '') ?? 0) + ON_ITS_WAY_MS,
    );
    expect(late).toHaveLength(0);
    expect(chain.tokens.issued.length).toBeGreaterThanOrEqual(4);
    expect(chain.tokens.issued.length).toBeLessThanOrEqual(12);
  });

  it('a token fetch of 2 s does not save up permits: no burst follows it', async () => {
    await using chain = await startSidecarStack({
      name: 'slow-token',
      token: { delayMs: 2000 },
      env: { SIDECAR_RATE: '50', SIDECAR_BURST: '1' },
      waitsForToken: false,
    });
    const responses = await callConcurrently(75, () => call(`${chain.sidecar.proxyUrl}/waiting`));
    expect(responses.map(({ status }) => status)).toEqual(Array(75).fill(200));
    const [token] = chain.tokens.issued;
    const lastArrivedAt = Math.max(...chain.upstream.requests.map(({ arrivedAt }) => arrivedAt));
    // The last permit is granted 74 intervals of 20 ms after the token, or later where the machine is busy; four saved permits would be too many.
    expect(lastArrivedAt - (token?.issuedAt ?? Infinity)).toBeGreaterThanOrEqual(71 * 20);
  });
});

describe('a refused token', () => {
  it('30 concurrent POSTs that get a 401 each get their own response after exactly 1 refresh', async () => {
    const waiting: (() => void)[] = [];
    let firstToken: string | undefined;
    const refuseTheFirst: RespondTo = async (request, response, index) => {
      firstToken ??= request.headers.authorization;
      if (request.headers.authorization !== firstToken) return echo(request, response, index);
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 30) for (const release of waiting) release();
      });
      response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
    };
    await using chain = await startSidecarStack({ name: 'refused-once', respond: refuseTheFirst, env: UNTHROTTLED });
    const responses = await callConcurrently(30, (index) => post(`${chain.sidecar.proxyUrl}/things`, { index }));
    expect(responses.map(({ status }) => status)).toEqual(Array(30).fill(200));
    expect(responses.map(({ text }) => text)).toEqual(
      Array.from({ length: 30 }, (_, index) => JSON.stringify({ index })),
    );
    expect(chain.upstream.requests).toHaveLength(60);
    expect(chain.tokens.requests).toHaveLength(2);
  });

  it('a permanent 401 is passed through, with at most 3 token requests for 40 calls', async () => {
    const refuse: RespondTo = (_request, response) => {
      response.writeHead(401, { 'content-type': 'text/plain', 'x-own': 'upstream' }).end('not you');
    };
    await using chain = await startSidecarStack({ name: 'refused-always', respond: refuse, env: UNTHROTTLED });
    for (let count = 0; count < 40; count++) {
      const response = await post(`${chain.sidecar.proxyUrl}/things`, { count });
      expect(response).toMatchObject({ status: 401, text: 'not you' });
      expect(response.headers).toMatchObject({ 'x-own': 'upstream' });
      expect(response.headers).not.toHaveProperty('proxy-status');
    }
    expect(chain.tokens.requests.length).toBeLessThanOrEqual(3);
  });
});
