/** What is told of a fleet, and how often. */
import { expect, test } from 'vitest';
import { ConnectionHealth } from '../../../src/fleet/redis/connection-health.ts';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const REFUSED = new RedisFault('refused the connection (ECONNREFUSED)');
const LATE = new RedisFault('could not be reached in time');
const FORBIDDEN = new RedisFault('does not permit it (NOPERM)', 'NOPERM');

function create() {
  const told: string[] = [];
  const clock = new ManualClock(0);
  const condition = new ConnectionHealth(clock, (event) => {
    told.push(event.kind === 'fleet-lost' ? event.detail : event.kind);
  });
  return { condition, told, clock };
}

test('two faults that alternate are told once each, and again after it was well', () => {
  const { condition, told } = create();
  for (const fault of [REFUSED, REFUSED, LATE, REFUSED, LATE]) condition.recordDisconnected(fault);
  condition.recordConnected();
  condition.recordConnected();
  condition.recordDisconnected(REFUSED);
  const [refused, late] = ['Redis refused the connection (ECONNREFUSED)', 'Redis could not be reached in time'];
  expect(told).toEqual([refused, late, 'fleet-joined', refused]);
});

test('a server that refuses commands is not joined by being reached', () => {
  const { condition, told } = create();
  condition.recordConnected();
  condition.recordReply(FORBIDDEN);
  condition.recordConnected();
  expect(condition.state().connected).toBe(false);
  condition.recordReply(undefined);
  expect(condition.state().connected).toBe(true);
  expect(told).toEqual(['fleet-joined', 'Redis does not permit it (NOPERM)', 'fleet-joined']);
});

test('what another server had refused is forgotten with its connection', () => {
  const { condition } = create();
  condition.recordConnected();
  condition.recordReply(FORBIDDEN);
  condition.recordDisconnected(REFUSED);
  condition.recordConnected();
  expect(condition.state().connected).toBe(true);
});

test('a late answer of a connection that has ended makes nothing well', () => {
  const { condition } = create();
  condition.recordConnected();
  condition.recordDisconnected(REFUSED);
  condition.recordReply(undefined);
  expect(condition.state().connected).toBe(false);
});

test('it says since when it has been so', async () => {
  const { condition, clock } = create();
  await clock.advance(1000);
  condition.recordConnected();
  await clock.advance(1000);
  condition.recordConnected();
  expect(condition.state()).toEqual({ connected: true, fault: undefined, sinceWallAt: 1000 });
});
