import { describe, expect, test } from 'vitest';
import type { SidecarError } from '../../../src/platform/errors.ts';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const HOUR_MS = 3_600_000;

describe('failures', () => {
  test('callers get the failure of the first fetch, and further calls are refused at once', async () => {
    const harness = new SourceHarness({ result: UNAVAILABLE });
    harness.source.start();
    const first = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    // Random 0.5 between 200 and 1000 ms.
    expect(first.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE', retryAfterMs: 600 });
    await harness.clock.advance(100);
    await expect(harness.source.waitForToken(harness.signal)).rejects.toMatchObject({ retryAfterMs: 500 });
    expect(harness.requests).toBe(1);
  });

  test('a call during the next attempt waits for it', async () => {
    const harness = new SourceHarness({ result: UNAVAILABLE });
    harness.source.start();
    await harness.clock.advance(100 + 600);
    harness.result = undefined;
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.value?.value).toBe('token-2');
    expect(harness.requests).toBe(2);
  });

  test('the backoff starts over once the endpoint has recovered', async () => {
    const harness = new SourceHarness({ result: UNAVAILABLE, lifetimeMs: 10_000 });
    harness.source.start();
    await harness.clock.advance(120_000);
    expect(harness.source.state().consecutiveFailures).toBeGreaterThan(5);
    harness.result = undefined;
    await harness.clock.advance(31_000);
    expect(harness.source.state()).toMatchObject({ consecutiveFailures: 0, lastFailure: undefined });
    harness.result = UNAVAILABLE;
    while (harness.source.state().consecutiveFailures === 0) await harness.clock.advance(50);
    expect(harness.source.state().nextRequestInMs).toBeLessThanOrEqual(600);
  });

  test.each([
    [20_000, 20_000],
    [0, 600],
    [10 * HOUR_MS, 300_000],
  ])('after a Retry-After of %d ms the next request follows after %d ms', async (retryAfterMs, waitMs) => {
    const harness = new SourceHarness({ result: { kind: 'unavailable', detail: 'busy', retryAfterMs } });
    harness.source.start();
    await harness.clock.advance(100 + waitMs - 1);
    expect(harness.requests).toBe(1);
    await harness.clock.advance(1);
    expect(harness.requests).toBe(2);
  });

  test('callers do not notice failures while the held token is valid', async () => {
    const harness = await SourceHarness.holding();
    harness.result = UNAVAILABLE;
    await harness.clock.advance(HOUR_MS - 20_000);
    expect(harness.source.state()).toMatchObject({ status: 'valid' });
    expect(harness.source.state().consecutiveFailures).toBeGreaterThan(5);
    expect((await harness.source.waitForToken(harness.signal)).value).toBe('token-1');
  });

  test('a fetch that throws counts as a failure and does not show the error', async () => {
    const harness = new SourceHarness({ fault: new Error('quotes the secret') });
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(JSON.stringify([harness.source.state(), harness.events, String(call.error)])).not.toContain('quotes');
  });
});

describe('an open circuit', () => {
  /** Without a token, after ten minutes of outage without a call. */
  async function createOutage(): Promise<SourceHarness> {
    const harness = new SourceHarness({ result: UNAVAILABLE });
    harness.source.start();
    await harness.clock.advance(600_000);
    expect(harness.source.state().circuit).toBe('open');
    return harness;
  }

  test('emits one event when it opens and one when it closes', async () => {
    const harness = await createOutage();
    expect(harness.requests).toBeLessThan(20);
    harness.result = undefined;
    await harness.clock.advance(60_000);
    expect(harness.eventsOf('token-circuit').map(({ phase }) => phase)).toEqual(['open', 'closed']);
    expect(harness.source.state()).toMatchObject({ circuit: 'closed', consecutiveFailures: 0 });
  });

  test('a call after a long idle time starts a probe and waits for it', async () => {
    const harness = await createOutage();
    await harness.clock.advance(10_000);
    harness.result = undefined;
    const call = watch(harness.source.waitForToken(harness.signal));
    expect(harness.source.state().circuit).toBe('half-open');
    await harness.clock.advance(100);
    expect(call.value).toBeDefined();
  });

  test('a refused call brings the next probe forward, and a token is held after its Retry-After', async () => {
    const harness = await createOutage();
    await harness.clock.advance(10_000);
    const first = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(200);
    expect(first.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    harness.result = undefined;
    const second = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(0);
    const { retryAfterMs } = second.error as SidecarError;
    expect(retryAfterMs).toBeLessThan(5_000);
    await harness.clock.advance((retryAfterMs ?? 0) + harness.latencyMs);
    expect(harness.source.current()?.token).toBeDefined();
  });

  test('requestIfMissing counts as a waiting caller', async () => {
    const harness = await createOutage();
    await harness.clock.advance(10_000);
    const before = harness.requests;
    for (let second = 0; second < 60; second++) {
      harness.source.requestIfMissing();
      await harness.clock.advance(1_000);
    }
    expect(harness.requests - before).toBeGreaterThan(10);
    expect(harness.requests - before).toBeLessThan(20);
    harness.result = undefined;
    harness.source.requestIfMissing();
    await harness.clock.advance(5_000);
    expect(harness.source.current()?.token).toBeDefined();
    const { requests } = harness;
    harness.source.requestIfMissing();
    expect(harness.requests).toBe(requests);
  });

  test('a probe that hangs is aborted and counts as a failure', async () => {
    const harness = await createOutage();
    await harness.clock.advance(10_000);
    harness.latencyMs = 10_000;
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(3_500);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(harness.source.state().lastFailure?.detail).toContain('brought nothing within 3500 ms');
    expect(harness.aborted).toBe(1);
  });
});

describe('a rejected client', () => {
  test('gets TOKEN_REJECTED with the OAuth error, and a request every 60 s only', async () => {
    const harness = new SourceHarness({ result: REJECTED });
    harness.source.start();
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_REJECTED', retryAfterMs: undefined });
    expect(String(call.error)).toContain('invalid_client');
    for (let n = 0; n < 50; n++) {
      await expect(harness.source.waitForToken(harness.signal)).rejects.toMatchObject({ code: 'TOKEN_REJECTED' });
      await harness.clock.advance(1_000);
    }
    expect(harness.requests).toBe(1);
    await harness.clock.advance(10_100);
    expect(harness.requests).toBe(2);
  });

  test('sends a request at once with new credentials', async () => {
    const harness = new SourceHarness({ result: REJECTED });
    harness.source.start();
    await harness.clock.advance(12_000);
    harness.result = undefined;
    harness.onChange?.();
    await harness.clock.advance(100);
    expect(harness.source.current()?.token.value).toBe('token-2');
    expect(harness.reasons).toEqual(['first', 'first']);
  });

  test('new credentials do not shorten a backoff', async () => {
    const harness = new SourceHarness({ result: { kind: 'unavailable', detail: 'busy', retryAfterMs: 20_000 } });
    harness.source.start();
    await harness.clock.advance(5_000);
    harness.onChange?.();
    await harness.clock.advance(15_000);
    expect(harness.requests).toBe(1);
    await harness.clock.advance(100);
    expect(harness.requests).toBe(2);
  });
});

describe('new credentials while a good token is held', () => {
  test('are tried at once, and their token replaces the held one', async () => {
    const harness = await SourceHarness.holding();
    harness.onChange?.();
    expect(harness.source.current()?.token.value).toBe('token-1');
    await harness.clock.advance(100);
    expect(harness.source.current()?.token.value).toBe('token-2');
    expect(harness.reasons).toEqual(['first', 'rotated']);
  });

  test('that are declined change neither the held token nor its schedule', async () => {
    const harness = await SourceHarness.holding();
    const before = harness.source.state();
    harness.result = { kind: 'declined' };
    harness.onChange?.();
    await harness.clock.advance(100);
    expect(harness.source.state()).toEqual({
      ...before,
      validForMs: (before.validForMs ?? 0) - 100,
      nextRequestInMs: (before.nextRequestInMs ?? 0) - 100,
    });
    expect(harness.eventsOf('token-requested')).toHaveLength(1);
    harness.result = undefined;
    await harness.clock.advance(0.8 * HOUR_MS);
    expect(harness.source.current()?.token.value).toBe('token-3');
  });

  test('that are declined while the held token is refused with 401 are followed by another request at once', async () => {
    const harness = await SourceHarness.holding();
    const held = await harness.source.waitForToken(harness.signal);
    harness.result = { kind: 'declined' };
    harness.onChange?.();
    const decision = watch(harness.refuse(held));
    await harness.clock.advance(100);
    harness.result = undefined;
    await harness.clock.advance(100);
    expect(decision.value).toBe('replay');
    expect(harness.reasons).toEqual(['first', 'rotated', 'unauthorized']);
    expect(harness.mostInFlight).toBe(1);
  });

  test('that are declined while refreshes are rejected leave the circuit open', async () => {
    const harness = await SourceHarness.holding();
    harness.result = REJECTED;
    await harness.clock.advance(0.9 * HOUR_MS);
    const before = harness.source.state();
    expect(before).toMatchObject({ circuit: 'open', status: 'valid' });
    harness.result = { kind: 'declined' };
    harness.onChange?.();
    expect(harness.source.state().circuit).toBe('half-open');
    await harness.clock.advance(100);
    expect(harness.source.state()).toMatchObject({ circuit: 'open', consecutiveFailures: before.consecutiveFailures });
  });

  test('that are seen during a request do not start another', async () => {
    const harness = new SourceHarness();
    harness.source.start();
    await harness.clock.advance(50);
    harness.onChange?.();
    await harness.clock.advance(1_000);
    expect(harness.requests).toBe(1);
  });
});

describe('stop', () => {
  test('aborts the fetch, rejects waiting callers, and leaves no timer', async () => {
    const harness = new SourceHarness({ latencyMs: 10_000 });
    const call = watch(harness.source.waitForToken(harness.signal));
    await harness.clock.advance(100);
    harness.source.stop();
    await harness.clock.advance(0);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(String(call.error)).toContain('shutting down');
    expect(harness.aborted).toBe(1);
    await expect(harness.source.waitForToken(harness.signal)).rejects.toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBe(1);
    expect(harness.source.current()?.token).toBeUndefined();
  });

  test('ends the refresh of a held token', async () => {
    const harness = await SourceHarness.holding();
    harness.source.stop();
    expect(harness.clock.pendingTimers).toBe(0);
    expect(harness.onChange).toBeUndefined();
    harness.source.start();
    harness.source.requestIfMissing();
    expect(harness.onChange).toBeUndefined();
    expect(harness.requests).toBe(1);
  });
});
