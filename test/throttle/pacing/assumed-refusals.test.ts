/** What bare refusals that no setting names do to the calls: pace them, and never reject one. Calls are not repeated. */
import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import type { SuspectStatus } from '../../../src/telemetry/events.ts';
import { createThrottle, type ThrottleOptions } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { PermitReport, Throttle } from '../../../src/throttle/throttle.ts';
import type { RecordedEvent } from '../../support/recorded-events.ts';
import { rateLimited } from '../fixture.ts';
import { AUTO, bucketLimiter, seeded } from '../simulation.ts';
import { SteppingClock } from '../stepping-clock.ts';

interface Ended {
  readonly at: number;
  readonly waitedMs: number;
  readonly outcome: 'accepted' | 'refused' | 'rejected';
}

/** @returns how a call is answered that arrives at that instant; undefined: it is accepted */
type Upstream = (at: number, endpoint: string) => PermitReport | undefined;

const suspect = (status: SuspectStatus = 503): PermitReport => ({ kind: 'suspect', status });

class World {
  readonly clock = new SteppingClock();
  readonly events: RecordedEvent[] = [];
  readonly ended: Ended[] = [];
  readonly throttle: Throttle;
  readonly terms: Pick<ThrottleOptions, 'throttle' | 'queue'>;
  readonly #upstream: Upstream;
  readonly #random = seeded(7);

  constructor(upstream: Upstream, throttle: Partial<ThrottleOptions['throttle']> = {}, queueMax = 1000) {
    this.#upstream = upstream;
    this.terms = { throttle: { ...AUTO, ...throttle }, queue: { max: queueMax, timeoutMs: 30_000 } };
    this.throttle = createThrottle({
      ...this.terms,
      route: 'default',
      clock: this.clock,
      random: this.#random,
      observe: (event) => this.events.push(event),
    });
  }

  /** So many calls at once. */
  burst(calls: number, at: number, endpoint = 'POST /policies', deadlineMs = 60_000): void {
    for (let call = 0; call < calls; call++)
      this.clock.exactlyAt(at, () => void this.#call(endpoint, this.clock.now() + deadlineMs));
  }

  /** Poisson arrivals. */
  steady(perSecond: number, from: number, to: number, endpoint = 'POST /policies'): void {
    const random = seeded(11);
    for (let at = from; at < to; at += (-Math.log(1 - random()) * 1000) / perSecond) this.burst(1, at, endpoint);
  }

  endedIn(from: number, to: number): readonly Ended[] {
    return this.ended.filter(({ at }) => at >= from && at < to);
  }

  count(kind: RecordedEvent['kind']): number {
    return this.events.filter((event) => event.kind === kind).length;
  }

  async #call(endpoint: string, deadlineAt: number): Promise<void> {
    const arrivedAt = this.clock.now();
    const ticket = this.throttle.enter(deadlineAt, undefined, false, endpoint);
    try {
      const permit = await ticket.waitForPermit();
      permit.markSent();
      await this.clock.sleep(2 + this.#random());
      const report = this.#upstream(this.clock.now(), endpoint);
      await this.clock.sleep(report === undefined ? 10 : 1);
      permit.report(report ?? { kind: 'accepted' });
      permit.release();
      this.#end(arrivedAt, permit.grantedAt, report === undefined ? 'accepted' : 'refused');
    } catch (error) {
      if (!(error instanceof SidecarError)) throw error;
      this.#end(arrivedAt, this.clock.now(), 'rejected');
    } finally {
      ticket.leave();
    }
  }

  #end(at: number, grantedAt: number, outcome: Ended['outcome']): void {
    this.ended.push({ at, waitedMs: grantedAt - at, outcome });
  }
}

const MINUTE = 60_000;
const LIMITED = (status?: SuspectStatus): Upstream => {
  const limiter = bucketLimiter(20, 20);
  return (at) => (limiter(at).accepted ? undefined : suspect(status));
};

async function playBursts(world: World, minutes = 6): Promise<number[]> {
  for (let minute = 0; minute < minutes; minute++) world.burst(100, minute * MINUTE);
  await world.clock.runUntilIdle(minutes * MINUTE);
  return Array.from(
    { length: minutes },
    (_, minute) =>
      world.endedIn(minute * MINUTE, (minute + 1) * MINUTE).filter(({ outcome }) => outcome === 'accepted').length,
  );
}

const longestWait = (ended: readonly Ended[]): number => Math.max(...ended.map(({ waitedMs }) => waitedMs));

describe('100 calls at once, each minute, where 20 a second are accepted and the others get a bare 503', () => {
  it('are paced from the second minute on, so that most are accepted', async () => {
    const world = new World(LIMITED());
    const accepted = await playBursts(world);
    expect(accepted[0]).toBeLessThan(50);
    expect(accepted[1]).toBeGreaterThan(65);
    for (const ofMinute of accepted.slice(2)) expect(ofMinute).toBeGreaterThan(90);
    expect(world.ended).toHaveLength(600);
    expect(world.count('queue-rejected')).toBe(0);
    expect(world.count('rate-limited')).toBe(0);
    expect(longestWait(world.ended)).toBeLessThanOrEqual(5001);
  });

  it('are shown with the setting that makes it certain, and logged once', async () => {
    const world = new World(LIMITED(), { refusals: [{ status: 420 }] });
    await playBursts(world, 3);
    const [assumed] = world.throttle.state().assumed ?? [];
    expect(assumed).toMatchObject({
      status: 503,
      endpoints: ['POST /policies'],
      setting: 'throttle: { refusals: [{"status":420},{"status":503}] }',
      variable: `SIDECAR_THROTTLE_REFUSALS='[{"status":420},{"status":503}]'`,
    });
    expect(assumed?.count).toBe(world.count('assumed-refusal'));
    expect(world.count('limit-assumed')).toBe(1);
  });

  it('are sent as before where throttle.assumeRefusals is false', async () => {
    const world = new World(LIMITED(), { assumeRefusals: false });
    for (const ofMinute of await playBursts(world, 3)) expect(ofMinute).toBeLessThan(50);
    expect(world.throttle.state()).toMatchObject({ assumed: [], learned: undefined, rate: Infinity });
    expect(world.count('assumed-refusal')).toBe(0);
    expect(world.count('unconfigured-refusal')).toBeGreaterThan(100);
  });

  it('are no longer paced after a reload that turns it off', async () => {
    const world = new World(LIMITED());
    await playBursts(world, 2);
    expect(world.throttle.state().assumed).toHaveLength(1);
    world.throttle.reconfigure({ ...world.terms, throttle: { ...world.terms.throttle, assumeRefusals: false } });
    expect(world.throttle.state()).toMatchObject({ assumed: [], learned: undefined, rate: Infinity });
  });

  it('are sent when they have waited 5 s, or would be rejected', async () => {
    const limiter = bucketLimiter(5, 5);
    const world = new World((at) => (limiter(at).accepted ? undefined : suspect()), {}, 120);
    for (let minute = 0; minute < 4; minute++) {
      world.burst(100, minute * MINUTE);
      if (minute > 0) world.burst(50, minute * MINUTE + 10, 'POST /quotes', 3000);
    }
    await world.clock.runUntilIdle(5 * MINUTE);
    expect(world.ended).toHaveLength(550);
    expect(world.count('queue-rejected')).toBe(0);
    // At most 64 are in flight.
    expect(longestWait(world.ended)).toBeLessThanOrEqual(5100);
    expect(longestWait(world.endedIn(MINUTE, 5 * MINUTE))).toBeGreaterThan(1000);
  });

  it('keep nothing over a restart', async () => {
    const world = new World(LIMITED());
    await playBursts(world, 3);
    expect(world.throttle.snapshot()).toBeUndefined();
  });

  it('are certain with the first 429', async () => {
    const [before, after] = [bucketLimiter(20, 20), bucketLimiter(5, 5)];
    const world = new World((at) => {
      if (at < 3 * MINUTE) return before(at).accepted ? undefined : suspect();
      return after(at).accepted ? undefined : rateLimited();
    });
    await playBursts(world, 5);
    expect(world.throttle.state().assumed).toEqual([]);
    expect(world.throttle.state().learned).toBeDefined();
  });

  it('change nothing with a configured rate', async () => {
    const world = new World(LIMITED(), { rate: 1000, burst: 1000 });
    for (const ofMinute of await playBursts(world, 3)) expect(ofMinute).toBeLessThan(50);
    expect(world.throttle.state().assumed).toEqual([]);
  });
});

describe('bare refusals that are no limit', () => {
  it.each([503, 403] as const)('a single %s changes nothing', async (status) => {
    let calls = 0;
    const world = new World(() => (++calls === 30 ? suspect(status) : undefined));
    world.steady(20, 0, 10_000);
    await world.clock.runUntilIdle(20_000);
    expect(world.throttle.state()).toMatchObject({ assumed: [], rate: Infinity });
    expect(world.count('unconfigured-refusal')).toBe(1);
  });

  it.each([
    ['an outage of 60 s', (at: number) => at >= 2 * MINUTE && at < 3 * MINUTE],
    ['an outage of 60 s at the start', (at: number) => at < MINUTE],
    ['an outage of 5 s each minute', (at: number) => at % MINUTE > 55_000],
  ])('%s rejects no call and delays none for more than 5 s', async (_, fails) => {
    const world = new World((at) => (fails(at) ? suspect() : undefined));
    world.steady(15, 0, 6 * MINUTE);
    await world.clock.runUntilIdle(7 * MINUTE);
    expect(world.count('queue-rejected')).toBe(0);
    expect(longestWait(world.ended)).toBeLessThanOrEqual(5001);
  });

  it('5 % of the calls, at random, delay none', async () => {
    const random = seeded(3);
    const world = new World(() => (random() < 0.05 ? suspect() : undefined));
    world.steady(15, 0, 10 * MINUTE);
    await world.clock.runUntilIdle(11 * MINUTE);
    expect(world.count('queue-rejected')).toBe(0);
    expect(longestWait(world.ended)).toBeLessThanOrEqual(100);
  });

  it('a 403 of an endpoint that accepts nothing', async () => {
    const world = new World((_, endpoint) => (endpoint === 'POST /exports' ? suspect(403) : undefined));
    world.steady(15, 0, MINUTE);
    for (let at = 5000; at < MINUTE; at += 10_000) world.burst(40, at, 'POST /exports');
    await world.clock.runUntilIdle(2 * MINUTE);
    expect(world.throttle.state()).toMatchObject({ assumed: [], rate: Infinity });
  });
});

it('calls that exceed the limit all the time are delayed for seconds only', async () => {
  const world = new World(LIMITED());
  world.steady(30, 0, 9 * MINUTE);
  await world.clock.runUntilIdle(9 * MINUTE);
  expect(longestWait(world.ended)).toBeLessThanOrEqual(5001);
  expect(world.ended.filter(({ waitedMs }) => waitedMs > 100).length).toBeLessThan(30 * 20);
  expect(world.count('queue-rejected')).toBe(0);
});

it('a 403 paces the calls where an endpoint gives both', async () => {
  const world = new World(LIMITED(403));
  const accepted = await playBursts(world, 4);
  for (const ofMinute of accepted.slice(2)) expect(ofMinute).toBeGreaterThan(80);
});
