/** The odds that a limit is one operation's, and how an inquest counts. */
import { describe, expect, it } from 'vitest';
import { Inquest } from '../../../src/throttle/lanes/inquest.ts';
import { OTHERS } from '../../../src/throttle/queue/response-times.ts';
import { RefusedOperations } from '../../../src/throttle/lanes/refused-operations.ts';
import { ScopeOdds } from '../../../src/throttle/lanes/scope-odds.ts';
import type { PermitGrant } from '../../../src/throttle/pacing/gate.ts';
import type { Lane } from '../../../src/throttle/lanes/lane.ts';
import type { RateLimitReport } from '../../../src/throttle/throttle.ts';
import { rateLimited } from '../fixture.ts';

const REPORT = rateLimited() as RateLimitReport;

describe('odds', () => {
  it.each([
    ['one surely accepted witness', [0], 2.7],
    ['one that a limit for all would have accepted half the time', [0.5], 0.7],
    ['one that it would have accepted anyway', [1], -0.3],
    ['three sure ones, which confirm', [0, 0, 0], 6],
  ])('%s', (_, chances, bits) => {
    const odds = new ScopeOdds();
    for (const chance of chances) odds.recordAcceptedWitness(chance);
    expect(odds.bits).toBeCloseTo(bits);
    expect(odds.isConfirmed).toBe(bits >= 6);
  });

  it('fall to the route by two refused witnesses, and rise again by accepted ones', () => {
    const odds = new ScopeOdds();
    odds.recordRefusedWitness();
    expect(odds.isRefuted).toBe(false);
    odds.recordRefusedWitness();
    expect(odds.isRefuted).toBe(true);
    odds.recordAcceptedWitness(0);
    expect(odds.isRefuted).toBe(false);
  });

  it('rise where all closures begin with an operation that makes few calls, and do not where it makes most', () => {
    const [rare, frequent] = [new ScopeOdds(), new ScopeOdds()];
    for (let closure = 0; closure < 4; closure++) {
      rare.recordClosure(true, 0.05);
      frequent.recordClosure(true, 0.95);
    }
    expect(rare.isConfirmed).toBe(true);
    expect(frequent.bits).toBeLessThan(1);
  });

  it('fall where closures begin with others', () => {
    const odds = new ScopeOdds();
    for (let closure = 0; closure < 40; closure++) odds.recordClosure(closure % 2 === 0, 0.5);
    expect(odds.bits).toBeLessThan(0);
  });

  it('stay confirmed, until something else explains the refusals', () => {
    const odds = new ScopeOdds();
    for (let count = 0; count < 3; count++) odds.recordAcceptedWitness(0);
    expect(odds.isConfirmed).toBe(true);
    odds.recordRefusedWitness();
    expect(odds.isConfirmed).toBe(true);
    odds.refute();
    expect([odds.isConfirmed, odds.isRefuted]).toEqual([false, true]);
  });

  it('of an earlier process need one more closure', () => {
    const odds = new ScopeOdds();
    odds.restore();
    expect(odds.isConfirmed).toBe(false);
    odds.recordClosure(true, 0.3);
    odds.recordAcceptedWitness(0);
    expect(odds.isConfirmed).toBe(true);
  });
});

describe('an inquest', () => {
  const grantAt = (at: number) => ({ at }) as PermitGrant;
  const lane = (operation: string) => ({ operation }) as Lane;

  it.each([
    [1000, 0.005, 'as calls that may overtake each other'],
    [1004, 0.005, 'as calls that may overtake each other'],
    [1100, 0.1, 'by the rate of all calls'],
    [9000, 1, 'for certain'],
  ])('expects a permit of a limit for all until %i with the chance %d, %s', (at, chance) => {
    expect(new Inquest(lane('a'), grantAt(1000), REPORT, 0.001).chanceOfPermit(at)).toBeCloseTo(chance);
  });

  it('finds for the route from the third refused operation on, and not for three refusals of two', () => {
    const second = lane('b');
    const inquest = new Inquest(lane('a'), grantAt(1000), REPORT, 0.001);
    inquest.recordRefused(grantAt(1100), REPORT, second);
    inquest.recordRefused(grantAt(1200), REPORT, second);
    expect([inquest.isRoutes, inquest.refusals.length, inquest.refusedAt]).toEqual([false, 3, 1200]);
    inquest.recordRefused(grantAt(1150), REPORT, lane('c'));
    expect([inquest.isRoutes, inquest.refusedAt]).toEqual([true, 1200]);
  });

  it('lets the next witness go once the last one was refused', () => {
    const inquest = new Inquest(lane('a'), grantAt(1000), REPORT, 0.001);
    inquest.recordWitness(grantAt(1010));
    expect(inquest.heldUpUntil).toBe(3010);
    inquest.recordRefused(grantAt(1010), REPORT, lane('b'));
    expect(inquest.heldUpUntil).toBe(-Infinity);
  });
});

describe('the operation that the refusals fall on', () => {
  it('is named while the odds say so, and no longer once others are refused as often', () => {
    let total = 0;
    const others = Array.from({ length: 5 }, (_, index) => `GET /${String(index)}`);
    const refused = new RefusedOperations(() => others.map((operation) => [operation, total] as const));
    for (let count = 0; count < 6; count++) {
      total += 10;
      refused.recordClosure('POST /policies');
    }
    expect(refused.only).toBe('POST /policies');
    for (let count = 0; count < 60; count++) {
      total += 10;
      refused.recordClosure(others[count % 5] ?? '');
    }
    expect(refused.only).toBeUndefined();
  });

  it('is none of many that are refused as often as they are accepted, and too many to be counted apart', () => {
    let total = 0;
    const refused = new RefusedOperations(() => [
      ['GET /quotes', total],
      [OTHERS, 3 * total],
    ]);
    const operations = ['GET /quotes', 'GET /a', 'GET /b', 'GET /c'];
    for (let count = 0; count < 40; count++) {
      total += 10;
      refused.recordClosure(operations[count % 4] ?? '');
    }
    expect(operations.map((operation) => refused.oddsOf(operation)?.isLikely)).toEqual([false, false, false, false]);
  });
});
