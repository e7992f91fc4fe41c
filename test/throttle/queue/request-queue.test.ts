import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { QueueTicket } from '../../../src/throttle/queue/queue-ticket.ts';
import { FairModel } from './fair-model.ts';
import { QueueDriver } from './request-queue-driver.ts';

const STEP = fc.record({
  kind: fc.constantFrom(
    'enter' as const,
    'enter' as const,
    'read' as const,
    'read' as const,
    'grant' as const,
    'grant' as const,
    'retry' as const,
    'leave' as const,
  ),
  priority: fc.constantFrom('high', 'normal', 'low'),
  caller: fc.constantFrom('', 'a', 'b', 'c'),
  pick: fc.nat(99),
});

function pickFrom<T>(entries: Iterable<T>, pick: number): T | undefined {
  const all = [...entries];
  return all[pick % Math.max(1, all.length)];
}

it('gives body slots and permits in the same order as the model, for any bodies, retries and leavers', () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 2, 3, 5, 64), fc.array(STEP, { minLength: 30, maxLength: 200 }), (places, steps) => {
      const driver = new QueueDriver(places);
      const { queue } = driver;
      const model = new FairModel(places);
      const granted = new Set<QueueTicket>();

      const fill = (): void => {
        for (let expected = model.nextOutside; expected !== undefined; expected = model.nextOutside) {
          expect(queue.admitNext()).toBe(expected);
          model.place(expected);
        }
        expect(queue.admitNext()).toBe(undefined);
      };
      const enter = ({ priority, caller }: QueueTicket['queueClass']): void => {
        const ticket = driver.createTicket({ priority, caller });
        queue.add(ticket);
        model.enter(ticket);
        if (model.nextOutside === ticket) model.place(ticket);
        expect(ticket.phase).toBe(model.preparing.has(ticket) ? 'buffering' : 'queued');
      };
      const grant = (ticket: QueueTicket): void => {
        queue.move(ticket, 'granted');
        model.grant(ticket);
        granted.add(ticket);
      };
      for (const step of steps) {
        const body = pickFrom(model.preparing, step.pick);
        if (step.kind === 'enter') enter(step);
        else if (step.kind === 'read' && body !== undefined) {
          // While no request waits for a permit, one may be granted at once.
          if (step.pick % 3 === 0 && model.nextReady === undefined) grant(body);
          else {
            queue.move(body, 'ready');
            model.preparing.delete(body);
            model.ready.add(body);
          }
        } else if (step.kind === 'grant' && model.nextReady !== undefined) grant(model.nextReady);
        else if (step.kind === 'retry') {
          const retry = pickFrom(granted, step.pick);
          if (retry !== undefined) {
            granted.delete(retry);
            queue.move(retry, 'ready');
            model.retries.add(retry);
          }
        } else if (step.kind === 'leave') {
          const leaver = pickFrom(model.all, step.pick);
          if (leaver !== undefined) {
            queue.move(leaver, 'left');
            model.remove(leaver);
          }
        }
        expect(queue.nextReady).toBe(model.nextReady);
        fill();
        expect(queue.size).toBe(model.all.length);
        expect(queue.callerCount).toBe(model.callers);
        expect(new Set(queue.waitingTickets())).toEqual(new Set([...model.outside, ...model.ready, ...model.retries]));
      }
    }),
    { numRuns: 300 },
  );
});
