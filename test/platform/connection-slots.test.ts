/** Which connection gives way when a port is full: the same as in a plain model, whatever the order of events. */
import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConnectionSlots } from '../../src/platform/connection-slots.ts';
import { ManualClock } from '../support/manual-clock.ts';

interface Connection {
  readonly socket: Socket;
  unanswered: number;
  isNew: boolean;
  waitsSince: number;
}

const MAX = 3;
const MIN_WAIT_MS = 10;

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const) }),
  fc.record({ kind: fc.constantFrom('close' as const, 'begin' as const, 'end' as const), at: fc.nat(MAX - 1) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(15) }),
);

it('displaces the connection that has waited longest without a request, and never more are open than may be', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const slots = new ConnectionSlots(MAX, MIN_WAIT_MS, clock);
      // In the order in which they began to wait.
      let model: Connection[] = [];
      const requeue = (connection: Connection): void => {
        connection.waitsSince = clock.now();
        model = [...model.filter((each) => each !== connection), connection];
      };
      for (const each of steps) {
        if (each.kind === 'pass') await clock.advance(each.ms);
        else if (each.kind === 'add') {
          const socket = new Socket();
          const decision = slots.add(socket);
          const longest = model.find(({ unanswered }) => unanswered === 0);
          const mayDisplace = longest !== undefined && clock.now() - longest.waitsSince >= MIN_WAIT_MS;
          if (model.length < MAX) expect(decision).toEqual({ kind: 'accept' });
          else if (mayDisplace) {
            expect(decision).toMatchObject({ kind: 'displace', isNew: longest.isNew });
            expect('socket' in decision && decision.socket === longest.socket).toBe(true);
            model = model.filter((one) => one !== longest);
          } else expect(decision).toEqual({ kind: 'refuse' });
          if (decision.kind !== 'refuse') requeue({ socket, unanswered: 0, isNew: true, waitsSince: 0 });
        } else {
          const connection = model[each.at];
          if (connection === undefined) continue;
          if (each.kind === 'close') {
            slots.remove(connection.socket);
            model = model.filter((one) => one !== connection);
          } else if (each.kind === 'begin') {
            connection.isNew = false;
            expect(slots.beginRequest(connection.socket)).toBe(++connection.unanswered);
          } else if (connection.unanswered > 0) {
            slots.endRequest(connection.socket);
            if (--connection.unanswered === 0) requeue(connection);
          }
        }
        expect(slots.size).toBe(model.length);
        expect(slots.size).toBeLessThanOrEqual(MAX);
      }
    }),
    { numRuns: 300 },
  );
});

it('knows nothing of a connection that it did not take in', () => {
  const slots = new ConnectionSlots(1, 0, new ManualClock());
  const stranger = new Socket();
  expect(slots.beginRequest(stranger)).toBe(1);
  slots.endRequest(stranger);
  slots.remove(stranger);
  expect(slots.size).toBe(0);
});
