/** The hidden rate limit of the simulated API, in virtual time. */
import { fetch } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import type { HiddenLimitOptions } from '../../src/sandbox/hidden-limit.ts';
import { startSalesApi } from '../../src/sandbox/sales-api.ts';
import type { SalesApi } from '../../src/sandbox/sales-api.ts';
import { TokenIssuer } from '../../src/sandbox/token-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';

const AUDIENCE = 'https://api.example/';
const EPOCH_MS = Date.UTC(2026, 10, 1);
const HINT_FIELD = /^(retry-after|x-ratelimit-.*|ratelimit(-policy)?)$/;

let api: SalesApi | undefined;
afterEach(async () => {
  await api?.close();
});

interface CallResult {
  readonly status: number;
  readonly hints: Readonly<Record<string, string>>;
}

interface Limited {
  readonly clock: ManualClock;
  readonly call: () => Promise<CallResult>;
}

async function limited(limit: HiddenLimitOptions): Promise<Limited> {
  const clock = new ManualClock(EPOCH_MS);
  const tokens = new TokenIssuer(clock);
  const started = await startSalesApi({ tokens, audience: AUDIENCE, limit, clock });
  api = started;
  const authorization = `Bearer ${tokens.issue({ clientId: 'client', audience: AUDIENCE, scope: '' })}`;
  return {
    clock,
    call: async () => {
      const response = await fetch(`${started.baseUrl.href}/nothing`, { headers: { authorization } });
      await response.arrayBuffer();
      const hints = Object.fromEntries([...response.headers].filter(([name]) => HINT_FIELD.test(name)));
      return { status: response.status, hints };
    },
  };
}

async function callTimes(times: number, call: () => Promise<CallResult>): Promise<CallResult[]> {
  const results: CallResult[] = [];
  for (let n = 0; n < times; n++) results.push(await call());
  return results;
}

const statuses = (results: readonly CallResult[]): number[] => results.map(({ status }) => status);

describe('the limit', () => {
  test('allows the burst, then one call per new permit, and never saves more than the burst', async () => {
    const { clock, call } = await limited({ permitsPerSecond: 2, burst: 3 });
    expect(statuses(await callTimes(5, call))).toEqual([404, 404, 404, 429, 429]);
    await clock.advance(499);
    expect((await call()).status).toBe(429);
    await clock.advance(1);
    expect(statuses(await callTimes(2, call))).toEqual([404, 429]);
    await clock.advance(60_000);
    expect(statuses(await callTimes(4, call))).toEqual([404, 404, 404, 429]);
  });

  test('also counts calls without a valid token', async () => {
    const { call } = await limited({ permitsPerSecond: 1, burst: 1 });
    const { status } = await fetch(new URL('/v1/events', api?.url));
    expect(status).toBe(401);
    expect((await call()).status).toBe(429);
  });

  test('a 429 has a problem body', async () => {
    await limited({ permitsPerSecond: 1, burst: 1 });
    await fetch(new URL('/v1/events', api?.url));
    const response = await fetch(new URL('/v1/events', api?.url));
    expect(await response.json()).toMatchObject({ title: 'Too Many Requests', status: 429, simulated: true });
  });
});

describe('the hint of the wait', () => {
  test('retry-after: enough whole seconds, on a 429 only', async () => {
    const { clock, call } = await limited({ permitsPerSecond: 0.4, burst: 1 });
    expect(await callTimes(2, call)).toEqual([
      { status: 404, hints: {} },
      { status: 429, hints: { 'retry-after': '3' } },
    ]);
    await clock.advance(2000);
    expect((await call()).hints).toEqual({ 'retry-after': '1' });
    await clock.advance(1000);
    expect((await call()).status).toBe(404);
  });
});
