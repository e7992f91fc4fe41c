/**
 * What 10 000 waiters cost, half of which leave at random, and what an uncontended request costs: all of one caller, and of
 * 1 000 callers and all three priorities; then what a grant costs where all wait for eight closed lanes, with 1 000 and with 10 000 waiters.
 * Run: node test/bench/queue-10000-waiters.ts
 */
import { createThrottle } from '../../src/throttle/queue/queueing-throttle.ts';
import type { Permit, QueueClass, Throttle, Ticket } from '../../src/throttle/throttle.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { DeclaredLimit } from '../../src/throttle/declared/declared-limit.ts';
import { seeded } from '../throttle/simulation.ts';
import { SteppingClock } from '../throttle/stepping-clock.ts';

const WAITERS = 10_000;

function create(rate: number | 'auto'): Throttle {
  return createThrottle({
    route: 'default',
    throttle: { rate, burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 },
    queue: { max: WAITERS, timeoutMs: 600_000 },
    clock: systemClock,
    random: seeded(1),
    observe: () => undefined,
  });
}

/** Microseconds for one of `count`. */
async function measure(name: string, count: number, run: () => Promise<void> | void): Promise<void> {
  const startedAt = performance.now();
  await run();
  console.log(`${name}: ${(((performance.now() - startedAt) * 1000) / count).toFixed(2)} µs each`);
}

async function serve(ticket: Ticket): Promise<void> {
  await ticket.waitForBodySlot();
  const permit: Permit = await ticket.waitForPermit();
  await Promise.resolve();
  permit.report({ kind: 'accepted' });
  permit.release();
  ticket.leave();
}

async function serveUncontended(standingOf: (index: number) => QueueClass): Promise<void> {
  const throttle = create('auto');
  const run = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index++) await serve(throttle.enter(Infinity, standingOf(index)));
  };
  await run(20_000);
  await measure('  uncontended', 100_000, () => run(100_000));
}

async function serveContended(standingOf: (index: number) => QueueClass): Promise<void> {
  const throttle = create('auto');
  const random = seeded(2);
  const reason = new Error('client gone');
  const tickets: Ticket[] = [];
  const ends: Promise<unknown>[] = [];
  const holders = await Promise.all(Array.from({ length: 4 }, () => throttle.enter(Infinity).waitForPermit()));
  await measure('  10 000 enter and wait', WAITERS, () => {
    for (let index = 0; index < WAITERS; index++) {
      const ticket = throttle.enter(performance.now() + 500_000 + random() * 90_000, standingOf(index));
      tickets.push(ticket);
      ends.push(serve(ticket).catch(() => undefined));
    }
  });
  await measure('  5 000 leave at random', WAITERS / 2, () => {
    for (let count = 0; count < WAITERS / 2; count++) {
      const at = Math.floor(random() * tickets.length);
      const ticket = tickets[at];
      const last = tickets.pop();
      if (last !== undefined && at < tickets.length) tickets[at] = last;
      ticket?.leave(reason);
    }
  });
  await measure('  5 000 served', WAITERS / 2, async () => {
    for (const permit of holders) permit.release();
    await Promise.all(ends);
  });
  const { queued, inFlight } = throttle.state();
  console.log(`  left: ${queued} queued, ${inFlight} in flight`);
}

const CALLERS = 1000;
const PRIORITIES = ['high', 'normal', 'low'] as const;
const names = Array.from({ length: CALLERS }, (_, index) => `caller-${index}`);
const ANONYMOUS_CALLER: QueueClass = { priority: 'normal', caller: '' };
const allCallers = Array.from({ length: 3 * CALLERS }, (_, index): QueueClass => {
  return { priority: PRIORITIES[index % 3] ?? 'normal', caller: names[index % CALLERS] ?? '' };
});

for (const [title, standingOf] of [
  ['first in, first out', () => ANONYMOUS_CALLER],
  [
    'by turns: 1 000 callers, 3 priorities',
    (index: number) => allCallers[index % allCallers.length] ?? ANONYMOUS_CALLER,
  ],
] as const) {
  console.log(title);
  await serveUncontended(standingOf);
  await serveContended(standingOf);
}

const LANES = 8;
/** Permits of each lane in each window of ten seconds. */
const CALLS_PER_WINDOW = 100;

/** Declared limits hold the waiters back in lanes; time passes by itself, as fast as it can. */
async function serveLanes(waiters: number): Promise<void> {
  const clock = new SteppingClock();
  const limits = Array.from({ length: LANES }, (_, lane): DeclaredLimit => {
    return {
      name: `lane-${lane}`,
      calls: CALLS_PER_WINDOW,
      per: '10s',
      window: 'sliding',
      timeZone: 'UTC',
      countsRefused: true,
      spread: 'none',
      reserve: 0,
      match: { path: `/lane-${lane}` },
    };
  });
  const throttle = createThrottle({
    route: 'default',
    throttle: { rate: 'auto', burst: 1, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, limits },
    queue: { max: waiters, timeoutMs: 600_000 },
    clock,
    random: seeded(1),
    observe: () => undefined,
  });
  const ends: Promise<void>[] = [];
  for (let index = 0; index < waiters; index++) {
    const call = { method: 'GET', target: `/lane-${index % LANES}` };
    const ticket = throttle.enter(600_000, allCallers[index % allCallers.length], false, call.target, 0, call);
    ends.push(serve(ticket));
  }
  await measure(`  ${waiters} served by ${LANES} lanes`, waiters, async () => {
    await clock.runUntilIdle();
    await Promise.all(ends);
  });
}

console.log('lanes that are closed');
for (const waiters of [1000, WAITERS, 1000, WAITERS]) await serveLanes(waiters);
