import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import type { Priority } from '../../../src/throttle/throttle.ts';
import { QueueDriver } from './request-queue-driver.ts';

const PRIORITY = fc.constantFrom('high', 'normal', 'low');
const CALLER = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const PLACES = fc.constantFrom(1, 2, 3, 8, 64, Infinity);

function ages(tickets: readonly QueueTicket[]): number[] {
  return tickets.map((ticket) => ticket.arrivalNumber);
}

function isSorted(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > numbers[index - 1]!);
}

/** Fills, keeps full and grants; counts the permits by class. */
function share(driver: QueueDriver, classes: readonly Priority[], permits: number): Record<Priority, number>[] {
  const counts: Record<Priority, number>[] = [];
  for (const priority of classes)
    for (const caller of ['a', 'b', 'c']) for (let each = 0; each < 30; each++) driver.enter(priority, caller);
  for (let permit = 0; permit < permits; permit++) {
    const { priority, caller } = driver.grant()!.queueClass;
    counts.push({ high: 0, normal: 0, low: 0, [priority]: 1 });
    driver.enter(priority, caller);
  }
  return counts;
}

describe('without priorities and callers', () => {
  it('serves first in, first out, and retries first by arrival', () => {
    const STEP = fc.oneof(
      { weight: 3, arbitrary: fc.constant({ kind: 'enter' as const, pick: 0 }) },
      fc.record({ kind: fc.constantFrom('grant' as const, 'leave' as const, 'retry' as const), pick: fc.nat(99) }),
    );
    fc.assert(
      fc.property(PLACES, fc.array(STEP, { maxLength: 150 }), (places, steps) => {
        const driver = new QueueDriver(places);
        let waiting: QueueTicket[] = [];
        for (const { kind, pick } of steps) {
          const { granted } = driver;
          if (kind === 'enter') waiting.push(driver.enter());
          else if (kind === 'leave' && waiting.length > 0) driver.leave(waiting.splice(pick % waiting.length, 1)[0]!);
          else if (kind === 'grant') expect(driver.grant()).toBe(waiting.shift());
          else if (kind === 'retry' && granted.length > 0) {
            const [retry] = granted.splice(pick % granted.length, 1);
            driver.retry(retry!);
            waiting = [...waiting, retry!].sort((one, other) => one.arrivalNumber - other.arrivalNumber);
          }
          expect(driver.queue.size).toBe(waiting.length);
          expect(driver.queue.countAhead({ priority: 'normal', caller: '' })).toBe(waiting.length);
        }
        expect(driver.drain()).toEqual(waiting);
      }),
    );
  });
});

describe('callers of one class', () => {
  it('take turns: a single request does not wait for the thousand of another caller', () => {
    const driver = new QueueDriver(64);
    for (let count = 0; count < 1000; count++) driver.enter('normal', 'many');
    const single = driver.enter('normal', 'single');
    expect([driver.grant()?.queueClass.caller, driver.grant()]).toEqual(['many', single]);
  });

  it('each get a permit within as many turns as callers wait', () => {
    const STEP = fc.record({
      kind: fc.constantFrom('enter' as const, 'enter' as const, 'grant' as const, 'leave' as const),
      caller: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
      pick: fc.nat(99),
    });
    fc.assert(
      fc.property(PLACES, fc.array(STEP, { maxLength: 250 }), (places, steps) => {
        const driver = new QueueDriver(places);
        const lines = new Map<string, QueueTicket[]>();
        /** For each caller, the permit by which its oldest request must have been served. */
        const dueBy = new Map<string, number>();
        let permits = 0;
        const remove = (ticket: QueueTicket): void => {
          const { caller } = ticket.queueClass;
          const left = lines.get(caller)!.filter((each) => each !== ticket);
          if (left.length > 0) lines.set(caller, left);
          else lines.delete(caller);
        };
        const watch = (caller: string): void => {
          if (lines.has(caller)) dueBy.set(caller, permits + lines.size);
          else dueBy.delete(caller);
        };
        for (const { kind, caller, pick } of steps) {
          if (kind === 'enter') {
            const line = lines.get(caller) ?? [];
            lines.set(caller, [...line, driver.enter('normal', caller)]);
            if (line.length === 0) watch(caller);
          } else if (kind === 'grant') {
            const ticket = driver.grant();
            if (ticket === undefined) continue;
            permits++;
            expect(lines.get(ticket.queueClass.caller)?.[0]).toBe(ticket);
            remove(ticket);
            watch(ticket.queueClass.caller);
            for (const due of dueBy.values()) expect(due).toBeGreaterThan(permits);
          } else {
            const all = [...lines.values()].flat();
            const ticket = all[pick % Math.max(1, all.length)];
            if (ticket === undefined) continue;
            driver.leave(ticket);
            remove(ticket);
            if (!lines.has(ticket.queueClass.caller)) dueBy.delete(ticket.queueClass.caller);
          }
          expect(driver.queue.callerCount).toBe(lines.size);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('leave no record when none of their requests waits', () => {
    const driver = new QueueDriver(4);
    const tickets = Array.from({ length: 1000 }, (_, index) => driver.enter('low', `caller-${index}`));
    expect(driver.queue.callerCount).toBe(1000);
    for (const ticket of tickets.slice(0, 500)) driver.leave(ticket);
    expect(driver.queue.callerCount).toBe(500);
    driver.drain();
    expect([driver.queue.callerCount, driver.queue.size]).toEqual([0, 0]);
  });
});

describe('priorities', () => {
  it.each([
    [['high', 'normal', 'low'] as const, 81, { high: 64, normal: 16, low: 1 }],
    [['normal', 'low'] as const, 17, { high: 0, normal: 16, low: 1 }],
    [['high', 'normal'] as const, 5, { high: 4, normal: 1, low: 0 }],
    [['high', 'low'] as const, 65, { high: 64, normal: 0, low: 1 }],
  ])('share permits by weight in every round: %j', (classes, round, expected) => {
    for (const places of [1, 2, 3, 8, 64]) {
      const counts = share(new QueueDriver(places), classes, 5 * round);
      for (let from = 0; from + round <= counts.length; from++) {
        const sum = { high: 0, normal: 0, low: 0 };
        for (const count of counts.slice(from, from + round))
          for (const priority of classes) sum[priority] += count[priority];
        expect(sum, `places ${places}, from ${from}`).toEqual(expected);
      }
    }
  });

  it('never starve: a low request gets its permit within a round', () => {
    const ARRIVALS = fc.array(fc.array(PRIORITY, { minLength: 1, maxLength: 3 }), { minLength: 200, maxLength: 200 });
    fc.assert(
      fc.property(PLACES, ARRIVALS, fc.nat(60), (places, arrivals, entersAfter) => {
        const driver = new QueueDriver(places);
        let low: QueueTicket | undefined;
        let permitsBefore = 0;
        for (const [turn, priorities] of arrivals.entries()) {
          for (const priority of priorities) if (priority !== 'low') driver.enter(priority);
          if (turn === entersAfter) {
            low = driver.enter('low');
            permitsBefore = driver.granted.length;
          }
          driver.grant();
        }
        expect(low?.phase).toBe('granted');
        expect(driver.granted.indexOf(low!) - permitsBefore).toBeLessThanOrEqual(81);
      }),
    );
  });

  it('save up no turns while they have nothing to send', () => {
    const driver = new QueueDriver();
    for (let count = 0; count < 1000; count++) {
      driver.enter('normal');
      driver.grant();
    }
    for (let count = 0; count < 40; count++) {
      driver.enter('low');
      driver.enter('normal');
    }
    const order = Array.from({ length: 34 }, () => driver.grant()!.queueClass.priority);
    expect(order.filter((priority) => priority === 'low')).toHaveLength(2);
  });

  it('are charged for their retries, which go first', () => {
    const driver = new QueueDriver();
    for (let count = 0; count < 150; count++) {
      driver.enter('normal', 'b');
      driver.enter('low', 'a');
    }
    let low = driver.grant()!;
    while (low.queueClass.priority !== 'low') low = driver.grant()!;
    for (let tries = 0; tries < 3; tries++) {
      driver.retry(low);
      expect(driver.grant()).toBe(low);
    }
    const next = Array.from({ length: 100 }, () => driver.grant()!.queueClass.priority);
    // Four permits' worth of normal ones.
    expect(next.indexOf('low')).toBe(64);
  });

  it('start again after a permit that was granted while no request waited', () => {
    const countBeforeLow = (hasSpareCapacity: boolean): number => {
      const driver = new QueueDriver();
      const retrying = driver.enter('low');
      driver.grant();
      for (let retry = 0; retry < 3; retry++) {
        driver.enter('high');
        driver.retry(retrying);
        driver.grant();
      }
      driver.drain();
      const other = driver.createTicket({ priority: 'high', caller: '' });
      other.phase = 'complete';
      if (hasSpareCapacity) driver.queue.tryGrantUncontended(other);
      const low = driver.enter('low');
      for (let count = 0; count < 300; count++) driver.enter('high');
      return driver.drain().indexOf(low);
    };
    expect(countBeforeLow(false)).toBeGreaterThan(100);
    expect(countBeforeLow(true)).toBe(64);
  });

  it('that come back wait for their first permit as for any other', () => {
    const driver = new QueueDriver();
    for (let count = 0; count < 100; count++) driver.enter('normal');
    for (let count = 0; count < 50; count++) driver.grant();
    const low = driver.enter('low');
    for (let count = 0; count < 16; count++) expect(driver.grant()).not.toBe(low);
    expect([driver.grant(), driver.grant()]).toContain(low);
  });
});

describe('the number of requests ahead of a new one', () => {
  const LINES = fc.array(fc.record({ priority: PRIORITY, caller: CALLER, size: fc.integer({ min: 1, max: 100 }) }), {
    minLength: 1,
    maxLength: 6,
  });

  it('is exact for the first request of a caller and for callers alone in their priority', () => {
    fc.assert(
      fc.property(LINES, fc.nat(300), PRIORITY, CALLER, (lines, permits, priority, caller) => {
        const driver = new QueueDriver();
        for (const line of lines) for (let each = 0; each < line.size; each++) driver.enter(line.priority, line.caller);
        for (let permit = 0; permit < permits; permit++) driver.grant();
        const waiting = driver.queue.waitingTickets().filter(({ queueClass }) => queueClass.priority === priority);
        const own = waiting.filter(({ queueClass }) => queueClass.caller === caller);
        const predicted = driver.queue.countAhead({ priority, caller });
        const newcomer = driver.enter(priority, caller);
        const ahead = driver.drain().indexOf(newcomer);
        expect(predicted).toBeLessThanOrEqual(ahead);
        if (own.length === 0 || own.length === waiting.length) expect(predicted).toBe(ahead);
      }),
      { numRuns: 300 },
    );
  });
});

describe('for any priorities, callers and leavers', () => {
  it('the requests of one caller keep their order, and the number ahead is a lower bound on arrival', () => {
    const STEP = fc.record({
      kind: fc.constantFrom('enter' as const, 'enter' as const, 'grant' as const, 'leave' as const),
      priority: PRIORITY,
      caller: CALLER,
      pick: fc.nat(99),
    });
    fc.assert(
      fc.property(PLACES, fc.array(STEP, { maxLength: 120 }), PRIORITY, CALLER, (places, steps, priority, caller) => {
        const driver = new QueueDriver(places);
        const waiting = new Set<QueueTicket>();
        for (const step of steps) {
          if (step.kind === 'enter') waiting.add(driver.enter(step.priority, step.caller));
          else if (step.kind === 'grant') waiting.delete(driver.grant()!);
          else {
            const ticket = [...waiting][step.pick % Math.max(1, waiting.size)];
            if (ticket === undefined) continue;
            driver.leave(ticket);
            waiting.delete(ticket);
          }
          expect(driver.queue.size).toBe(waiting.size);
          const sizes = { high: 0, normal: 0, low: 0 };
          for (const ticket of waiting) sizes[ticket.queueClass.priority]++;
          expect(driver.queue.sizesByPriority()).toEqual(sizes);
        }
        const isFirst = [...waiting].every(
          ({ queueClass }) => queueClass.priority !== priority || queueClass.caller !== caller,
        );
        const predicted = driver.queue.countAhead({ priority, caller });
        const newcomer = driver.enter(priority, caller);
        const ahead = driver.drain().indexOf(newcomer);
        // A request of lower priority in the only body slot is granted first.
        expect(predicted - (places === 1 ? 2 : 0)).toBeLessThanOrEqual(ahead);
        if (isFirst && places === Infinity) expect(predicted).toBe(ahead);
        for (const each of ['high', 'normal', 'low'])
          for (const name of 'abcde') {
            const own = driver.granted.filter(
              ({ queueClass }) => queueClass.priority === each && queueClass.caller === name,
            );
            expect(isSorted(ages(own))).toBe(true);
          }
      }),
      { numRuns: 300 },
    );
  });
});
