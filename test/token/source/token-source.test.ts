import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import { SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const HOUR_MS = 3_600_000;

describe('invariant 4: callers share one token request (single flight)', () => {
  test('200 concurrent first calls send one token request', async () => {
    const harness = new SourceHarness();
    const calls = Array.from({ length: 200 }, () => harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    const tokens = await Promise.all(calls);
    expect(new Set(tokens.map((token) => token.value))).toEqual(new Set(['token-1']));
    expect(harness.requests).toBe(1);
  });

  test('a held token is returned at once without a request', async () => {
    const harness = await SourceHarness.holding();
    expect((await harness.source.waitForToken(harness.signal)).value).toBe('token-1');
    expect(harness.requests).toBe(1);
  });

  test('a second start() sends no request', async () => {
    const harness = await SourceHarness.holding();
    harness.source.start();
    await harness.clock.advance(1);
    expect(harness.requests).toBe(1);
  });

  test("a caller's abort ends only its own wait, with its reason", async () => {
    const harness = new SourceHarness();
    const leaver = new AbortController();
    const left = watch(harness.source.waitForToken(leaver.signal));
    const stayed = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(50);
    const reason = new Error('client left');
    leaver.abort(reason);
    await harness.clock.advance(0);
    expect(left.error).toBe(reason);
    expect(stayed.settled).toBe(false);
    await harness.clock.advance(50);
    expect(stayed.value?.value).toBe('token-1');
    expect(harness.aborted).toBe(0);
  });
});

test("waiting leaves no listener on the caller's signal", async () => {
  const harness = new SourceHarness();
  const { signal } = harness;
  const call = watch(harness.source.waitForToken(signal));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  await harness.clock.advance(100);
  expect(call.settled).toBe(true);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

describe('refresh ahead', () => {
  test.each([0, 0.999])('a two-hour token is not refreshed in its first hour (random %d)', async (random) => {
    const harness = await SourceHarness.holding({ lifetimeMs: 2 * HOUR_MS, random });
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBe(1);
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBe(2);
    expect(harness.source.current()?.token.value).toBe('token-2');
  });

  test.each([
    [1_000, 0],
    [1_000, 0.999],
    [4_000, 0.999],
    [HOUR_MS, 0.5],
    [24 * HOUR_MS, 0.999],
  ])('a token of %d ms (random %d) is refreshed before a caller has to wait', async (lifetimeMs, random) => {
    const harness = await SourceHarness.holding({ lifetimeMs, random, latencyMs: 40 });
    for (let step = 0; step < 100; step++) {
      expect(harness.source.current()?.token).toBeDefined();
      await harness.clock.advance(lifetimeMs / 20);
    }
    expect(harness.requests).toBeLessThanOrEqual(9);
  });

  test('returns no expired token with a lifetime of 4 s under steady traffic for 20 s', async () => {
    const harness = await SourceHarness.holding({ lifetimeMs: 4_000, latencyMs: 300, random: 0.999 });
    let returned = 0;
    for (let at = 0; at < 20_000; at += 20) {
      const call = watch(harness.source.waitForToken(harness.signal));
      await harness.clock.advance(20);
      if (!call.settled) continue;
      returned += 1;
      // 20 ms later it is still valid at the upstream.
      expect(call.value?.expiresAt).toBeGreaterThan(harness.clock.now());
    }
    expect(returned).toBeGreaterThan(950);
    expect(harness.requests).toBeLessThanOrEqual(8);
  });

  test.each([
    [1_000, 100, 0],
    [HOUR_MS, 2_000, 0],
    [HOUR_MS, 2_000, -HOUR_MS],
    [HOUR_MS, 2_000, 1_000],
  ])(
    'a token of %d ms is used until %d ms before its expiry (wall clock set by %d ms)',
    async (lifetimeMs, marginMs, byMs) => {
      const harness = await SourceHarness.holding({ lifetimeMs, latencyMs: 0 });
      harness.latencyMs = HOUR_MS;
      harness.clock.stepWall(byMs);
      await harness.clock.advance(lifetimeMs - marginMs - Math.max(0, byMs) - 1);
      expect(harness.source.current()?.token.value).toBe('token-1');
      await harness.clock.advance(1);
      expect(harness.source.current()?.token).toBeUndefined();
    },
  );

  test('the lifetime counts from the request: a token expired on arrival is a failure', async () => {
    const harness = new SourceHarness({ lifetimeMs: 2_000, latencyMs: 1_900 });
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(1_900);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(harness.source.state().lastFailure?.detail).toContain('expired before it arrived');
  });
});

describe('clocks', () => {
  test('a wall clock set back does not prolong the lifetime', async () => {
    const harness = await SourceHarness.holding({ lifetimeMs: 60_000 });
    harness.result = UNAVAILABLE;
    harness.clock.stepWall(-24 * HOUR_MS);
    await harness.clock.advance(60_000);
    expect(harness.source.current()?.token).toBeUndefined();
  });

  test('after a suspend beyond its expiry the token is replaced by the next call', async () => {
    const harness = await SourceHarness.holding();
    harness.clock.stepWall(2 * HOUR_MS);
    expect(harness.source.current()?.token).toBeUndefined();
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.value?.value).toBe('token-2');
  });

  test('a suspend is noticed within a minute without any call', async () => {
    const harness = await SourceHarness.holding();
    harness.clock.stepWall(2 * HOUR_MS);
    await harness.clock.advance(60_100);
    expect(harness.source.current()?.token.value).toBe('token-2');
    expect(harness.requests).toBe(2);
  });

  /** Steps of the wall clock, a minute apart, and whether the one-hour token is still usable afterwards. */
  test.each<[string, number[], boolean]>([
    ['NTP sets the clock back by 1 h', [-HOUR_MS], true],
    ['NTP sets the clock forward by 1 h, which looks like a suspend', [HOUR_MS], false],
    ['forward by 1 h and back again', [HOUR_MS, -HOUR_MS], false],
    ['back by 1 h and forward again, which looks like a suspend', [-HOUR_MS, HOUR_MS], false],
    ['a suspend of 2 h', [2 * HOUR_MS], false],
    ['back by 1 h, then a suspend of 1.5 h', [-HOUR_MS, 1.5 * HOUR_MS], false],
    ['back by 24 h, then a suspend of 2 h', [-24 * HOUR_MS, 2 * HOUR_MS], false],
    ['three suspends of 15 min', [HOUR_MS / 4, HOUR_MS / 4, HOUR_MS / 4], true],
    ['four suspends of 15 min', [HOUR_MS / 4, HOUR_MS / 4, HOUR_MS / 4, HOUR_MS / 4], false],
  ])('%s', async (_name, steps, isUsable) => {
    const harness = await SourceHarness.holding({ random: 0.999 });
    harness.result = UNAVAILABLE;
    for (const step of steps) {
      harness.clock.stepWall(step);
      await harness.clock.advance(60_000);
    }
    expect(harness.source.current()?.token.value).toBe(isUsable ? 'token-1' : undefined);
    expect(harness.source.state().status).toBe(isUsable ? 'valid' : 'none');
  });

  test('a clock set forward costs one request and no failed call', async () => {
    const harness = await SourceHarness.holding();
    harness.clock.stepWall(HOUR_MS);
    const calls = Array.from({ length: 50 }, () => watch(harness.source.waitForToken(harness.signal)));
    await harness.clock.advance(100);
    expect(calls.map((call) => call.value?.value)).toEqual(Array(50).fill('token-2'));
    expect(harness.requests).toBe(2);
  });
});

describe('a reused token', () => {
  const found = (ageMs: number, lifetimeMs = HOUR_MS) => {
    const harness = new SourceHarness();
    const obtainedWallAt = harness.clock.wallNow() - ageMs;
    const token = { value: 'stored', scope: 'a', obtainedWallAt, expiresWallAt: obtainedWallAt + lifetimeMs };
    harness.result = { kind: 'found', token, from: 'a file' };
    return harness;
  };

  test('keeps its remaining lifetime, and is refreshed when due', async () => {
    const harness = found(HOUR_MS / 2);
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.value).toMatchObject({ value: 'stored', scope: 'a' });
    expect(harness.source.state()).toMatchObject({
      hasHadToken: true,
      validForMs: HOUR_MS / 2 - 100,
      nextRequestInMs: 0.3 * HOUR_MS - 100,
    });
    expect(harness.eventsOf('token-found')).toEqual([
      { kind: 'token-found', credential: 'default', from: 'a file', validForMs: HOUR_MS / 2 - 100 },
    ]);
    expect(harness.eventsOf('token-requested')).toEqual([]);
    harness.result = undefined;
    await harness.clock.advance(0.3 * HOUR_MS);
    expect(harness.source.current()?.token.value).toBe('token-2');
  });

  test('whose refresh is overdue is used and refreshed at once', async () => {
    const harness = found(0.9 * HOUR_MS);
    harness.source.start();
    await harness.clock.advance(100);
    expect(harness.source.current()?.token.value).toBe('stored');
    harness.result = undefined;
    await harness.clock.advance(100);
    expect(harness.source.current()?.token.value).toBe('token-2');
  });

  test('from a replica whose clock is ahead does not live longer', async () => {
    const harness = found(-30 * 60_000);
    harness.source.start();
    await harness.clock.advance(100);
    expect(harness.source.state().validForMs).toBe(HOUR_MS - 100);
  });

  test('that has expired is a failure', async () => {
    const harness = found(HOUR_MS);
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
  });
});

describe('granted scopes', () => {
  const grant = (scope: string | undefined): TokenRequestResult => ({
    kind: 'ok',
    value: 'x',
    lifetimeMs: 10_000,
    scope,
  });

  test('narrower than requested are reported once, shown in state, and reported again when complete', async () => {
    const harness = new SourceHarness({ scope: 'a b c', result: grant('b') });
    harness.source.start();
    await harness.clock.advance(40_000);
    expect(harness.requests).toBeGreaterThan(3);
    expect(harness.source.state().missingScopes).toEqual(['a', 'c']);
    harness.result = grant('c b a d');
    await harness.clock.advance(20_000);
    expect(harness.source.state().missingScopes).toEqual([]);
    expect(harness.eventsOf('token-scopes-missing').map(({ missing }) => missing)).toEqual([['a', 'c'], []]);
  });

  test.each([[undefined], ['a b']])('%j causes no event', async (scope) => {
    const harness = new SourceHarness({ scope: 'b a', result: grant(scope) });
    harness.source.start();
    await harness.clock.advance(20_000);
    expect(harness.source.state().missingScopes).toEqual([]);
    expect(harness.eventsOf('token-scopes-missing')).toEqual([]);
  });
});

test('every request emits an event, and neither events nor state hold a token', async () => {
  const harness = await SourceHarness.holding();
  harness.result = UNAVAILABLE;
  await harness.clock.advance(0.8 * HOUR_MS + 100);
  expect(harness.eventsOf('token-requested')).toEqual([
    {
      kind: 'token-requested',
      credential: 'default',
      outcome: 'ok',
      durationMs: 100,
      lifetimeMs: HOUR_MS,
      nextInMs: 0.8 * HOUR_MS - 100,
    },
    expect.objectContaining({ outcome: 'unavailable', detail: 'auth.test answered 500', durationMs: 100 }),
  ]);
  expect(JSON.stringify([harness.events, harness.source.state()])).not.toContain('token-1');
});

test('state shows the held token and the next request', async () => {
  const harness = new SourceHarness();
  expect(harness.source.state()).toMatchObject({
    status: 'none',
    serial: 0,
    hasHadToken: false,
    nextRequestInMs: undefined,
  });
  harness.source.start();
  await harness.clock.advance(100);
  expect(harness.source.state()).toEqual({
    credential: 'default',
    status: 'valid',
    serial: 1,
    scope: undefined,
    expiresWallAt: harness.clock.wallNow() - 100 + HOUR_MS,
    validForMs: HOUR_MS - 100,
    usesPrevious: false,
    missingScopes: [],
    consecutiveFailures: 0,
    lastFailure: undefined,
    circuit: 'closed',
    credentialFault: undefined,
    nextRequestInMs: 0.8 * HOUR_MS - 100,
    hasHadToken: true,
  });
});
