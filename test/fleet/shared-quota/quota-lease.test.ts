/** One replica's lease of the quota: with the store, and without. */
import { describe, expect, test } from 'vitest';
import type { QuotaReply } from '../../../src/fleet/shared-quota/quota-store.ts';
import { ClockOffset } from '../../../src/fleet/shared-quota/clock-offset.ts';
import { QuotaLease } from '../../../src/fleet/shared-quota/quota-lease.ts';

const AHEAD = 1_000_000;

function create(): QuotaLease {
  const clock = new ClockOffset();
  clock.addSample(0, 0, AHEAD);
  return new QuotaLease(clock);
}

function reply(change: Partial<QuotaReply> = {}): QuotaReply {
  return {
    storeNow: AHEAD,
    isLeader: false,
    leaderLeftMs: Infinity,
    isTentative: false,
    epoch: 0,
    isFleetPaused: false,
    pausedUntil: 0,
    rate: 40,
    burst: 8,
    replicaCount: 4,
    rank: 1,
    oldestReportAt: AHEAD,
    reportsLostAt: 0,
    retryInMs: 0,
    permitTimes: [],
    reports: '',
    reportsReadUpTo: 0,
    reportsKeptFrom: 0,
    grants: undefined,
    grantsRetryInMs: 0,
    version: 0,
    model: '',
    ...change,
  };
}

describe('joined', () => {
  test('a leased permit is usable at its instant or a little later, and then lost', () => {
    const lease = create();
    lease.applyReply(0, reply({ permitTimes: [AHEAD + 100, AHEAD + 125, AHEAD + 150] }));
    expect(lease.tryTake(99)).toBe(false);
    expect(lease.nextAt(99)).toBe(100);
    expect(lease.tryTake(100)).toBe(true);
    expect(lease.tryTake(100)).toBe(false);
    // Later than the grace of the second.
    expect(lease.tryTake(180)).toBe(true);
    expect(lease.tryTake(180)).toBe(false);
    expect(lease.nextAt(180)).toBe(Infinity);
  });

  test('a pause voids all leased permits, and only the leader may probe after it', () => {
    const lease = create();
    const leader = create();
    for (const one of [lease, leader]) {
      one.applyReply(0, reply({ isLeader: one === leader, permitTimes: [AHEAD + 10] }));
      expect(
        one.applyUpdate(5, {
          epoch: 1,
          isFleetPaused: true,
          pausedUntil: AHEAD + 50,
          rate: 40,
          burst: 8,
          replicaCount: 4,
        }),
      ).toBe(true);
      expect(
        one.applyUpdate(6, {
          epoch: 1,
          isFleetPaused: true,
          pausedUntil: AHEAD + 50,
          rate: 40,
          burst: 8,
          replicaCount: 4,
        }),
      ).toBe(false);
      expect(one.tryTake(10)).toBe(false);
      expect(one.permitsLeft(10)).toBe(0);
    }
    expect(lease.nextAt(60)).toBe(Infinity);
    expect(lease.tryTake(60)).toBe(false);
    expect(leader.nextAt(10)).toBe(50);
    expect(leader.tryTake(50)).toBe(true);
  });

  test('needs no permit while no limit is known', () => {
    const lease = create();
    lease.applyReply(0, reply({ rate: Infinity }));
    expect(lease.isLimited).toBe(false);
    expect(lease.tryTake(0)).toBe(true);
    expect(lease.nextAt(0)).toBe(0);
  });

  test('allows one call at a time above the lease, the next after its end or a time-out', () => {
    const lease = create();
    lease.applyReply(0, reply({ isLeader: true }));
    lease.setExtraRate(0, 10);
    expect([lease.tryTake(0), lease.tookExtra]).toEqual([true, true]);
    expect(lease.tryTake(150)).toBe(false);
    lease.onExtraEnded();
    expect(lease.tryTake(150)).toBe(true);
    expect(lease.nextAt(300)).toBe(2150);
    expect(lease.tryTake(2150)).toBe(true);
    // What was taken beyond is left to the others.
    expect(lease.repayExtra(8)).toBe(5);
    expect(lease.repayExtra(8)).toBe(8);
  });

  test('computes the shortest wait as if the other replicas needed nothing', () => {
    const lease = create();
    lease.applyReply(0, reply({ permitTimes: [AHEAD + 100] }));
    expect(lease.minWaitMs(40)).toBe(1000);
    expect(lease.nthAt(0, 0)).toBe(100);
    expect(lease.nthAt(0, 1)).toBe(200);
  });
});

describe('apart', () => {
  test('gives each replica its part of the last rate at its own offset', () => {
    const opens = [0, 1, 2, 3].map((rank) => {
      const lease = create();
      lease.applyReply(0, reply({ rank, permitTimes: [AHEAD + 10] }));
      lease.onDisconnected(1000);
      expect(lease).toMatchObject({ state: 'apart', ownRate: 10, ownBurst: 2, isLimited: false });
      return lease.apartOpenAt;
    });
    // The lease of each began 10 ms ahead: those before it may still use theirs.
    expect(opens).toEqual([1135, 1160, 1185, 1210]);
  });

  test('lowers only its own part after its own refusals, and accepted calls restore it', () => {
    const lease = create();
    lease.applyReply(0, reply());
    lease.onDisconnected(0);
    lease.adjustApartRate(true);
    expect(lease.ownRate).toBeCloseTo(8.5);
    for (let call = 0; call < 40; call++) lease.adjustApartRate(false);
    expect(lease.ownRate).toBe(10);
  });

  test('lasts until a limit is published', () => {
    const lease = create();
    lease.applyReply(0, reply());
    lease.onDisconnected(0);
    lease.applyReply(10, reply({ rate: undefined }));
    expect(lease.state).toBe('apart');
    lease.applyReply(20, reply());
    expect(lease.state).toBe('joined');
  });

  test('continues as if there were no fleet when no limit was known', () => {
    const lease = create();
    lease.applyReply(0, reply({ rate: Infinity }));
    lease.onDisconnected(0);
    expect(lease.state).toBe('unknown');
  });
});
