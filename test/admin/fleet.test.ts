/** The fleet on the admin port. */
import { describe, expect, it } from 'vitest';
import { describeStatus } from '../../src/admin/status/status.ts';
import type { FleetConnectionState } from '../../src/fleet/redis/connection-health.ts';
import { healthy, unpaced, validToken } from './states.ts';
import { pageOf, textOf } from './view.ts';

const since = Date.UTC(2026, 10, 1);
const connected: FleetConnectionState = { state: 'connected', connected: true, fault: undefined, sinceWallAt: since };
const degraded: FleetConnectionState = {
  state: 'degraded',
  connected: false,
  fault: 'Redis replies too late: 7 of the last 10 commands had no reply within 50 ms',
  sinceWallAt: since,
};
const lost: FleetConnectionState = {
  state: 'disconnected',
  connected: false,
  fault: 'Redis refused the connection (ECONNREFUSED)',
  sinceWallAt: since,
};
const connecting: FleetConnectionState = {
  state: 'disconnected',
  connected: false,
  fault: undefined,
  sinceWallAt: since,
};

const statusOf = (fleet?: FleetConnectionState) =>
  describeStatus({
    version: '1',
    verdict: healthy,
    alerts: [],
    uptimeMs: 0,
    draining: false,
    tokens: [validToken],
    throttles: [unpaced],
    fleet,
  });

describe('a fleet', () => {
  it('is shown with its fault, as a warning that does not change readiness', () => {
    expect(statusOf(connected)).toMatchObject({
      fleet: { state: 'connected', connected: true, fault: null, since: '2026-11-01T00:00:00.000Z' },
      degraded: [],
    });
    expect(statusOf(degraded)).toMatchObject({
      fleet: { state: 'degraded', connected: false, fault: degraded.fault },
      degraded: [`the fleet is degraded: ${degraded.fault}`],
    });
    expect(statusOf(lost)).toMatchObject({
      fleet: { state: 'disconnected', connected: false, fault: 'Redis refused the connection (ECONNREFUSED)' },
      degraded: ['connection to the fleet lost: Redis refused the connection (ECONNREFUSED)'],
    });
    expect(statusOf(connecting)).toMatchObject({ fleet: { connected: false, fault: null }, degraded: [] });
    expect(statusOf().fleet).toBeNull();
  });

  it('is shown on the page', () => {
    const wordsOf = (fleet?: FleetConnectionState) => textOf(pageOf({ fleet }));
    expect(wordsOf(connected)).toMatch(
      /Fleet connected Tokens and rate limits are shared with the other replicas, since 00:00:00 UTC/,
    );
    expect(wordsOf(degraded)).toMatch(/Fleet degraded Redis replies too late: 7 of the last 10 commands/);
    expect(wordsOf(lost)).toMatch(/Fleet not connected Redis refused the connection/);
    expect(wordsOf(connecting)).toMatch(/Not connected yet/);
    expect(wordsOf()).not.toContain('Fleet');
  });
});
