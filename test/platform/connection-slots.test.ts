/** Which connection is displaced when a port is full: the same one as in a simple model, for every order of events. */
import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConnectionSlots } from '../../src/platform/connection-slots.ts';
import { ManualClock } from '../support/manual-clock.ts';

interface Connection {
  readonly socket: Socket;
  pendingRequests: number;
  isNew: boolean;
  waitStartedAt: number;
}

const MAX = 3;
const MIN_WAIT_MS = 10;

const step = fc.oneof(
  fc.record({ kind: fc.constant('add' as const) }),
  fc.record({ kind: fc.constantFrom('close' as const, 'begin' as const, 'end' as const), at: fc.nat(MAX - 1) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(15) }),
);

it('displaces the longest idle connection, and never exceeds the limit', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const slots = new ConnectionSlots(MAX, MIN_WAIT_MS, clock);
      // In the order in which they began to wait.
      let model: Connection[] = [];
      const requeue = (connection: Connection): void => {
        connection.waitStartedAt = clock.now();
        model = [...model.filter((each) => each !== connection), connection];
      };
      for (const each of steps) {
        if (each.kind === 'pass') await clock.advance(each.ms);
        else if (each.kind === 'add') {
          const socket = new Socket();
          const decision = slots.add(socket);
          const longest = model.find(({ pendingRequests }) => pendingRequests === 0);
          const mayDisplace = longest !== undefined && clock.now() - longest.waitStartedAt >= MIN_WAIT_MS;
          if (model.length < MAX) expect(decision).toEqual({ kind: 'accept' });
          else if (mayDisplace) {
            expect(decision).toMatchObject({ kind: 'displace', isNew: longest.isNew });
            expect('socket' in decision && decision.socket === longest.socket).toBe(true);
            model = model.filter((one) => one !== longest);
          } else expect(decision).toEqual({ kind: 'reject' });
          if (decision.kind !== 'reject') requeue({ socket, pendingRequests: 0, isNew: true, waitStartedAt: 0 });
        } else {
          const connection = model[each.at];
          if (connection === undefined) continue;
          if (each.kind === 'close') {
            slots.remove(connection.socket);
            model = model.filter((one) => one !== connection);
          } else if (each.kind === 'begin') {
            connection.isNew = false;
            expect(slots.beginRequest(connection.socket)).toBe(++connection.pendingRequests);
          } else if (connection.pendingRequests > 0) {
            slots.endRequest(connection.socket);
            if (--connection.pendingRequests === 0) requeue(connection);
          }
        }
        expect(slots.size).toBe(model.length);
        expect(slots.size).toBeLessThanOrEqual(MAX);
      }
    }),
    { numRuns: 300 },
  );
});

it('ignores a connection that was not added', () => {
  const slots = new ConnectionSlots(1, 0, new ManualClock());
  const unknown = new Socket();
  expect(slots.beginRequest(unknown)).toBe(1);
  slots.endRequest(unknown);
  slots.remove(unknown);
  expect(slots.size).toBe(0);
});
