/** Which events report the state of Redis, and how often. */
import { expect, test } from 'vitest';
import { ConnectionHealth } from '../../../src/fleet/redis/connection-health.ts';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const REFUSED = new RedisFault('refused the connection (ECONNREFUSED)');
const LATE = new RedisFault('could not be reached in time');
const FORBIDDEN = new RedisFault('does not permit it (NOPERM)', 'NOPERM');

function create() {
  const events: string[] = [];
  const clock = new ManualClock(0);
  const health = new ConnectionHealth(clock, (event) => {
    events.push(event.kind === 'fleet-lost' ? event.detail : event.kind);
  });
  return { health, events, clock };
}

test('reports two alternating faults once each, and again after a connection', () => {
  const { health, events } = create();
  for (const fault of [REFUSED, REFUSED, LATE, REFUSED, LATE]) health.recordDisconnected(fault);
  health.recordConnected();
  health.recordConnected();
  health.recordDisconnected(REFUSED);
  const [refused, late] = ['Redis refused the connection (ECONNREFUSED)', 'Redis could not be reached in time'];
  expect(events).toEqual([refused, late, 'fleet-joined', refused]);
});

test('a server that refuses commands is not connected by a new connection', () => {
  const { health, events } = create();
  health.recordConnected();
  health.recordReply(FORBIDDEN);
  health.recordConnected();
  expect(health.state().connected).toBe(false);
  health.recordReply(undefined);
  expect(health.state().connected).toBe(true);
  expect(events).toEqual(['fleet-joined', 'Redis does not permit it (NOPERM)', 'fleet-joined']);
});

test('an error reply is forgotten when its connection is lost', () => {
  const { health } = create();
  health.recordConnected();
  health.recordReply(FORBIDDEN);
  health.recordDisconnected(REFUSED);
  health.recordConnected();
  expect(health.state().connected).toBe(true);
});

test('a late reply of a lost connection does not count as connected', () => {
  const { health } = create();
  health.recordConnected();
  health.recordDisconnected(REFUSED);
  health.recordReply(undefined);
  expect(health.state().connected).toBe(false);
});

test('state shows the time of the last change', async () => {
  const { health, clock } = create();
  await clock.advance(1000);
  health.recordConnected();
  await clock.advance(1000);
  health.recordConnected();
  expect(health.state()).toEqual({ connected: true, fault: undefined, sinceWallAt: 1000 });
});
