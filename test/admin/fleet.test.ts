/** What the admin port tells of a fleet. */
import { describe, expect, it } from 'vitest';
import { renderStatusPage } from '../../src/admin/page/status-page.ts';
import { describeReadiness } from '../../src/admin/readiness.ts';
import { describeStatus } from '../../src/admin/status.ts';
import type { FleetState } from '../../src/fleet/condition.ts';
import { unpaced, validToken } from './states.ts';

const since = Date.UTC(2026, 10, 1);
const joined: FleetState = { connected: true, fault: undefined, sinceWallAt: since };
const lost: FleetState = { connected: false, fault: 'Redis refused the connection (ECONNREFUSED)', sinceWallAt: since };
const joining: FleetState = { connected: false, fault: undefined, sinceWallAt: since };

const statusOf = (fleet?: FleetState) =>
  describeStatus({ version: '1', uptimeMs: 0, draining: false, tokens: [validToken], throttles: [unpaced], fleet });
const pageOf = (fleet?: FleetState) =>
  renderStatusPage(statusOf(fleet), describeReadiness({ draining: false, tokens: [validToken] }));

describe('a fleet', () => {
  it('is told of with its fault, which is a reason to look at it and none to be unready', () => {
    expect(statusOf(joined)).toMatchObject({
      fleet: { connected: true, fault: null, since: '2026-11-01T00:00:00.000Z' },
      degraded: [],
    });
    expect(statusOf(lost)).toMatchObject({
      fleet: { connected: false, fault: 'Redis refused the connection (ECONNREFUSED)' },
      degraded: ['alone, without the fleet: Redis refused the connection (ECONNREFUSED)'],
    });
    expect(statusOf(joining)).toMatchObject({ fleet: { connected: false, fault: null }, degraded: [] });
    expect(statusOf().fleet).toBeNull();
  });

  it('has a line on the page', () => {
    expect(pageOf(joined)).toMatch(/<h2>Fleet<\/h2>[^]*joined, since 2026-11-01/);
    expect(pageOf(lost)).toMatch(/alone: Redis refused the connection/);
    expect(pageOf(joining)).toMatch(/not joined yet/);
    expect(pageOf()).not.toContain('Fleet');
  });
});
