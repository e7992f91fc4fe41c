/** Which events report the state of Redis, and how often. */
import { expect, test } from 'vitest';
import { ConnectionHealth } from '../../../src/fleet/redis/connection-health.ts';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import type { EventObserver } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const REFUSED = new RedisFault('refused the connection (ECONNREFUSED)');
const LATE = new RedisFault('could not be reached in time');
const FORBIDDEN = new RedisFault('does not permit it (NOPERM)', { replyCode: 'NOPERM' });

function create() {
  const events: string[] = [];
  const clock = new ManualClock(0);
  const observe: EventObserver = (event) => {
    events.push(event.kind === 'fleet-lost' || event.kind === 'fleet-degraded' ? event.detail : event.kind);
  };
  const health = new ConnectionHealth({ clock, observe, timeoutMs: 50 });
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
  expect(health.state()).toEqual({ state: 'connected', connected: true, fault: undefined, sinceWallAt: 1000 });
});

test('late replies are one line with their figures, which further ones and a lost connection do not repeat', () => {
  const { health, events } = create();
  health.recordConnected();
  health.recordDegraded({ late: 7, commands: 10, medianLateMs: 202.6 });
  health.recordReply(undefined);
  health.recordDegraded({ late: 8, commands: 10, medianLateMs: 240 });
  const late =
    'Redis replies too late: 7 of the last 10 commands had no reply within 50 ms; median of late replies 203 ms: ' +
    'raise fleet.timeoutMs or place Redis nearer';
  expect(health.state()).toMatchObject({ state: 'degraded', connected: false, fault: late });
  health.recordDisconnected(REFUSED);
  expect(health.state()).toMatchObject({ state: 'disconnected', connected: false });
  health.recordDegraded({ late: 9, commands: 10, medianLateMs: 250 });
  expect(health.state()).toMatchObject({ state: 'degraded', connected: false });
  health.recordConnected();
  health.recordDegraded({ late: 7, commands: 10, medianLateMs: 202.6 });
  expect(events).toEqual(['fleet-joined', late, 'Redis refused the connection (ECONNREFUSED)', 'fleet-joined', late]);
});

test('late replies that are errors stay a fault of the command after the replies are in time again', () => {
  const { health } = create();
  health.recordConnected();
  health.recordReply(FORBIDDEN);
  health.recordDegraded({ late: 6, commands: 6, medianLateMs: 60 });
  health.recordConnected();
  expect(health.state().connected).toBe(false);
  health.recordReply(undefined);
  expect(health.state().connected).toBe(true);
});
