/** Whatever happens in whatever order, the invariants of the token source hold. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { Token } from '../../../src/token/token.ts';
import { REJECTED, SourceHarness, UNAVAILABLE, watch } from './source-harness.ts';

type Step =
  | { kind: 'wait'; ms: number }
  | { kind: 'call' }
  | { kind: 'refuse'; index: number }
  | { kind: 'accept'; index: number }
  | {
      kind: 'endpoint';
      setup: { answer: TokenRequestResult | undefined; latencyMs: number; lifetimeMs: number; random: number };
    }
  /** NTP: no time has passed. */
  | { kind: 'wall'; ms: number }
  /** So much time has passed, and the monotonic clock did not see it. */
  | { kind: 'suspend'; ms: number };

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
        answer: fc.constantFrom<TokenRequestResult | undefined>(undefined, undefined, UNAVAILABLE, REJECTED),
        latencyMs: fc.nat(3_000),
        lifetimeMs: fc.integer({ min: 1_000, max: 60_000 }),
        random: fc.double({ min: 0, max: 0.999, noNaN: true }),
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wall' as const), ms: fc.integer({ min: -90_000, max: 90_000 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('suspend' as const), ms: fc.integer({ min: 100, max: 90_000 }) }),
  },
);

class Play {
  readonly harness = new SourceHarness();
  readonly seen: Token[] = [];
  readonly waiting: { readonly settled: boolean }[] = [];
  wallSteps = 0;
  suspendedMs = 0;
  /** Ends of lives in true time, by value. */
  readonly ends = new Map<string, number>();

  constructor() {
    this.harness.onGrant = (value, lifetimeMs) => this.ends.set(value, this.trueNow + lifetimeMs);
  }

  /** Time as nobody in the process can see it. */
  get trueNow(): number {
    return this.harness.clock.now() + this.suspendedMs;
  }

  async take(step: Step): Promise<void> {
    const { harness } = this;
    switch (step.kind) {
      case 'wait':
        return harness.clock.advance(step.ms);
      case 'call':
        this.waiting.push(watch(harness.source.waitForToken(harness.patient)));
        return harness.clock.advance(0);
      case 'refuse':
        return this.refuse(this.seen.at(-1 - step.index));
      case 'accept': {
        const token = this.seen.at(-1 - step.index);
        if (token !== undefined) harness.source.confirmAccepted(token);
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
    const { source, patient, requests, clock } = this.harness;
    const current = source.current();
    const verdict = watch(source.handleUnauthorized(token, patient));
    this.waiting.push(verdict);
    if (current === undefined || current.serial <= token.serial) return;
    await clock.advance(0);
    expect(verdict.value).toEqual({ kind: 'replay' });
    expect(source.current()).toBe(current);
    expect(this.harness.requests).toBe(requests);
  }

  check(): void {
    const { harness } = this;
    expect(harness.mostInFlight).toBeLessThanOrEqual(1);
    const token = harness.source.current();
    if (token === undefined) return;
    expect(this.ends.get(token.value)).toBeGreaterThan(this.trueNow);
    if (this.seen.at(-1)?.serial !== token.serial) this.seen.push(token);
    expect(this.seen.map((one) => one.serial)).toEqual(
      [...new Set(this.seen.map((one) => one.serial))].sort((a, b) => a - b),
    );
  }
}

test('invariants: one request in flight, never an expired token whatever the clocks do, a late 401 does nothing, requests are bounded', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 40 }), async (steps) => {
      const play = new Play();
      play.harness.source.start();
      for (const step of steps) {
        await play.take(step);
        play.check();
      }
      const { harness } = play;
      const invalidations = harness.eventsOf('token-invalidated').length;
      // The shortest spacings: 75 % of the shortest life, 200 ms of backoff; each 401 or clock step may add one.
      const failed = harness.eventsOf('token-requested').filter((event) => event.outcome !== 'ok').length;
      const succeeded = harness.requests - failed;
      expect(succeeded).toBeLessThanOrEqual(2 + harness.clock.now() / 750 + invalidations + play.wallSteps);
      expect(failed).toBeLessThanOrEqual(1 + harness.clock.now() / 200);
      await harness.clock.advance(4_000);
      harness.source.stop();
      await harness.clock.advance(0);
      expect(play.waiting.every((one) => one.settled)).toBe(true);
      expect(harness.clock.pendingTimers).toBeLessThanOrEqual(1);
    }),
    { numRuns: 150 },
  );
});
