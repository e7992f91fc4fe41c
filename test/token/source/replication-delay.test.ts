/** An API that accepts a token only some time after its issue: calls as the exchange makes them, in virtual time. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Token } from '../../../src/token/token.ts';
import { SourceHarness, takeToken } from './source-harness.ts';

interface World {
  readonly harness: SourceHarness;
  /** From the issue of a token until the API accepts it, milliseconds; Infinity: never. */
  delayMs: (token: Token) => number;
  readonly latencyMs: number;
}

interface Call {
  readonly sent: { readonly token: Token; readonly at: number; readonly isTest: boolean; readonly status: 200 | 401 }[];
  readonly startedAt: number;
  /** As the client sees it. */
  status: 200 | 401 | undefined;
  endedAt: number;
}

interface CallOptions {
  readonly canReplay?: boolean;
}

const never = new AbortController().signal;

/** One call: waits for a token, is sent, and is replayed at most once. */
function startCall({ harness, delayMs, latencyMs }: World, { canReplay = true }: CallOptions = {}): Call {
  const { source, clock } = harness;
  const call: Call = { sent: [], startedAt: clock.now(), status: undefined, endedAt: NaN };
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const attempt = async (isReplay: boolean): Promise<200 | 401> => {
    const facts = { arrivedAt: call.startedAt, canReplay: canReplay && !isReplay };
    let use = takeToken(source, facts);
    while (use === undefined) {
      await source.waitForToken(never, facts);
      use = takeToken(source, facts);
    }
    await sleep(latencyMs / 2);
    const { token, isTest } = use;
    const status = clock.now() - token.obtainedAt >= delayMs(token) ? 200 : 401;
    call.sent.push({ token, at: clock.now(), isTest, status });
    await sleep(latencyMs / 2);
    if (status === 200) source.recordAccepted(use, isReplay);
    else source.recordRefused(use);
    if (status === 200 || isReplay || !canReplay || !(await source.waitForReplacement(use, never))) return status;
    return attempt(true);
  };
  void attempt(false).then((status) => {
    call.status = status;
    call.endedAt = clock.now();
  });
  return call;
}

/** Calls at a steady rate; resolves when they have ended. */
async function load(world: World, forMs: number, everyMs: number, options?: CallOptions): Promise<Call[]> {
  const calls: Call[] = [];
  for (let elapsed = 0; elapsed < forMs; elapsed += everyMs) {
    calls.push(startCall(world, options));
    await world.harness.clock.advance(everyMs);
  }
  await world.harness.clock.advance(10_000);
  return calls;
}

const seen401s = (calls: readonly Call[]): Call[] => calls.filter(({ status }) => status !== 200);
const isRefusedBy = (calls: readonly Call[], token: number): number =>
  calls.flatMap(({ sent }) => sent).filter(({ token: { serial }, status }) => serial === token && status === 401)
    .length;

async function warmWorld(delayMs: number, lifetimeMs = 120_000, latencyMs = 50): Promise<World> {
  const harness = await SourceHarness.holding({ lifetimeMs });
  const world: World = { harness, delayMs: ({ serial }) => (serial === 1 ? 0 : delayMs), latencyMs };
  startCall(world);
  await harness.clock.advance(1000);
  return world;
}

test.each([3_000, 20_000])(
  'after a renewal the previous token is used until the new one is accepted (%d ms)',
  async (delayMs) => {
    const world = await warmWorld(delayMs);
    const calls = await load(world, 5 * 84_000 + 30_000, 50);
    expect(seen401s(calls)).toEqual([]);
    expect(world.harness.eventsOf('token-invalidated')).toEqual([]);
    // The first, and one at 70 % of each lifetime.
    expect(world.harness.requests).toBe(6);
    expect(world.harness.eventsOf('token-not-accepted-yet')).toHaveLength(5);
    const delays = world.harness.eventsOf('token-accepted-late').map((event) => event.delayMs);
    expect(delays).toHaveLength(5);
    for (const delay of delays) expect(delay).toBeLessThanOrEqual(delayMs + 1_200);
    // Those in flight together at first, and then one test at a time, at growing intervals.
    expect(isRefusedBy(calls, 2)).toBeLessThanOrEqual(2 + 4 + delayMs / 1_000);
  },
);

test('tests never overlap, and their intervals grow from 100 ms to 1 s', async () => {
  const world = await warmWorld(8_000, 120_000, 40);
  const calls = await load(world, 110_000, 20);
  const tests = calls.flatMap(({ sent }) => sent).filter(({ isTest }) => isTest);
  const gaps = tests.slice(1).map(({ at }, index) => at - (tests[index]?.at ?? 0));
  for (const [index, gap] of gaps.entries()) {
    expect(gap).toBeGreaterThanOrEqual(Math.min(1_000, 200 * 2 ** index));
    expect(gap).toBeLessThanOrEqual(Math.min(1_000, 200 * 2 ** index) + 2 * 40 + 20);
  }
  expect(gaps.length).toBeGreaterThan(7);
});

test('a call that cannot be repeated never carries a test, and goes with an accepted token', async () => {
  const world = await warmWorld(3_000);
  const calls: Call[] = [];
  for (let n = 0; n < 4 * 960; n++) {
    calls.push(startCall(world, { canReplay: n % 2 === 0 }));
    await world.harness.clock.advance(100);
  }
  await world.harness.clock.advance(5_000);
  expect(seen401s(calls)).toEqual([]);
});

describe('at the start', () => {
  test.each([500, 3_000, 20_000])(
    'a token is used as soon as the API accepts the oldest one (%d ms)',
    async (delayMs) => {
      const harness = new SourceHarness({ lifetimeMs: 3_600_000 });
      const world: World = { harness, delayMs: () => delayMs, latencyMs: 50 };
      harness.source.start();
      const calls = await load(world, delayMs + 5_000, 50);
      const first = Math.min(...calls.filter(({ status }) => status === 200).map(({ endedAt }) => endedAt));
      const oldest = (harness.requestedAt[0] ?? 0) + delayMs;
      expect(first - oldest).toBeLessThanOrEqual(2_000);
      expect(calls.filter(({ startedAt }) => startedAt > first).filter(({ status }) => status !== 200)).toEqual([]);
      for (const { startedAt, endedAt } of calls) expect(endedAt - startedAt).toBeLessThanOrEqual(4_300);
    },
  );

  test('a wrong audience costs bounded waits, and after 10 s none', async () => {
    const harness = new SourceHarness({ lifetimeMs: 3_600_000 });
    const world: World = { harness, delayMs: () => Infinity, latencyMs: 50 };
    harness.source.start();
    const calls = await load(world, 300_000, 50);
    expect(calls.every(({ status }) => status === 401)).toBe(true);
    const waits = calls.map(({ startedAt, endedAt }) => endedAt - startedAt);
    expect(Math.max(...waits)).toBeLessThanOrEqual(4_300);
    // The call that brings a newer token is replayed with it at once.
    const late = calls
      .filter(({ startedAt }) => startedAt > 11_000)
      .map(({ startedAt, endedAt }) => endedAt - startedAt);
    expect(Math.max(...late)).toBeLessThanOrEqual(2 * 50);
    // At 0, 10, 30, 70, 150 s and at the start.
    expect(harness.requests).toBeLessThanOrEqual(7);
  });
});

test('a token that is revoked 1 s after its issue costs one refresh, and no client sees the 401', async () => {
  const world = await warmWorld(0);
  const { harness } = world;
  await load(world, 87_000, 50);
  await harness.clock.advance(700);
  expect(harness.requests).toBe(2);
  const revokedAt = (harness.requestedAt[1] ?? NaN) + 1_000;
  world.delayMs = ({ serial }) => (serial === 2 && harness.clock.now() >= revokedAt ? Infinity : 0);
  const calls = await load(world, 20_000, 50);
  expect(harness.requests).toBe(3);
  expect(harness.eventsOf('token-invalidated')).toHaveLength(1);
  expect(seen401s(calls)).toEqual([]);
});

test('when the previous token is revoked too, one refresh brings the next, and only replayed calls show a 401', async () => {
  const world = await warmWorld(Infinity);
  const { harness } = world;
  await load(world, 100_000, 50);
  expect(harness.requests).toBe(2);
  world.delayMs = ({ serial }) => (serial <= 2 ? Infinity : 0);
  const calls = await load(world, 5_000, 50);
  expect(harness.requests).toBe(3);
  expect(seen401s(calls).length).toBeLessThanOrEqual(2);
});

test('a path whose calls are always refused does not slow those of the others', async () => {
  const world = await warmWorld(0, 3_600_000);
  const { harness } = world;
  const forbidden: World = { ...world, delayMs: () => Infinity };
  const [good, bad]: [Call[], Call[]] = [[], []];
  for (let n = 0; n < 6_000; n++) {
    good.push(startCall(world));
    if (n % 3 === 0) bad.push(startCall(forbidden));
    await harness.clock.advance(50);
  }
  await harness.clock.advance(5_000);
  expect(bad.every(({ status }) => status === 401)).toBe(true);
  expect(seen401s(good)).toEqual([]);
  expect(harness.requests).toBeLessThanOrEqual(8);
  const slow = good.filter(({ startedAt, endedAt }) => endedAt - startedAt > 400);
  expect(slow).toEqual([]);
});

test('for every delay, rate, latency and lifetime: no 401 for a client once a token was accepted, and no needless token request', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        delayShare: fc.double({ min: 0, max: 1, noNaN: true }),
        everyMs: fc.integer({ min: 20, max: 2_000 }),
        latencyMs: fc.integer({ min: 2, max: 400 }),
        lifetimeMs: fc.integer({ min: 120_000, max: 600_000 }),
        random: fc.double({ min: 0, max: 0.999, noNaN: true }),
      }),
      async ({ delayShare, everyMs, latencyMs, lifetimeMs, random }) => {
        // The previous token must live until the new one is accepted, and is tested again.
        const delayMs = delayShare * (Math.max(30_000, 0.15 * lifetimeMs) - 4_000 - everyMs);
        const world = await warmWorld(delayMs, lifetimeMs, latencyMs);
        world.harness.random = random;
        const calls = await load(world, lifetimeMs * 1.7, everyMs);
        expect(seen401s(calls)).toEqual([]);
        expect(world.harness.eventsOf('token-invalidated')).toEqual([]);
        expect(world.harness.requests).toBeLessThanOrEqual(3);
      },
    ),
    { numRuns: 12 },
  );
});

test('a test whose token is no longer kept ends with its response, and others follow', async () => {
  const harness = await SourceHarness.holding();
  const { source, clock } = harness;
  const refuseNewest = async (): Promise<void> => {
    const use = takeToken(source, { arrivedAt: -Infinity });
    if (use === undefined) throw new Error('no token in use');
    source.recordRefused(use);
    await clock.advance(100);
  };
  await refuseNewest();
  await refuseNewest();
  await clock.advance(200);
  const tested = takeToken(source, { arrivedAt: clock.now() });
  expect(tested?.isTest).toBe(true);
  // Two more refreshes replace both tokens meanwhile.
  while (harness.requests < 4) {
    await clock.advance(5_000);
    await refuseNewest();
  }
  await refuseNewest();
  source.recordAccepted(tested!, false);
  await clock.advance(2_000);
  expect(takeToken(source, { arrivedAt: clock.now() })?.isTest).toBe(true);
});
