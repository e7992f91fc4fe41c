import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { measureAfterLearning } from '../bench/governor/family/after-learning.ts';
import { drawMember, FAMILIES, halfOf } from '../bench/governor/family/families.ts';
import { IMPOSSIBLE_GOODPUT, meetsGoals, refusedGoal } from '../bench/governor/family/goals.ts';
import { wilsonInterval, writeFamilyReport } from '../bench/governor/family/report.ts';
import { playRun } from '../bench/governor/play.ts';
import { run } from '../bench/governor/world.ts';

const USUAL_SECONDS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900];
const positions = fc.integer({ min: 0, max: 3000 });

function windowsOf(rule: object): number[] {
  const entries = JSON.stringify(rule).matchAll(/"(?:windowMs|everyMs)":(\d+)/g);
  return Array.from(entries, ([, digits]) => Number(digits));
}

describe('limits drawn at random', () => {
  it('are the same for the same position, and each family has its turn in both halves', () => {
    fc.assert(
      fc.property(positions, (position) => {
        const member = drawMember(position);
        expect(drawMember(position)).toEqual(member);
        expect(member.family).toBe(FAMILIES[position % FAMILIES.length]);
        expect(halfOf(member.index)).not.toBe(halfOf(drawMember(position + FAMILIES.length).index));
      }),
    );
  });

  it('are others for another seed', () => {
    fc.assert(
      fc.property(positions, fc.string({ minLength: 1 }), (position, seedText) => {
        const other = drawMember(position, seedText);
        expect(other.family).toBe(drawMember(position).family);
        expect(other.seed).not.toBe(drawMember(position).seed);
      }),
    );
  });

  it('stay those of the published figures', () => {
    expect(drawMember(0).title).toBe('sliding-log 548 per 23.751 s, load 1.5');
    expect(drawMember(959).title).toBe('gcra 2.09/s, burst 98, load 0.8');
  });

  it('have no usual window, and a rate that a run can measure', () => {
    fc.assert(
      fc.property(positions, (position) => {
        const { conditions, expectedRate, memoryMs, family } = drawMember(position);
        const windows = family === 'two-at-once' ? [] : windowsOf(conditions.limiter);
        for (const windowMs of windows)
          for (const seconds of USUAL_SECONDS) expect(Math.abs(windowMs / seconds / 1000 - 1)).toBeGreaterThan(0.03);
        const measuredMs = conditions.durationMs - 120_000;
        expect(measuredMs * expectedRate).toBeGreaterThanOrEqual(2_000_000);
        expect(measuredMs).toBeGreaterThanOrEqual(15 * memoryMs);
      }),
    );
  });
});

describe('a run after learning', () => {
  it.each(FAMILIES)('%s: a client that keeps trying gets no more than what is possible', async (family) => {
    const member = drawMember(FAMILIES.indexOf(family));
    const figures = measureAfterLearning(member, await playRun('full-jitter', member.conditions, member.seed));
    expect(figures.goodput).toBeLessThan(IMPOSSIBLE_GOODPUT);
    // With refusals that count it may never be accepted again.
    if (family === 'refusals-count') return;
    expect(figures.goodput).toBeGreaterThan(0.3);
    expect(figures.measured).toBeGreaterThan(500);
  });

  it('a client that is never accepted reaches nothing', async () => {
    const member = drawMember(0);
    const record = await run({
      conditions: member.conditions,
      seed: member.seed,
      createClient: () => ({ call: () => Promise.resolve('refused-to-caller') }),
    });
    expect(measureAfterLearning(member, record)).toMatchObject({ goodput: 0, failedShare: 1, measured: 0 });
  });

  it('meets the goals with much goodput and few refusals only', () => {
    const member = drawMember(0);
    const good = { goodput: 0.98, refusedShare: 0.004, failedShare: 0, waitP95Ms: 0, halfRateMs: 0, measured: 2000 };
    expect(meetsGoals(member, good)).toBe(true);
    expect(meetsGoals(member, { ...good, goodput: 0.96 })).toBe(false);
    expect(meetsGoals(member, { ...good, refusedShare: 2 * refusedGoal(member) })).toBe(false);
    expect(writeFamilyReport([{ member, figures: good }])).toContain('100 % (21–100)');
  });
});

it('the interval of a share is that of Wilson', () => {
  // Newcombe 1998, table I: 81 of 263.
  const [low, high] = wilsonInterval(81, 263);
  expect(low).toBeCloseTo(0.2553, 3);
  expect(high).toBeCloseTo(0.3662, 3);
});
