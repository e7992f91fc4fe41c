/** Places for reading bodies: who needs one, and who loses it to a request that waits for one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ticket } from '../../../src/throttle/throttle.ts';
import { Fixture } from '../fixture.ts';

const STALLED_AFTER_MS = 1000;

/** Whether `admitted` has been resolved by now. */
function watchBodySlot(ticket: Ticket): { hasBodySlot: boolean } {
  const watched = { hasBodySlot: false };
  void ticket.waitForBodySlot().then(() => (watched.hasBodySlot = true));
  return watched;
}

async function twoReaders(): Promise<{ fixture: Fixture; readers: [Ticket, Ticket] }> {
  const fixture = new Fixture({ maxInFlight: 2 });
  const readers: [Ticket, Ticket] = [fixture.enter(), fixture.enter()];
  await Promise.all(readers.map((reader) => reader.waitForBodySlot()));
  return { fixture, readers };
}

const bodies = ({ throttle }: Fixture): number[] => {
  const { readingBodies, stalledBodies, queued } = throttle.state();
  return [readingBodies, stalledBodies, queued];
};

describe('while every body slot is taken', () => {
  it('grants a request without a body at once', async () => {
    const { fixture } = await twoReaders();
    const ticket = fixture.throttle.enter(60_000, undefined, false);
    expect(ticket.hasBodySlot).toBe(true);
    expect(ticket.tryTakePermit()).toBeDefined();
  });

  it('a request whose body was received stops waiting for a slot', async () => {
    const { fixture } = await twoReaders();
    const ticket = fixture.enter();
    const watched = watchBodySlot(ticket);
    await fixture.clock.advance(0);
    expect(watched.hasBodySlot).toBe(false);
    ticket.recordBodyEnd();
    await fixture.clock.advance(0);
    expect(watched.hasBodySlot).toBe(true);
    expect(ticket.tryTakePermit()).toBeDefined();
    expect(bodies(fixture)).toEqual([2, 0, 2]);
  });

  it('a body without a byte for a second loses its slot, and gets the next free one when bytes come', async () => {
    const { fixture, readers } = await twoReaders();
    const newcomer = watchBodySlot(fixture.enter());
    await fixture.clock.advance(STALLED_AFTER_MS - 1);
    expect(readers[0].recordBodyBytes(fixture.clock.now())).toBe(true);
    expect(newcomer.hasBodySlot).toBe(false);
    await fixture.clock.advance(1);
    expect(newcomer.hasBodySlot).toBe(true);
    // The stalled one is not among those that wait.
    expect(bodies(fixture)).toEqual([2, 1, 2]);
    expect(readers[1].recordBodyBytes(fixture.clock.now())).toBe(false);
    const again = watchBodySlot(readers[1]);
    const younger = watchBodySlot(fixture.enter());
    await fixture.clock.advance(0);
    expect([again.hasBodySlot, bodies(fixture)]).toEqual([false, [2, 0, 4]]);
    readers[0].leave();
    await fixture.clock.advance(0);
    expect([again.hasBodySlot, younger.hasBodySlot]).toEqual([true, false]);
  });

  it('a body that stalled before others waited loses its slot at once', async () => {
    const { fixture } = await twoReaders();
    await fixture.clock.advance(10 * STALLED_AFTER_MS);
    expect(bodies(fixture)).toEqual([2, 0, 2]);
    const newcomer = watchBodySlot(fixture.enter());
    await fixture.clock.advance(0);
    expect(newcomer.hasBodySlot).toBe(true);
    expect(bodies(fixture)).toEqual([1, 2, 1]);
  });

  it('a stalled request leaves, or receives its whole body, without a slot', async () => {
    const { fixture, readers } = await twoReaders();
    await fixture.clock.advance(STALLED_AFTER_MS);
    watchBodySlot(fixture.enter());
    expect(bodies(fixture)).toEqual([1, 2, 1]);
    readers[0].leave();
    expect(readers[1].tryTakePermit()).toBeDefined();
    expect(bodies(fixture)).toEqual([1, 0, 1]);
  });
});

it('sets no timer and takes no slot while no request waits', async () => {
  const { fixture, readers } = await twoReaders();
  await fixture.clock.advance(60_000);
  expect(fixture.clock.pendingTimers).toBe(0);
  expect(readers.map((reader) => reader.recordBodyBytes(fixture.clock.now()))).toEqual([true, true]);
});

it('takes one slot per reader, and no request waits while a body has stalled', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('enter' as const) }),
    fc.record({ kind: fc.constantFrom('bytes' as const, 'leave' as const, 'whole' as const), which: fc.nat(20) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1500 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const fixture = new Fixture({ maxInFlight: 3, timeoutMs: 1_000_000 });
      const alive: { ticket: Ticket; receivedAt: number; isReading: boolean }[] = [];
      for (const each of steps) {
        const chosen = 'which' in each ? alive[each.which % alive.length] : undefined;
        const now = fixture.clock.now();
        if (each.kind === 'enter') {
          const entry = { ticket: fixture.enter(10_000_000), receivedAt: now, isReading: false };
          alive.push(entry);
          void entry.ticket.waitForBodySlot().then(
            () => Object.assign(entry, { isReading: true, receivedAt: fixture.clock.now() }),
            () => undefined,
          );
        } else if (each.kind === 'wait') {
          await fixture.clock.advance(each.ms);
        } else if (chosen?.isReading) {
          if (each.kind === 'bytes') {
            chosen.receivedAt = now;
            if (!chosen.ticket.recordBodyBytes(now)) {
              chosen.isReading = false;
              void chosen.ticket.waitForBodySlot().then(
                () => Object.assign(chosen, { isReading: true, receivedAt: fixture.clock.now() }),
                () => undefined,
              );
            }
          } else {
            alive.splice(alive.indexOf(chosen), 1);
            if (each.kind === 'whole') chosen.ticket.tryTakePermit()?.release();
            chosen.ticket.leave();
          }
        }
        await fixture.clock.advance(0);
        const { readingBodies, stalledBodies, queued } = fixture.throttle.state();
        expect(readingBodies).toBeLessThanOrEqual(3);
        expect(queued + stalledBodies).toBe(alive.length);
        // A request waits only while three bodies are read, each with bytes within the last second.
        if (queued > readingBodies) {
          expect(readingBodies).toBe(3);
          const fresh = alive.filter((one) => one.isReading && fixture.clock.now() - one.receivedAt < 1050);
          expect(fresh.length).toBeGreaterThanOrEqual(3);
        }
      }
    }),
    { numRuns: 200 },
  );
});
