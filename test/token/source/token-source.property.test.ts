/** The invariants of the token source hold for every sequence of events. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { Token } from '../../../src/token/token.ts';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

const LASTING: TokenRequestResult = { kind: 'malformed', detail: 'auth.test answered 200 with HTML' };

type Step =
  | { kind: 'wait'; ms: number }
  | { kind: 'call' }
  | { kind: 'refuse'; index: number }
  | { kind: 'accept'; index: number }
  | {
      kind: 'endpoint';
      setup: { result: TokenRequestResult | undefined; latencyMs: number; lifetimeMs: number; random: number };
    }
  /** NTP: the wall clock changes, no time passes. */
  | { kind: 'wall'; ms: number }
  /** Time passes that the monotonic clock does not count. */
  | { kind: 'suspend'; ms: number };

/** Smaller steps are within the jitter of SuspendAwareClock, and could hide the next suspend. */
const WALL_STEP_MS = fc.integer({ min: -90_000, max: 90_000 }).filter((ms) => Math.abs(ms) > 50);

const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(15_000) }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'call' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('refuse' as const), index: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('accept' as const), index: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('endpoint' as const),
      setup: fc.record({
        result: fc.constantFrom<TokenRequestResult | undefined>(undefined, undefined, UNAVAILABLE, REJECTED, LASTING),
        latencyMs: fc.nat(3_000),
        lifetimeMs: fc.integer({ min: 1_000, max: 60_000 }),
        random: fc.double({ min: 0, max: 0.999, noNaN: true }),
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wall' as const), ms: WALL_STEP_MS }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('suspend' as const), ms: fc.integer({ min: 100, max: 90_000 }) }),
  },
);

class Scenario {
  readonly harness = new SourceHarness();
  readonly seen: Token[] = [];
  /** Serials of tokens that were refused since they were accepted last. */
  readonly refused = new Set<number>();
  readonly waiting: { readonly settled: boolean }[] = [];
  wallSteps = 0;
  suspendedMs = 0;
  /** Ends of lifetimes in true time, by value. */
  readonly ends = new Map<string, number>();

  constructor() {
    this.harness.onGrant = (value, lifetimeMs) => this.ends.set(value, this.trueNow + lifetimeMs);
  }

  /** True time, which the process cannot see. */
  get trueNow(): number {
    return this.harness.clock.now() + this.suspendedMs;
  }

  async run(step: Step): Promise<void> {
    const { harness } = this;
    switch (step.kind) {
      case 'wait':
        return harness.clock.advance(step.ms);
      case 'call':
        this.waiting.push(watch(harness.source.waitForToken(harness.signal)));
        return harness.clock.advance(0);
      case 'refuse':
        return this.refuse(this.seen.at(-1 - step.index));
      case 'accept': {
        const token = this.seen.at(-1 - step.index);
        if (token === undefined) return;
        harness.accept(token);
        this.refused.delete(token.serial);
        return;
      }
      case 'endpoint':
        Object.assign(harness, step.setup);
        return;
      case 'suspend':
        this.suspendedMs += step.ms;
        this.wallSteps += 1;
        harness.clock.stepWall(step.ms);
        return;
      case 'wall':
        this.wallSteps += 1;
        harness.clock.stepWall(step.ms);
    }
  }

  async refuse(token: Token | undefined): Promise<void> {
    if (token === undefined) return;
    const { source, requests, clock } = this.harness;
    const current = source.current()?.token;
    const decision = watch(this.harness.refuse(token));
    this.waiting.push(decision);
    const isOther = current !== undefined && current.serial !== token.serial && !this.refused.has(current.serial);
    this.refused.add(token.serial);
    if (!isOther) return;
    await clock.advance(0);
    expect(decision.value).toBe('replay');
    expect(source.current()?.token).toBe(current);
    expect(this.harness.requests).toBe(requests);
  }

  check(): void {
    const { harness } = this;
    expect(harness.mostInFlight).toBeLessThanOrEqual(1);
    const token = harness.source.current()?.token;
    if (token === undefined) return;
    expect(this.ends.get(token.value)).toBeGreaterThan(this.trueNow);
    if (!this.seen.includes(token)) this.seen.push(token);
    // Besides the newest, only the one before it is ever used.
    expect(token.serial).toBeGreaterThanOrEqual((this.seen.at(-1)?.serial ?? 0) - 1);
  }
}

test('one request in flight, no expired token after clock changes, no effect of a late 401, a bounded number of requests', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 40 }), async (steps) => {
      const scenario = new Scenario();
      scenario.harness.source.start();
      for (const step of steps) {
        await scenario.run(step);
        scenario.check();
      }
      const { harness } = scenario;
      const invalidations = harness.eventsOf('token-invalidated').length;
      // The shortest intervals: 65 % of the shortest lifetime, 200 ms of backoff; each 401 or clock step may add a request.
      const failed = harness.eventsOf('token-requested').filter((event) => event.outcome !== 'ok').length;
      const succeeded = harness.requests - failed;
      expect(succeeded).toBeLessThanOrEqual(2 + harness.clock.now() / 650 + invalidations + scenario.wallSteps);
      expect(failed).toBeLessThanOrEqual(1 + harness.clock.now() / 200);
      await harness.clock.advance(4_000);
      harness.source.stop();
      await harness.clock.advance(0);
      expect(scenario.waiting.every((one) => one.settled)).toBe(true);
      expect(harness.clock.pendingTimers).toBeLessThanOrEqual(1);
    }),
    { numRuns: 150 },
  );
});
