/**
 * What 10 000 waiters cost, half of which leave at random, and what an uncontended request costs.
 * Run: node test/bench/queue-10000-waiters.ts
 */
import { createThrottle } from '../../src/throttle/admission.ts';
import type { Permit, Throttle, Ticket } from '../../src/throttle/throttle.ts';
import { systemClock } from '../../src/clock.ts';
import { seeded } from '../throttle/simulation.ts';

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
  await ticket.admitted();
  const permit: Permit = await ticket.permit();
  await Promise.resolve();
  permit.report({ kind: 'accepted' });
  permit.release();
  ticket.leave();
}

const uncontended = create('auto');
for (let warmUp = 0; warmUp < 20_000; warmUp++) await serve(uncontended.enter(Infinity));
await measure('uncontended', 100_000, async () => {
  for (let count = 0; count < 100_000; count++) await serve(uncontended.enter(Infinity));
});

const contended = create('auto');
const random = seeded(2);
const reason = new Error('client gone');
const tickets: Ticket[] = [];
const ends: Promise<unknown>[] = [];
const holders = await Promise.all(Array.from({ length: 4 }, () => contended.enter(Infinity).permit()));
await measure('10 000 enter and wait', WAITERS, () => {
  for (let count = 0; count < WAITERS; count++) {
    const ticket = contended.enter(performance.now() + 500_000 + random() * 90_000);
    tickets.push(ticket);
    ends.push(serve(ticket).catch(() => undefined));
  }
});
await measure('5 000 leave at random', WAITERS / 2, () => {
  for (let count = 0; count < WAITERS / 2; count++) {
    const [ticket] = tickets.splice(Math.floor(random() * tickets.length), 1);
    ticket?.leave(reason);
  }
});
await measure('5 000 served', WAITERS / 2, async () => {
  for (const permit of holders) permit.release();
  await Promise.all(ends);
});
console.log(contended.state());
