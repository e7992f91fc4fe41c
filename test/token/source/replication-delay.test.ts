/** APIs that accept a new token only some time after its issue, all nodes together or one after the other: which token the calls use. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chooseRefreshDelayMs, usableUntil } from '../../../src/token/source/refresh-schedule.ts';
import { ReplicatedApi, seen401s, type ApiCall } from './replicated-api.ts';

const CALL_EVERY_MS = 50;

const serialsOf = (calls: readonly ApiCall[]): number[] =>
  calls.flatMap(({ sent }) => sent).map(({ token }) => token.serial);
const refusalsOf = (calls: readonly ApiCall[], serial: number) =>
  calls.flatMap(({ sent }) => sent).filter(({ token, status }) => token.serial === serial && status === 401);

/** Ages of the newest token at the refusals of others than those in flight together. */
function agesOfTests(calls: readonly ApiCall[], serial: number): number[] {
  const ages = refusalsOf(calls, serial).map(({ token, at }) => at - token.obtainedAt);
  return ages.filter((age, index) => index === 0 || age - (ages[index - 1] ?? 0) > 500);
}

async function untilRenewal({ harness }: ReplicatedApi): Promise<void> {
  await harness.clock.advance((harness.source.state().nextRequestInMs ?? NaN) + harness.latencyMs);
}

describe('after a renewal', () => {
  test.each([
    { lifetimeMs: 3_600_000, usedFromMs: 15_000 },
    { lifetimeMs: 10_000, usedFromMs: 5_000 },
  ])(
    'the previous token is used until the newest, of $lifetimeMs ms, is $usedFromMs ms old',
    async ({ lifetimeMs, usedFromMs }) => {
      const api = await ReplicatedApi.warm({});
      api.harness.lifetimeMs = lifetimeMs;
      await untilRenewal(api);
      const obtainedAt = api.harness.requestedAt[1] ?? NaN;
      const calls: ApiCall[] = [];
      while (api.harness.clock.now() < obtainedAt + usedFromMs + 500) {
        calls.push(api.start());
        await api.harness.clock.advance(CALL_EVERY_MS);
      }
      for (const { sent, startedAt } of calls)
        expect(sent.map(({ token }) => token.serial)).toEqual([startedAt < obtainedAt + usedFromMs ? 1 : 2]);
    },
  );

  test('the time in which the previous token is used is no fault: state, events and log show the newest', async () => {
    const api = await ReplicatedApi.warm({});
    await untilRenewal(api);
    await api.load(1_000, CALL_EVERY_MS);
    const { source } = api.harness;
    expect(source.state()).toMatchObject({ status: 'valid', usesPrevious: false, serial: 2 });
    expect(source.state().validForMs).toBeGreaterThan(3_580_000);
    expect(api.harness.eventsOf('token-not-accepted-yet')).toEqual([]);
    expect(api.harness.eventsOf('token-accepted-late')).toEqual([]);
  });

  test('a newest token whose age by its issue is 15 s already is used at once', async () => {
    const api = await ReplicatedApi.warm({});
    const wallNow = api.harness.clock.wallNow() + 0.8 * 3_600_000;
    const token = { value: 'of-another-replica', scope: undefined };
    api.harness.result = {
      kind: 'found',
      token: { ...token, obtainedWallAt: wallNow - 30_000, expiresWallAt: wallNow + 3_600_000 },
      from: 'another replica',
    };
    await untilRenewal(api);
    expect(api.harness.source.current()?.token.value).toBe('of-another-replica');
  });

  test('a token that new credentials brought is used at once, and the previous one while it is refused', async () => {
    const api = await ReplicatedApi.warm({});
    const rotate = async (value: string): Promise<void> => {
      api.harness.result = { kind: 'ok', value, lifetimeMs: 3_600_000, scope: undefined, isUsedAtOnce: true };
      api.harness.onChange?.();
      await api.harness.clock.advance(api.harness.latencyMs);
    };
    const inFlight = api.start({ canReplay: false });
    api.harness.latencyMs = 10;
    await rotate('rotated-1');
    expect(serialsOf(await api.load(500, CALL_EVERY_MS, 2))).toEqual(Array(10).fill(2));
    expect(inFlight.status).toBe(200);
    api.delayOf = ({ serial }) => (serial === 3 ? 3_000 : 0);
    await rotate('rotated-2');
    const calls = await api.load(6_000, CALL_EVERY_MS);
    expect(seen401s(calls)).toEqual([]);
    expect(serialsOf(calls)[0]).toBe(3);
    expect(agesOfTests(calls, 3).map((age) => Math.round(age / 1_000))).toEqual([0, 1, 2]);
    expect(serialsOf(calls).at(-1)).toBe(3);
  });
});

describe('a 401 for the previous token', () => {
  test('switches to the newest at once, and later renewals use the newest at once', async () => {
    const api = await ReplicatedApi.warm({ revokesOnIssue: true });
    const first = await api.loadAroundRenewals(1, CALL_EVERY_MS, 3);
    // Those in flight when the server revoked the token.
    expect(refusalsOf(first, 1).length).toBeLessThanOrEqual(4);
    expect(seen401s(first).length).toBeLessThanOrEqual(1);
    const later = await api.loadAroundRenewals(3, CALL_EVERY_MS, 3);
    expect(seen401s(later).filter((call) => !isInFlightAtRenewal(api, call))).toEqual([]);
    expect(api.harness.requests).toBe(5);
  });

  test('of an older call, which comes when the newest is in use, teaches nothing', async () => {
    const api = await ReplicatedApi.warm({});
    const { source, clock } = api.harness;
    const old = source.current()!;
    await untilRenewal(api);
    await api.load(16_000, CALL_EVERY_MS);
    source.recordRejected(old);
    await untilRenewal(api);
    expect(source.state().serial).toBe(3);
    expect(source.current()?.token.serial).toBe(2);
    await clock.advance(15_000);
    expect(source.current()?.token.serial).toBe(3);
  });
});

describe('a newest token that is refused and was never accepted', () => {
  test('is replaced by the previous one, and used again at one and a half times its age', async () => {
    const api = await ReplicatedApi.warm({ nodeDelaysMs: [60_000] });
    const calls: ApiCall[] = await api.loadAroundRenewals(1, CALL_EVERY_MS, 5);
    expect(api.harness.source.state()).toMatchObject({ status: 'valid', usesPrevious: true });
    calls.push(...(await api.load(60_000, CALL_EVERY_MS, 5)));
    expect(seen401s(calls)).toEqual([]);
    expect(api.harness.requests).toBe(2);
    const ages = agesOfTests(calls, 2);
    expect(ages.map((age) => Math.round(age / 1_000))).toEqual([15, 23, 34, 51]);
    expect(refusalsOf(calls, 2).length).toBeLessThanOrEqual(4 * 2);
    expect(api.harness.eventsOf('token-not-accepted-yet')).toHaveLength(1);
    const delays = api.harness.eventsOf('token-accepted-late').map(({ delayMs }) => Math.round(delayMs / 1_000));
    expect(delays).toEqual([77]);
    expect(api.harness.eventsOf('token-invalidated')).toEqual([]);
    expect(api.harness.source.state().usesPrevious).toBe(false);
  });

  test('is not used by calls that cannot be repeated, until another call shows that it is accepted', async () => {
    const api = await ReplicatedApi.warm({ nodeDelaysMs: [200_000] });
    await untilRenewal(api);
    await api.harness.clock.advance(15_000);
    api.start();
    await api.harness.clock.advance(300_000);
    expect(new Set(serialsOf(await api.load(1_000, CALL_EVERY_MS, 1)))).toEqual(new Set([1]));
    api.start();
    await api.harness.clock.advance(1_000);
    expect(new Set(serialsOf(await api.load(1_000, CALL_EVERY_MS, 1)))).toEqual(new Set([2]));
  });

  test('without any test is used by calls that cannot be repeated 15 s later than by others', async () => {
    const api = await ReplicatedApi.warm({ nodeDelaysMs: [29_000] });
    const calls = await api.loadAroundRenewals(1, CALL_EVERY_MS, 1);
    expect(seen401s(calls)).toEqual([]);
    const obtainedAt = api.harness.requestedAt[1] ?? NaN;
    for (const { sent, startedAt } of calls)
      expect(sent.map(({ token }) => token.serial)).toEqual([startedAt < obtainedAt + 30_000 ? 1 : 2]);
  });

  test('is replaced when the previous one is refused too: one refresh, and only replayed calls show a 401', async () => {
    const api = await ReplicatedApi.warm({});
    api.delayOf = ({ serial }) => (serial === 2 ? Infinity : 0);
    await api.loadAroundRenewals(1, CALL_EVERY_MS);
    api.delayOf = ({ serial }) => (serial <= 2 ? Infinity : 0);
    const calls = await api.load(5_000, CALL_EVERY_MS);
    expect(api.harness.requests).toBe(3);
    expect(seen401s(calls).length).toBeLessThanOrEqual(2);
  });
});

test('a token that is revoked after its acceptance costs one refresh, and no client sees the 401', async () => {
  const api = await ReplicatedApi.warm({});
  await api.loadAroundRenewals(1, CALL_EVERY_MS);
  expect(api.harness.requests).toBe(2);
  api.delayOf = ({ serial }) => (serial <= 2 ? Infinity : 0);
  const calls = await api.load(20_000, CALL_EVERY_MS);
  expect(api.harness.requests).toBe(3);
  expect(api.harness.eventsOf('token-invalidated')).toHaveLength(1);
  expect(seen401s(calls)).toEqual([]);
});

test('a path whose calls are always refused does not slow those of the others', async () => {
  const api = await ReplicatedApi.warm({});
  const [good, bad]: [ApiCall[], ApiCall[]] = [[], []];
  for (let n = 0; n < 6_000; n++) {
    good.push(api.start());
    if (n % 3 === 0) bad.push(api.start({ isForbidden: true }));
    await api.harness.clock.advance(CALL_EVERY_MS);
  }
  await api.harness.clock.advance(5_000);
  expect(bad.every(({ status }) => status === 401)).toBe(true);
  expect(seen401s(good)).toEqual([]);
  expect(api.harness.requests).toBeLessThanOrEqual(8);
  expect(good.filter(({ startedAt, endedAt }) => endedAt - startedAt > 400)).toEqual([]);
});

describe('at the start', () => {
  test.each([500, 1_500])('a call waits for the first token up to the settle time (%d ms)', async (delayMs) => {
    const api = new ReplicatedApi({ nodeDelaysMs: [delayMs] });
    api.harness.source.start();
    const calls = await api.load(5_000, CALL_EVERY_MS, 3);
    // The calls that were replayed with the second token before it was refused.
    const settled = calls.filter(({ startedAt }) => startedAt > 800);
    expect(seen401s(settled)).toEqual([]);
    expect(api.harness.requests).toBe(2);
  });

  test.each([500, 3_000, 20_000])(
    'a token is used as soon as the API accepts the oldest one (%d ms)',
    async (delayMs) => {
      const api = new ReplicatedApi({ nodeDelaysMs: [delayMs] });
      api.harness.source.start();
      const calls = await api.load(delayMs + 5_000, CALL_EVERY_MS);
      const first = Math.min(...calls.filter(({ status }) => status === 200).map(({ endedAt }) => endedAt));
      const oldest = (api.harness.requestedAt[0] ?? 0) + delayMs;
      expect(first - oldest).toBeLessThanOrEqual(2_000);
      expect(seen401s(calls.filter(({ startedAt }) => startedAt > first))).toEqual([]);
      for (const { startedAt, endedAt } of calls) expect(endedAt - startedAt).toBeLessThanOrEqual(2_300);
    },
  );

  test.each([3_000, 5_000, 10_000, 14_000])(
    'of two nodes one is late (%d ms): one more token is requested, and only calls that cannot be repeated show a 401',
    async (delayMs) => {
      const api = new ReplicatedApi({ nodeDelaysMs: [0, delayMs] });
      api.harness.source.start();
      const calls = await api.load(60_000, CALL_EVERY_MS, 7);
      expect(api.harness.requests).toBe(2);
      for (const { canReplay, startedAt } of seen401s(calls)) {
        expect(canReplay && startedAt > 1_000).toBe(false);
        expect(startedAt).toBeLessThanOrEqual(delayMs + 1_000);
      }
    },
  );

  test.each([2_000, 6_000])(
    'a young token that is revoked %d ms after it replaced another is replaced when the cooldown has passed',
    async (revokedAfterMs) => {
      const api = await ReplicatedApi.warm({});
      const revokeAll = (): void => {
        const now = api.harness.clock.now();
        api.delayOf = ({ obtainedAt }) => (obtainedAt < now ? Infinity : 0);
      };
      revokeAll();
      await api.load(revokedAfterMs - 1_000, CALL_EVERY_MS);
      revokeAll();
      const calls = await api.load(30_000, CALL_EVERY_MS);
      const [lastRefusal] = seen401s(calls).toReversed();
      expect((lastRefusal?.startedAt ?? 0) - (api.harness.requestedAt[1] ?? 0)).toBeLessThanOrEqual(5_200);
      expect(api.harness.requests).toBe(3);
    },
  );

  test('a wrong audience costs bounded waits, and after 10 s none', async () => {
    const api = new ReplicatedApi({ nodeDelaysMs: [Infinity] });
    api.harness.source.start();
    const calls = await api.load(300_000, CALL_EVERY_MS, 3);
    expect(calls.every(({ status }) => status === 401)).toBe(true);
    const waitsOf = (some: readonly ApiCall[]) => some.map(({ startedAt, endedAt }) => endedAt - startedAt);
    expect(Math.max(...waitsOf(calls))).toBeLessThanOrEqual(2_300);
    // The call that brings a newer token is replayed with it at once.
    const late = calls.filter(({ startedAt }) => startedAt > 11_000);
    expect(Math.max(...waitsOf(late))).toBeLessThanOrEqual(2 * 50);
    // At 0, 10, 30, 70, 150 s and at the start.
    expect(api.harness.requests).toBeLessThanOrEqual(7);
  });
});

describe('for every lifetime, call rate and latency, over two renewals', () => {
  const HISTORY = fc.record({
    lifetimeMs: fc.integer({ min: 20_000, max: 600_000 }),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
    everyMs: fc.integer({ min: 20, max: 2_000 }),
    latencyMs: fc.integer({ min: 2, max: 400 }),
    everyNth: fc.integer({ min: 1, max: 9 }),
  });

  test('no client sees a 401 while a token is held that every node accepts, and each renewal costs one request', async () => {
    const delayShares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(HISTORY, delayShares, async ({ everyMs, everyNth, ...setup }, shares) => {
        const { lifetimeMs, random } = setup;
        const previousEndsAt = usableUntil({ obtainedAt: 0, expiresAt: lifetimeMs });
        const overlapMs = previousEndsAt - chooseRefreshDelayMs(lifetimeMs, random);
        const longestMs = Math.min(15_000, lifetimeMs / 2, overlapMs);
        const api = await ReplicatedApi.warm({ ...setup, nodeDelaysMs: shares.map((share) => share * longestMs) });
        const calls = await api.loadAroundRenewals(2, everyMs, everyNth);
        expect(seen401s(calls)).toEqual([]);
        expect(api.harness.eventsOf('token-invalidated')).toEqual([]);
        expectOneRequestForEachRenewal(api);
      }),
      { numRuns: 30 },
    );
  });

  test('only calls that cannot be repeated show a 401 of a server that revokes on issue: those of the first renewal, or in flight', async () => {
    await fc.assert(
      fc.asyncProperty(HISTORY, async ({ everyMs, everyNth, ...setup }) => {
        const api = await ReplicatedApi.warm({ ...setup, revokesOnIssue: true });
        const calls = await api.loadAroundRenewals(2, everyMs, everyNth);
        const refused = calls.filter(({ sent }) => sent[0]?.status === 401);
        const firstAt = Math.min(...refused.map(({ sent }) => sent[0]?.at ?? NaN));
        for (const call of seen401s(calls)) {
          expect(call.canReplay).toBe(false);
          expect(call.startedAt <= firstAt + setup.latencyMs / 2 || isInFlightAtRenewal(api, call)).toBe(true);
        }
        expectOneRequestForEachRenewal(api);
      }),
      { numRuns: 30 },
    );
  });

  function expectOneRequestForEachRenewal({ harness }: ReplicatedApi): void {
    expect(harness.requests).toBeLessThanOrEqual(1 + harness.clock.now() / (0.65 * harness.lifetimeMs));
  }
});

/** The server had revoked the previous token when the call arrived there, and its successor had not come yet when the call was sent. */
function isInFlightAtRenewal({ harness, latencyMs }: ReplicatedApi, { startedAt }: ApiCall): boolean {
  return harness.requestedAt.some((at) => startedAt >= at - latencyMs && startedAt <= at + harness.latencyMs);
}
