import { describe, expect, test } from 'vitest';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const HOUR_MS = 3_600_000;

describe('failures', () => {
  test('the first fetch is awaited, its failure told, and further calls are refused at once', async () => {
    const harness = new SourceHarness({ answer: UNAVAILABLE });
    harness.source.start();
    const first = watch(harness.source.usable(harness.patient));
    await harness.clock.advance(100);
    // chance 0.5 between 200 and 1000 ms
    expect(first.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE', retryAfterMs: 600 });
    await harness.clock.advance(100);
    await expect(harness.source.usable(harness.patient)).rejects.toMatchObject({ retryAfterMs: 500 });
    expect(harness.requests).toBe(1);
  });

  test('a call in the next attempt awaits that one', async () => {
    const harness = new SourceHarness({ answer: UNAVAILABLE });
    harness.source.start();
    await harness.clock.advance(100 + 600);
    harness.answer = undefined;
    const call = watch(harness.source.usable(harness.patient));
    await harness.clock.advance(100);
    expect(call.value?.value).toBe('token-2');
    expect(harness.requests).toBe(2);
  });

  test.each([
    [0, 1_300],
    [0.999, 200],
  ])('an hour of failures costs a bounded number of requests (chance %d)', async (random, most) => {
    const harness = new SourceHarness({ answer: UNAVAILABLE, random, latencyMs: 2_700 });
    harness.source.start();
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBeLessThan(most);
    expect(harness.requests).toBeGreaterThan(100);
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
    [10 * HOUR_MS, HOUR_MS],
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
    expect((await harness.source.usable(harness.patient)).value).toBe('token-1');
  });

  test('a request that throws counts as a failure and tells nothing of what was thrown', async () => {
    const harness = new SourceHarness({ fault: new Error('quotes the secret') });
    const call = watch(harness.source.usable(harness.patient));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(JSON.stringify([harness.source.state(), harness.events, String(call.error)])).not.toContain('quotes');
  });
});

describe('a refused client', () => {
  test('is told so by its OAuth error and asked again every 60 s only', async () => {
    const harness = new SourceHarness({ answer: REJECTED });
    harness.source.start();
    const call = watch(harness.source.usable(harness.patient));
    await harness.clock.advance(100);
    expect(call.error).toMatchObject({ code: 'TOKEN_REJECTED', retryAfterMs: undefined });
    expect(String(call.error)).toContain('invalid_client');
    for (let n = 0; n < 50; n++) {
      await expect(harness.source.usable(harness.patient)).rejects.toMatchObject({ code: 'TOKEN_REJECTED' });
      await harness.clock.advance(1_000);
    }
    expect(harness.requests).toBe(1);
    await harness.clock.advance(10_100);
    expect(harness.requests).toBe(2);
  });

  test('is asked again within 5 s of a new secret', async () => {
    const harness = new SourceHarness({ answer: REJECTED });
    harness.source.start();
    await harness.clock.advance(12_000);
    expect(harness.secretPolls).toBe(2);
    harness.secretChanged = true;
    harness.answer = undefined;
    await harness.clock.advance(5_000);
    expect(harness.requests).toBe(2);
    expect(harness.source.current()?.value).toBe('token-2');
    await harness.clock.advance(60_000);
    expect(harness.secretPolls).toBe(3);
  });
});

describe('stop', () => {
  test('aborts the fetch, refuses those who wait, and leaves no timer', async () => {
    const harness = new SourceHarness({ latencyMs: 10_000 });
    const call = watch(harness.source.usable(harness.patient));
    await harness.clock.advance(100);
    harness.source.stop();
    await harness.clock.advance(0);
    expect(call.error).toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    expect(String(call.error)).toContain('shutting down');
    expect(harness.aborted).toBe(1);
    await expect(harness.source.usable(harness.patient)).rejects.toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
    await harness.clock.advance(HOUR_MS);
    expect(harness.requests).toBe(1);
    expect(harness.source.current()).toBeUndefined();
  });

  test('ends the refresh of a held token', async () => {
    const harness = await SourceHarness.holding();
    harness.source.stop();
    expect(harness.clock.pendingTimers).toBe(0);
  });
});
