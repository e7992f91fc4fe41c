/** `throttle.mode: observe`: what it says would have happened, beside what enforcing does with the same calls. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { Permit, PermitReport, Priority, RateSettings } from '../../../src/throttle/throttle.ts';
import type { Throttle, ThrottleTerms } from '../../../src/throttle/throttle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ACCEPTED, rateLimited } from '../fixture.ts';
import { SteppingClock } from '../stepping-clock.ts';

interface Call {
  readonly afterMs: number;
  readonly headMs: number;
  readonly bodyMs: number;
  readonly withinMs: number;
  readonly priority: Priority;
  readonly path: string;
  /** Its client leaves when half of this attempt's time has passed. */
  readonly leaves: boolean;
  readonly isStream: boolean;
}

interface Traffic {
  readonly settings: RateSettings;
  readonly queue: { readonly max: number; readonly timeoutMs: number };
  readonly calls: readonly Call[];
}

/** What became of the calls, or would have: the waits in ascending order, and how many were rejected. */
interface Outcome {
  readonly waitsMs: readonly number[];
  readonly rejected: number;
}

const limit = fc.record({
  name: fc.constantFrom('one', 'two'),
  calls: fc.integer({ min: 1, max: 12 }),
  per: fc.constantFrom('1s', '3s', '10s'),
  window: fc.constantFrom('sliding' as const, 'calendar' as const),
  timeZone: fc.constant('UTC'),
  countsRefused: fc.boolean(),
  spread: fc.constantFrom('none' as const, 'even' as const),
  reserve: fc.constant(0),
  match: fc.constantFrom(undefined, { methods: [], path: '/search' }),
});

const traffic: fc.Arbitrary<Traffic> = fc.record({
  settings: fc.record({
    rate: fc.constantFrom<number | 'auto'>(2, 5, 20, Infinity, 'auto'),
    burst: fc.integer({ min: 1, max: 5 }),
    maxInFlight: fc.integer({ min: 1, max: 10 }),
    maxStreams: fc.integer({ min: 0, max: 3 }),
    maxPauseMs: fc.constant(300_000),
    limits: fc.uniqueArray(limit, { maxLength: 2, selector: ({ name }) => name }),
  }),
  queue: fc.record({ max: fc.integer({ min: 0, max: 20 }), timeoutMs: fc.integer({ min: 100, max: 5000 }) }),
  calls: fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 400 }),
      headMs: fc.integer({ min: 1, max: 900 }),
      bodyMs: fc.integer({ min: 0, max: 300 }),
      withinMs: fc.integer({ min: 1000, max: 20_000 }),
      priority: fc.constantFrom<Priority>('high', 'normal', 'low'),
      path: fc.constantFrom('/search', '/quotes'),
      leaves: fc.boolean(),
      isStream: fc.boolean(),
    }),
    { minLength: 1, maxLength: 80 },
  ),
});

async function play({ settings, queue, calls }: Traffic, mode: 'enforce' | 'observe'): Promise<Outcome> {
  const clock = new SteppingClock();
  const waitsMs: number[] = [];
  let rejected = 0;
  const throttle = createThrottle({
    route: 'default',
    throttle: { ...settings, mode },
    queue,
    clock,
    random: () => 0.5,
    observe: (event) => {
      if (event.kind === 'would-wait') waitsMs.push(event.waitedMs);
      if (event.kind === 'would-refuse') rejected++;
      if (mode === 'enforce' && event.kind === 'queue-rejected' && event.reason !== 'client_left') rejected++;
    },
    recordPermit: (waitedMs) => {
      if (mode === 'enforce') waitsMs.push(waitedMs);
      else expect(waitedMs).toBe(0);
    },
  });
  let at = 0.5;
  for (const call of calls) {
    // At one instant the order would be by chance.
    at += call.afterMs + 0.0137;
    clock.exactlyAt(at, () => void send(throttle, clock, call).catch(() => undefined));
  }
  await clock.runUntilIdle();
  return { waitsMs: waitsMs.sort((one, other) => one - other), rejected };
}

async function send(throttle: Throttle, clock: SteppingClock, call: Call): Promise<void> {
  const now = clock.now();
  const received: ReceivedCall = { method: 'GET', target: call.path };
  const queueClass = { priority: call.priority, caller: '' };
  const ticket = throttle.enter(now + call.withinMs, queueClass, false, '', now, received);
  let permit: Permit | undefined = undefined;
  const client = new AbortController();
  const leave = (): void => {
    client.abort();
    ticket.leave(new Error('the client left'));
    permit?.release('other');
  };
  if (call.leaves) clock.after(call.headMs / 2, leave);
  permit = ticket.tryTakePermit(now) ?? (await ticket.waitForPermit());
  permit.markSent();
  if (client.signal.aborted) permit.release('other');
  await clock.sleep(call.headMs + 0.0031);
  permit.report(ACCEPTED);
  if (call.isStream) permit.becomeStream();
  await clock.sleep(call.bodyMs);
  permit.release();
  ticket.leave();
}

describe('what observing says would have happened', () => {
  it('equals what enforcing declared limits does with the same calls', async () => {
    await fc.assert(
      fc.asyncProperty(traffic, async (each) => {
        const [observed, enforced] = [await play(each, 'observe'), await play(each, 'enforce')];
        expect(observed.rejected).toBe(enforced.rejected);
        expect(observed.waitsMs).toHaveLength(enforced.waitsMs.length);
        // Instants are sums in another order.
        for (const [index, waitMs] of observed.waitsMs.entries())
          expect(waitMs).toBeCloseTo(enforced.waitsMs[index] ?? NaN, 6);
      }),
      { numRuns: 300 },
    );
  });
});

const DAY_MS = 86_400_000;
const LIMIT = { name: 'ten', calls: 10, per: '1s', window: 'sliding', timeZone: 'UTC', countsRefused: true } as const;
const TERMS: ThrottleTerms = {
  throttle: {
    rate: 'auto',
    burst: 1,
    maxInFlight: 64,
    maxStreams: 100,
    maxPauseMs: 300_000,
    limits: [{ ...LIMIT, spread: 'even', reserve: 0 }],
  },
  queue: { max: 1000, timeoutMs: 30_000 },
};
const OBSERVE: ThrottleTerms = { ...TERMS, throttle: { ...TERMS.throttle, mode: 'observe' } };

/** @param report ends each call at once, by the number of calls before it */
function createWorld(terms: ThrottleTerms, report = (_before: number): PermitReport => ACCEPTED) {
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const throttle = createThrottle({
    ...terms,
    route: 'default',
    clock,
    random: () => 0.5,
    observe: (event) => events.push(event),
  });
  const grantedAt: number[] = [];
  const ask = (count: number): void => {
    for (let index = 0; index < count; index++) {
      const ticket = throttle.enter(clock.now() + DAY_MS, undefined, false);
      void ticket.waitForPermit().then(
        (permit) => {
          permit.markSent();
          permit.report(report(grantedAt.length));
          grantedAt.push(clock.now());
          permit.release();
        },
        () => undefined,
      );
    }
  };
  const count = (kind: SidecarEvent['kind']): number => events.filter((event) => event.kind === kind).length;
  return { clock, throttle, events, grantedAt, ask, count };
}

describe('a switch of the mode', () => {
  it('to observe sends at once what waits, and lets nothing wait', async () => {
    const { clock, throttle, grantedAt, ask } = createWorld(TERMS);
    ask(50);
    await clock.advance(10);
    expect(grantedAt.length).toBeLessThan(20);
    throttle.reconfigure(OBSERVE);
    ask(50);
    await clock.advance(0);
    expect(grantedAt).toHaveLength(100);
    expect(throttle.state()).toMatchObject({ queued: 0, inFlight: 0, observed: { calls: 50, certainty: 'exact' } });
  });

  it('to enforce counts what was sent: the window is not exceeded, no call is rejected, and none waits for longer than the window', async () => {
    const { clock, throttle, grantedAt, ask, count } = createWorld(OBSERVE);
    ask(100);
    await clock.advance(500);
    expect(grantedAt).toHaveLength(100);
    throttle.reconfigure(TERMS);
    ask(10);
    await clock.advance(400);
    expect(grantedAt).toHaveLength(100);
    await clock.advance(2500);
    expect(grantedAt).toHaveLength(110);
    expect(count('queue-rejected')).toBe(0);
  });

  it('ends the rehearsal with its figures in the log', async () => {
    const { clock, throttle, events, ask } = createWorld(OBSERVE);
    ask(30);
    await clock.advance(100);
    throttle.reconfigure(TERMS);
    expect(events.at(-1)).toMatchObject({ kind: 'calls-observed', calls: 30, wouldRefuse: 0, certainty: 'exact' });
    expect(throttle.state().observed).toBeUndefined();
  });
});

describe('while it observes', () => {
  it('counts refusals, and neither pauses, learns nor repeats a call', async () => {
    const { clock, throttle, grantedAt, ask, count } = createWorld(OBSERVE, () => rateLimited('30'));
    ask(5);
    await clock.advance(10);
    ask(5);
    await clock.advance(10);
    expect(grantedAt).toEqual([0, 0, 0, 0, 0, 10, 10, 10, 10, 10]);
    expect(count('rate-limited')).toBe(10);
    expect(throttle.state()).toMatchObject({ pausedMs: 0, learned: undefined, observed: { calls: 10 } });
    throttle.reconfigure(TERMS);
    expect(throttle.state()).toMatchObject({ pausedMs: 0, learned: undefined });
  });

  it('does not know what an undeclared limit would have done: a refusal below the declared ones shows it', async () => {
    const below = createWorld(OBSERVE, () => rateLimited());
    below.ask(3);
    await below.clock.advance(0);
    expect(below.throttle.state().observed?.certainty).toBe('unknown');
    const above = createWorld(OBSERVE, (before) => (before < 10 ? ACCEPTED : rateLimited()));
    above.ask(15);
    await above.clock.advance(0);
    expect(above.throttle.state().observed).toMatchObject({ calls: 15, certainty: 'exact' });
  });

  it('writes a line a day of the calls since the last one', async () => {
    const { clock, ask, count, throttle } = createWorld(OBSERVE);
    ask(4);
    await clock.advance(DAY_MS);
    ask(3);
    await clock.advance(0);
    expect(count('calls-observed')).toBe(1);
    expect(throttle.state().observed).toMatchObject({ calls: 3, wouldWait: 0 });
  });

  it('keeps as many calls in the rehearsal as the queue may hold, and ends with the throttle', async () => {
    const terms = { throttle: OBSERVE.throttle, queue: { max: 5, timeoutMs: 30_000 } };
    const { clock, throttle, grantedAt, ask, count } = createWorld(terms);
    ask(100);
    await clock.advance(0);
    expect(grantedAt).toHaveLength(100);
    expect(count('would-refuse')).toBeGreaterThan(80);
    throttle.shutDown();
    expect(count('calls-observed')).toBe(1);
  });
});
