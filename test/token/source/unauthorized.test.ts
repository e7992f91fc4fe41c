import { describe, expect, test } from 'vitest';
import type { Token } from '../../../src/token/token.ts';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

async function holding(): Promise<{ harness: SourceHarness; token: Token }> {
  const harness = new SourceHarness();
  const call = watch(harness.source.waitForToken(harness.signal));
  await harness.clock.advance(100);
  if (call.value === undefined) throw new Error('no first token');
  return { harness, token: call.value };
}

/** One 401 for the current token, and the decision. */
async function refuse(harness: SourceHarness): Promise<string | undefined> {
  const token = harness.source.current()?.token;
  if (token === undefined) throw new Error('no token in use');
  const decision = watch(harness.refuse(token));
  await harness.clock.advance(harness.latencyMs);
  return decision.value;
}

test('30 concurrent 401s for one token cause one refresh and 30 replays', async () => {
  const { harness, token } = await holding();
  const decisions = Array.from({ length: 30 }, () => harness.refuse(token));
  await harness.clock.advance(100);
  expect(await Promise.all(decisions)).toEqual(Array(30).fill('replay'));
  expect(harness.requests).toBe(2);
  expect(harness.eventsOf('token-invalidated')).toEqual([
    { kind: 'token-invalidated', credential: 'default', reason: 'unauthorized' },
  ]);
});

test('while a suspect token is refreshed, callers wait for the next one', async () => {
  const { harness, token } = await holding();
  void harness.refuse(token);
  expect(harness.source.current()?.token).toBeUndefined();
  expect(harness.source.state().status).toBe('suspect');
  const call = watch(harness.source.waitForToken(harness.signal));
  await harness.clock.advance(100);
  expect(call.value?.value).toBe('token-2');
  expect(harness.source.state().status).toBe('valid');
});

test.each([0, 100, 500])(
  '40 calls with a permanent 401, %d ms apart, cause at most 3 token requests',
  async (intervalMs) => {
    const { harness } = await holding();
    for (let call = 0; call < 40; call++) {
      // The replay's own 401 goes to the client, without a wait.
      if ((await refuse(harness)) === 'replay')
        harness.source.recordRejected(harness.useOf(harness.source.current()!.token));
      await harness.clock.advance(intervalMs);
    }
    expect(harness.requests).toBeLessThanOrEqual(3);
    expect(harness.source.current()?.token).toBeDefined();
  },
);

test('late 401s for an older token return replay at once and change nothing', async () => {
  const { harness, token } = await holding();
  await refuse(harness);
  await harness.clock.advance(60_000);
  const decisions = Array.from({ length: 50 }, () => harness.refuse(token));
  expect(await Promise.all(decisions)).toEqual(Array(50).fill('replay'));
  expect(harness.requests).toBe(2);
  expect(harness.source.current()?.token.serial).toBe(2);
});

test('a late 401 while the newer token is itself suspect waits for the same refresh', async () => {
  const { harness, token } = await holding();
  await refuse(harness);
  await harness.clock.advance(60_000);
  const second = harness.source.current()?.token;
  if (second === undefined) throw new Error('no second token');
  const late = [second, token].map((refused) => watch(harness.refuse(refused)));
  await harness.clock.advance(100);
  expect(late.map((decision) => decision.value)).toEqual(['replay', 'replay']);
  expect(harness.requests).toBe(3);
});

test('a 401 during the regular refresh joins it', async () => {
  const { harness, token } = await holding();
  await harness.clock.advance(0.8 * 3_600_000 - 50);
  expect(harness.requests).toBe(2);
  const decision = watch(harness.refuse(token));
  await harness.clock.advance(100);
  expect(decision.value).toBe('replay');
  expect(harness.requests).toBe(2);
});

test('a 401 for a token that has expired waits for the next one', async () => {
  const { harness, token } = await holding();
  harness.clock.stepWall(2 * 3_600_000);
  const decision = watch(harness.refuse(token));
  await harness.clock.advance(100);
  expect(decision.value).toBe('replay');
  expect(harness.eventsOf('token-invalidated')).toEqual([]);
});

test("a caller's abort ends only its own wait", async () => {
  const { harness, token } = await holding();
  const leaver = new AbortController();
  const left = watch(harness.refuse(token, leaver.signal));
  const stayed = watch(harness.refuse(token));
  const reason = new Error('client left');
  leaver.abort(reason);
  await harness.clock.advance(100);
  expect(left.error).toBe(reason);
  expect(stayed.value).toBe('replay');
});

describe('when the refresh fails', () => {
  test.each([UNAVAILABLE, REJECTED])(
    'an unexpired token stays in use and its 401s pass through ($kind)',
    async (result) => {
      const { harness, token } = await holding();
      harness.result = result;
      const waiter = watch(harness.source.waitForToken(harness.signal));
      expect(await refuse(harness)).toBe('pass-through');
      expect(waiter.value).toBe(token);
      expect(harness.source.current()?.token).toBe(token);
      expect(harness.source.state().status).toBe('suspect');
      const before = harness.requests;
      for (let n = 0; n < 20; n++) expect(await refuse(harness)).toBe('pass-through');
      expect(harness.requests).toBeLessThanOrEqual(before + 3);
      expect(harness.eventsOf('token-invalidated')).toHaveLength(1);
    },
  );

  test('callers that wait for the refresh get the suspect token', async () => {
    const { harness, token } = await holding();
    harness.result = UNAVAILABLE;
    void harness.refuse(token);
    const waiter = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(waiter.value).toBe(token);
  });

  test('the request is repeated with backoff, and its token replaces the suspect one', async () => {
    const { harness } = await holding();
    harness.result = UNAVAILABLE;
    await refuse(harness);
    harness.result = undefined;
    await harness.clock.advance(700);
    expect(harness.source.current()?.token.serial).toBe(2);
    expect(harness.source.state().status).toBe('valid');
  });

  test('a 401 during a backoff sends no request', async () => {
    const { harness } = await holding();
    harness.result = { kind: 'unavailable', detail: 'busy', retryAfterMs: 300_000 };
    await harness.clock.advance(0.8 * 3_600_000 + 200);
    expect(harness.requests).toBe(2);
    expect(await refuse(harness)).toBe('pass-through');
    expect(harness.requests).toBe(2);
    expect(harness.source.current()?.token.serial).toBe(1);
  });
});

describe('cooldown', () => {
  /** Milliseconds until a 401 for the token in use causes a token request again. */
  async function measureCooldown(harness: SourceHarness): Promise<number> {
    const before = harness.requests;
    const from = harness.requestedAt.at(-1) ?? 0;
    while (harness.requests === before) {
      await refuse(harness);
      if (harness.requests === before) await harness.clock.advance(400);
    }
    return (harness.requestedAt.at(-1) ?? 0) - from;
  }

  test('doubles from 5 s to 300 s while fresh tokens are refused too', async () => {
    const { harness } = await holding();
    harness.lifetimeMs = 24 * 3_600_000;
    await refuse(harness);
    const waits: number[] = [];
    for (let n = 0; n < 8; n++) waits.push(await measureCooldown(harness));
    expect(waits.map((wait) => Math.round(wait / 1_000))).toEqual([10, 20, 40, 80, 160, 300, 300, 300]);
  });

  test('goes back to 5 s when a replay is accepted', async () => {
    const { harness } = await holding();
    harness.lifetimeMs = 24 * 3_600_000;
    await refuse(harness);
    for (let n = 0; n < 3; n++) await measureCooldown(harness);
    const accepted = harness.source.current()?.token;
    if (accepted === undefined) throw new Error('no token in use');
    harness.accept(accepted);
    expect(Math.round((await measureCooldown(harness)) / 1_000)).toBe(5);
  });

  test('is not reset by an older token', async () => {
    const { harness, token } = await holding();
    await refuse(harness);
    await measureCooldown(harness);
    await refuse(harness);
    harness.accept(token);
    expect(Math.round((await measureCooldown(harness)) / 1_000)).toBe(20);
  });

  test('a token revoked every minute is replaced every time', async () => {
    const { harness } = await holding();
    for (let n = 0; n < 5; n++) {
      expect(await refuse(harness)).toBe('replay');
      const accepted = harness.source.current()?.token;
      if (accepted !== undefined) harness.accept(accepted);
      await harness.clock.advance(60_000);
    }
    expect(harness.requests).toBe(6);
  });
});

test('stop lets a waiting 401 pass through', async () => {
  const { harness, token } = await holding();
  const decision = watch(harness.refuse(token));
  harness.source.stop();
  await harness.clock.advance(0);
  expect(decision.value).toBe('pass-through');
});
