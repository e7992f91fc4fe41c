/** One replica's share of the quota: with the board, and without. */
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
    epoch: 0,
    isFleetPaused: false,
    pausedUntil: 0,
    rate: 40,
    burst: 8,
    replicaCount: 4,
    rank: 1,
    oldestReportAt: AHEAD,
    retryInMs: 0,
    permitTimes: [],
    peerReports: '',
    version: 0,
    model: '',
    ...change,
  };
}

describe('joined', () => {
  test('a permit is a slot, used at its instant or a little later, and then lost', () => {
    const share = create();
    share.applyReply(0, reply({ permitTimes: [AHEAD + 100, AHEAD + 125, AHEAD + 150] }));
    expect(share.tryTake(99)).toBe(false);
    expect(share.nextAt(99)).toBe(100);
    expect(share.tryTake(100)).toBe(true);
    expect(share.tryTake(100)).toBe(false);
    // Later than the grace of the second.
    expect(share.tryTake(180)).toBe(true);
    expect(share.tryTake(180)).toBe(false);
    expect(share.nextAt(180)).toBe(Infinity);
  });

  test('a pause voids all slots; only the leader may probe, when it is over', () => {
    const share = create();
    const leader = create();
    for (const one of [share, leader]) {
      one.applyReply(0, reply({ isLeader: one === leader, permitTimes: [AHEAD + 10] }));
      expect(one.applyUpdate(5, { epoch: 1, isFleetPaused: true, pausedUntil: AHEAD + 50, rate: 40, burst: 8 })).toBe(
        true,
      );
      expect(one.applyUpdate(6, { epoch: 1, isFleetPaused: true, pausedUntil: AHEAD + 50, rate: 40, burst: 8 })).toBe(
        false,
      );
      expect(one.tryTake(10)).toBe(false);
      expect(one.permitsLeft(10)).toBe(0);
    }
    expect(share.nextAt(60)).toBe(Infinity);
    expect(share.tryTake(60)).toBe(false);
    expect(leader.nextAt(10)).toBe(50);
    expect(leader.tryTake(50)).toBe(true);
  });

  test('while no limit is known no permit is needed', () => {
    const share = create();
    share.applyReply(0, reply({ rate: Infinity }));
    expect(share.isLimited).toBe(false);
    expect(share.tryTake(0)).toBe(true);
    expect(share.nextAt(0)).toBe(0);
  });

  test('beyond the lease one call at a time goes, and the next when it has ended or is given up', () => {
    const share = create();
    share.applyReply(0, reply({ isLeader: true }));
    share.setExtraRate(0, 10);
    expect([share.tryTake(0), share.tookExtra]).toEqual([true, true]);
    expect(share.tryTake(150)).toBe(false);
    share.onExtraEnded();
    expect(share.tryTake(150)).toBe(true);
    expect(share.nextAt(300)).toBe(2150);
    expect(share.tryTake(2150)).toBe(true);
    // What was taken beyond is left to the others.
    expect(share.repayExtra(8)).toBe(5);
    expect(share.repayExtra(8)).toBe(8);
  });

  test('a wait is at least what it would be if the others wanted nothing', () => {
    const share = create();
    share.applyReply(0, reply({ permitTimes: [AHEAD + 100] }));
    expect(share.minWaitMs(40)).toBe(1000);
    expect(share.nthAt(0, 0)).toBe(100);
    expect(share.nthAt(0, 1)).toBe(200);
  });
});

describe('apart', () => {
  test('each has its part of the last rate, in its own place, and never the whole', () => {
    const opens = [0, 1, 2, 3].map((rank) => {
      const share = create();
      share.applyReply(0, reply({ rank, permitTimes: [AHEAD + 10] }));
      share.onDisconnected(1000);
      expect(share).toMatchObject({ state: 'apart', ownRate: 10, ownBurst: 2, isLimited: false });
      return share.apartOpenAt;
    });
    expect(opens).toEqual([1125, 1150, 1175, 1200]);
  });

  test('its own refusals lower its own part alone, and calls bring it back', () => {
    const share = create();
    share.applyReply(0, reply());
    share.onDisconnected(0);
    share.adjustApartRate(true);
    expect(share.ownRate).toBeCloseTo(8.5);
    for (let call = 0; call < 40; call++) share.adjustApartRate(false);
    expect(share.ownRate).toBe(10);
  });

  test('lasts until somebody has said what holds', () => {
    const share = create();
    share.applyReply(0, reply());
    share.onDisconnected(0);
    share.applyReply(10, reply({ rate: undefined }));
    expect(share.state).toBe('apart');
    share.applyReply(20, reply());
    expect(share.state).toBe('joined');
  });

  test('who knew of no limit goes on as if there were no fleet', () => {
    const share = create();
    share.applyReply(0, reply({ rate: Infinity }));
    share.onDisconnected(0);
    expect(share.state).toBe('unknown');
  });
});
