import { describe, expect, test } from 'vitest';
import type { SidecarError } from '../../../src/platform/errors.ts';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const HOUR_MS = 3_600_000;

describe('failures', () => {
  test('the first fetch is awaited, its failure told, and further calls are refused at once', async () => {
    const harness = new SourceHarness({ answer: UNAVAILABLE });
    harness.source.start();
    const first = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(100);
    // chance 0.5 between 200 and 1000 ms
    expect(first.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE', retryAfterMs: 600 });
    await harness.clock.advance(100);
    await expect(harness.source.waitForToken(harness.patient)).rejects.toMatchObject({ retryAfterMs: 500 });
    expect(harness.requests).toBe(1);
  });

  test('a call in the next attempt awaits that one', async () => {
    const harness = new SourceHarness({ answer: UNAVAILABLE });
    harness.source.start();
    await harness.clock.advance(100 + 600);
    harness.answer = undefined;
    const call = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(100);
    expect(call.value?.value).toBe('token-2');
    expect(harness.requests).toBe(2);
  });

  test('the backoff starts over once the endpoint has recovered', async () => {
    const harness = new SourceHarness({ answer: UNAVAILABLE, lifetimeMs: 10_000 });
    harness.source.start();
    await harness.clock.advance(120_000);
    expect(harness.source.state().consecutiveFailures).toBeGreaterThan(5);
    harness.answer = undefined;
    await harness.clock.advance(31_000);
    expect(harness.source.state()).toMatchObject({ consecutiveFailures: 0, lastFailure: undefined });
    harness.answer = UNAVAILABLE;
    while (harness.source.state().consecutiveFailures === 0) await harness.clock.advance(50);
    expect(harness.source.state().nextRequestInMs).toBeLessThanOrEqual(600);
  });

  test.each([
    [20_000, 20_000],
    [0, 600],
    [10 * HOUR_MS, 300_000],
  ])("the endpoint's own Retry-After of %d ms: asked again after %d ms", async (retryAfterMs, waitMs) => {
    const harness = new SourceHarness({ answer: { kind: 'unavailable', detail: 'busy', retryAfterMs } });
    harness.source.start();
    await harness.clock.advance(100 + waitMs - 1);
    expect(harness.requests).toBe(1);
    await harness.clock.advance(1);
    expect(harness.requests).toBe(2);
  });

  test('nobody notices failures while the held token is valid', async () => {
    const harness = await SourceHarness.holding();
    harness.answer = UNAVAILABLE;
    await harness.clock.advance(HOUR_MS - 20_000);
    expect(harness.source.state()).toMatchObject({ status: 'valid' });
    expect(harness.source.state().consecutiveFailures).toBeGreaterThan(5);
    expect((await harness.source.waitForToken(harness.patient)).value).toBe('token-1');
  });

  test('a request that throws counts as a failure and tells nothing of what was thrown', async () => {
    const harness = new SourceHarness({ fault: new Error('quotes the secret') });
    const call = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(JSON.stringify([harness.source.state(), harness.events, String(call.error)])).not.toContain('quotes');
  });
});

describe('a circuit that has opened', () => {
  /** With no token, the endpoint down for ten minutes, and nobody who asked in the last of them. */
  async function left(): Promise<SourceHarness> {
    const harness = new SourceHarness({ answer: UNAVAILABLE });
    harness.source.start();
    await harness.clock.advance(600_000);
    expect(harness.source.state().circuit).toBe('open');
    return harness;
  }

  test('is told once when it opens and once when it closes', async () => {
    const harness = await left();
    expect(harness.requests).toBeLessThan(20);
    harness.answer = undefined;
    await harness.clock.advance(60_000);
    expect(harness.eventsOf('token-circuit').map(({ phase }) => phase)).toEqual(['open', 'closed']);
    expect(harness.source.state()).toMatchObject({ circuit: 'closed', consecutiveFailures: 0 });
  });

  test('a caller after a long silence is a probe of its own, and waits for it', async () => {
    const harness = await left();
    await harness.clock.advance(10_000);
    harness.answer = undefined;
    const call = watch(harness.source.waitForToken(harness.patient));
    expect(harness.source.state().circuit).toBe('half-open');
    await harness.clock.advance(100);
    expect(call.value).toBeDefined();
  });

  test('one who is refused has the next probe brought forward, and finds its token when told to come back', async () => {
    const harness = await left();
    await harness.clock.advance(10_000);
    const first = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(200);
    expect(first.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    harness.answer = undefined;
    const second = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(0);
    const { retryAfterMs } = second.error as SidecarError;
    expect(retryAfterMs).toBeLessThan(5_000);
    await harness.clock.advance((retryAfterMs ?? 0) + harness.latencyMs);
    expect(harness.source.current()).toBeDefined();
  });

  test('whoever waits for readiness counts as somebody who asks', async () => {
    const harness = await left();
    await harness.clock.advance(10_000);
    const before = harness.requests;
    for (let second = 0; second < 60; second++) {
      harness.source.requestIfMissing();
      await harness.clock.advance(1_000);
    }
    expect(harness.requests - before).toBeGreaterThan(10);
    expect(harness.requests - before).toBeLessThan(20);
    harness.answer = undefined;
    harness.source.requestIfMissing();
    await harness.clock.advance(5_000);
    expect(harness.source.current()).toBeDefined();
    const { requests } = harness;
    harness.source.requestIfMissing();
    expect(harness.requests).toBe(requests);
  });

  test('a probe that hangs is given up, and fails like one that was answered', async () => {
    const harness = await left();
    await harness.clock.advance(10_000);
    harness.latencyMs = 10_000;
    const call = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(3_500);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(harness.source.state().lastFailure?.detail).toContain('brought nothing within 3500 ms');
    expect(harness.aborted).toBe(1);
  });
});

describe('a refused client', () => {
  test('is told so by its OAuth error and asked again every 60 s only', async () => {
    const harness = new SourceHarness({ answer: REJECTED });
    harness.source.start();
    const call = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_REJECTED', retryAfterMs: undefined });
    expect(String(call.error)).toContain('invalid_client');
    for (let n = 0; n < 50; n++) {
      await expect(harness.source.waitForToken(harness.patient)).rejects.toMatchObject({ code: 'TOKEN_REJECTED' });
      await harness.clock.advance(1_000);
    }
    expect(harness.requests).toBe(1);
    await harness.clock.advance(10_100);
    expect(harness.requests).toBe(2);
  });

  test('is asked again at once with new credentials', async () => {
    const harness = new SourceHarness({ answer: REJECTED });
    harness.source.start();
    await harness.clock.advance(12_000);
    harness.answer = undefined;
    harness.onNews?.();
    await harness.clock.advance(100);
    expect(harness.source.current()?.value).toBe('token-2');
    expect(harness.reasons).toEqual(['first', 'first']);
  });

  test('a server in trouble is not asked sooner because of new credentials', async () => {
    const harness = new SourceHarness({ answer: { kind: 'unavailable', detail: 'busy', retryAfterMs: 20_000 } });
    harness.source.start();
    await harness.clock.advance(5_000);
    harness.onNews?.();
    await harness.clock.advance(15_000);
    expect(harness.requests).toBe(1);
    await harness.clock.advance(100);
    expect(harness.requests).toBe(2);
  });
});

describe('new credentials while a good token is held', () => {
  test('are tried at once, and their token takes over when it is there', async () => {
    const harness = await SourceHarness.holding();
    harness.onNews?.();
    expect(harness.source.current()?.value).toBe('token-1');
    await harness.clock.advance(100);
    expect(harness.source.current()?.value).toBe('token-2');
    expect(harness.reasons).toEqual(['first', 'rotated']);
  });

  test('declined: the held token and its schedule stay as they were', async () => {
    const harness = await SourceHarness.holding();
    const before = harness.source.state();
    harness.answer = { kind: 'declined' };
    harness.onNews?.();
    await harness.clock.advance(100);
    expect(harness.source.state()).toEqual({
      ...before,
      validForMs: (before.validForMs ?? 0) - 100,
      nextRequestInMs: (before.nextRequestInMs ?? 0) - 100,
    });
    expect(harness.eventsOf('token-requested')).toHaveLength(1);
    harness.answer = undefined;
    await harness.clock.advance(0.8 * HOUR_MS);
    expect(harness.source.current()?.value).toBe('token-3');
  });

  test('declined while the held token was refused with 401: another one is asked for in the same breath', async () => {
    const harness = await SourceHarness.holding();
    const held = await harness.source.waitForToken(harness.patient);
    harness.answer = { kind: 'declined' };
    harness.onNews?.();
    const verdict = watch(harness.source.handleUnauthorized(held, harness.patient));
    await harness.clock.advance(100);
    harness.answer = undefined;
    await harness.clock.advance(100);
    expect(verdict.value).toEqual({ kind: 'replay' });
    expect(harness.reasons).toEqual(['first', 'rotated', 'unauthorized']);
    expect(harness.mostInFlight).toBe(1);
  });

  test('declined while renewals are refused: the circuit is as open as before', async () => {
    const harness = await SourceHarness.holding();
    harness.answer = REJECTED;
    await harness.clock.advance(0.9 * HOUR_MS);
    const before = harness.source.state();
    expect(before).toMatchObject({ circuit: 'open', status: 'valid' });
    harness.answer = { kind: 'declined' };
    harness.onNews?.();
    expect(harness.source.state().circuit).toBe('half-open');
    await harness.clock.advance(100);
    expect(harness.source.state()).toMatchObject({ circuit: 'open', consecutiveFailures: before.consecutiveFailures });
  });

  test('news during a request are left to the next look', async () => {
    const harness = new SourceHarness();
    harness.source.start();
    await harness.clock.advance(50);
    harness.onNews?.();
    await harness.clock.advance(1_000);
    expect(harness.requests).toBe(1);
  });
});

describe('stop', () => {
  test('aborts the fetch, refuses those who wait, and leaves no timer', async () => {
    const harness = new SourceHarness({ latencyMs: 10_000 });
    const call = watch(harness.source.waitForToken(harness.patient));
    await harness.clock.advance(100);
    harness.source.stop();
    await harness.clock.advance(0);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(String(call.error)).toContain('shutting down');
    expect(harness.aborted).toBe(1);
    await expect(harness.source.waitForToken(harness.patient)).rejects.toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBe(1);
    expect(harness.source.current()).toBeUndefined();
  });

  test('ends the refresh of a held token', async () => {
    const harness = await SourceHarness.holding();
    harness.source.stop();
    expect(harness.clock.pendingTimers).toBe(0);
    expect(harness.onNews).toBeUndefined();
    harness.source.start();
    harness.source.requestIfMissing();
    expect(harness.onNews).toBeUndefined();
    expect(harness.requests).toBe(1);
  });
});
