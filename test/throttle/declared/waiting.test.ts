/** What a request meets when declared limits are used up: it waits, passes others, or gets QUOTA_EXHAUSTED. */
import { describe, expect, it } from 'vitest';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import type { QueueClass } from '../../../src/throttle/throttle.ts';
import { ACCEPTED, Fixture, rateLimited, type Asking } from '../fixture.ts';

const MINUTE: DeclaredLimit = {
  ...{ name: 'minute', calls: 5, per: '1m', window: 'sliding', timeZone: 'UTC' },
  ...{ countsRefused: true, spread: 'none', reserve: 0 },
};
const HIGH: QueueClass = { priority: 'high', caller: '' };

/** Asks, and finishes the call at once where it is granted. */
async function call(
  fixture: Fixture,
  withinMs?: number,
  queueClass?: QueueClass,
): Promise<Pick<Asking, 'outcome' | 'error'>> {
  try {
    const asking = fixture.ask(withinMs, queueClass);
    await fixture.clock.advance(0);
    asking.permit?.report(ACCEPTED);
    asking.permit?.release();
    return asking;
  } catch (error) {
    return { outcome: 'refused', error };
  }
}

async function useUp(fixture: Fixture, calls: number): Promise<void> {
  for (let count = 0; count < calls; count++) expect((await call(fixture)).outcome).toBe('granted');
}

describe('past a declared limit', () => {
  it('a request that may wait as long gets its permit when the oldest call stops to count', async () => {
    const fixture = new Fixture({ limits: [MINUTE], timeoutMs: 120_000 });
    await useUp(fixture, 5);
    const asking = await call(fixture, 120_000);
    expect(asking.outcome).toBe('waits');
    await fixture.clock.advance(60_000);
    expect(asking.outcome).toBe('waits');
    await fixture.clock.advance(600);
    expect(asking.outcome).toBe('granted');
    expect(fixture.throttle.state().limits).toMatchObject([{ name: 'minute', calls: 5, used: 1 }]);
  });

  it('one that may not gets 503 QUOTA_EXHAUSTED at once, and at the stated instant a call may go', async () => {
    const fixture = new Fixture({ limits: [MINUTE] });
    await useUp(fixture, 5);
    const { error } = await call(fixture);
    expect(error).toMatchObject({ code: 'QUOTA_EXHAUSTED' });
    expect(String(error)).toContain('The limit minute of 5 calls per 1m');
    expect(fixture.rejections).toEqual(['quota']);
    const { retryAfterMs = NaN } = error as { retryAfterMs?: number };
    await fixture.clock.advance(retryAfterMs - 1);
    expect((await call(fixture)).outcome).toBe('waits');
    await fixture.clock.advance(1);
    expect((await call(fixture)).outcome).toBe('granted');
  });

  it('one that would wait too long for another reason gets QUEUE_TIMEOUT', async () => {
    const fixture = new Fixture({ limits: [MINUTE] });
    const paused = fixture.ask();
    await fixture.clock.advance(0);
    paused.permit?.report(rateLimited('45'));
    paused.permit?.release();
    expect((await call(fixture)).error).toMatchObject({ code: 'QUEUE_TIMEOUT' });
  });

  it('waiting ones get QUOTA_EXHAUSTED when their time is up', async () => {
    const fixture = new Fixture({ limits: [{ ...MINUTE, reserve: 4 }], timeoutMs: 70_000 });
    await useUp(fixture, 1);
    const normal = await call(fixture, 70_000);
    expect(normal.outcome).toBe('waits');
    // High priority uses what the limit allows to others.
    for (let count = 0; count < 4; count++) {
      await fixture.clock.advance(17_500);
      await call(fixture, 70_000, HIGH);
    }
    expect(normal.error).toMatchObject({ code: 'QUOTA_EXHAUSTED' });
  });

  it('several limits are taken together: a call that one refuses costs the other nothing', async () => {
    const limits = [MINUTE, { ...MINUTE, name: 'hour', calls: 100, per: '1h' }];
    const fixture = new Fixture({ limits });
    await useUp(fixture, 5);
    for (let count = 0; count < 50; count++) await call(fixture);
    expect(fixture.throttle.state().limits?.map(({ used }) => used)).toEqual([5, 5]);
  });

  it('a call that never got a connection counts for none, one that may have been received does', async () => {
    const fixture = new Fixture({ limits: [MINUTE] });
    for (const isSent of [false, true]) {
      const asking = fixture.ask();
      await fixture.clock.advance(0);
      if (isSent) asking.permit?.markSent();
      asking.permit?.release();
      expect(fixture.throttle.state().limits).toMatchObject([{ used: isSent ? 1 : 0 }]);
    }
  });

  it('a permit that is given back counts for none', async () => {
    const fixture = new Fixture({ limits: [MINUTE] });
    const asking = fixture.ask();
    await fixture.clock.advance(0);
    asking.permit?.cancel();
    expect(fixture.throttle.state().limits).toMatchObject([{ used: 0 }]);
  });
});

it('with the reserve left, requests of high priority pass those that wait', async () => {
  const fixture = new Fixture({ limits: [{ ...MINUTE, reserve: 2 }], timeoutMs: 90_000 });
  await useUp(fixture, 3);
  const [first, second] = [await call(fixture, 90_000), await call(fixture, 90_000)];
  expect((await call(fixture, 90_000, HIGH)).outcome).toBe('granted');
  expect((await call(fixture, 90_000, HIGH)).outcome).toBe('granted');
  expect((await call(fixture, 90_000, HIGH)).outcome).toBe('waits');
  expect([first.outcome, second.outcome]).toEqual(['waits', 'waits']);
});

it('auto goes on learning below a declared limit', async () => {
  const fixture = new Fixture({ limits: [{ ...MINUTE, calls: 1000 }] });
  const asking = fixture.ask();
  await fixture.clock.advance(0);
  asking.permit?.report(rateLimited('5'));
  asking.permit?.release();
  expect(fixture.throttle.state()).toMatchObject({ pausedMs: 5000, mode: 'auto', limits: [{ used: 1 }] });
});

it('limits that are declared, changed or removed by a reload hold at once', async () => {
  const fixture = new Fixture();
  const terms = (limits: readonly DeclaredLimit[]) => ({
    throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, limits } as const,
    queue: { max: 1000, timeoutMs: 30_000 },
  });
  await useUp(fixture, 3);
  fixture.throttle.reconfigure(terms([{ ...MINUTE, calls: 2 }]));
  await useUp(fixture, 2);
  expect((await call(fixture)).error).toMatchObject({ code: 'QUOTA_EXHAUSTED' });
  fixture.throttle.reconfigure(terms([{ ...MINUTE, calls: 3 }]));
  await useUp(fixture, 1);
  expect((await call(fixture)).error).toMatchObject({ code: 'QUOTA_EXHAUSTED' });
  fixture.throttle.reconfigure(terms([]));
  await useUp(fixture, 20);
});
