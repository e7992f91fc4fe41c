import { describe, expect, it } from 'vitest';
import { measureAfterLearning } from '../bench/governor/family/after-learning.ts';
import { IMPOSSIBLE_GOODPUT } from '../bench/governor/family/goals.ts';
import { playRun } from '../bench/governor/play.ts';
import { PRODUCTS } from '../bench/governor/products/products.ts';
import { type PlayedRun, summarizeProducts, writeProductReport } from '../bench/governor/products/report.ts';
import { planRun, PRODUCT_LOADS } from '../bench/governor/products/runs.ts';

describe('the products', () => {
  it('are 60 with different names, and each has a source or states what is assumed', () => {
    expect(new Set(PRODUCTS.map(({ name }) => name)).size).toBe(60);
    for (const { source, assumed } of PRODUCTS) expect(source === 'not found' ? assumed : source.where).toBeTruthy();
  });

  it.each(PRODUCTS)(
    '$name: each load has three windows of learning and four that are measured, and seeds of its own',
    (product) => {
      for (const load of PRODUCT_LOADS) {
        const { conditions, learnedByMs, memoryMs, seed } = planRun(product, load, 1);
        const measuredMs = conditions.durationMs - learnedByMs;
        expect(measuredMs).toBeGreaterThanOrEqual(4 * memoryMs);
        expect(learnedByMs).toBeGreaterThanOrEqual(3 * memoryMs);
        expect(planRun(product, load, 1).seed).toBe(seed);
        expect(planRun(product, load, 2).seed).not.toBe(seed);
      }
    },
  );

  it.each([
    'Azure APIM 20/10s (10 slots)',
    'GitHub 900 points/60s',
    'nginx 10/s b20 held back',
    '4 nodes x 25/10s, by turns',
    '4 nodes x 25/10s, random',
  ])('%s: a client that keeps trying gets no more than what is possible', async (name) => {
    const product = PRODUCTS.find((one) => one.name === name);
    if (product === undefined) throw new Error(`there is no ${name}`);
    const run = planRun(product, '1.5×', 1);
    const figures = measureAfterLearning(run, await playRun('full-jitter', run.conditions, run.seed));
    expect(figures.goodput).toBeLessThan(IMPOSSIBLE_GOODPUT);
    expect(figures.goodput).toBeGreaterThan(0.5);
  });
});

describe('the report', () => {
  const base = { failedShare: 0, waitP95Ms: 0, halfRateMs: 0, measured: 2000 };
  const run = (product: string, load: string, goodput: number, refusedShare: number): PlayedRun => ({
    product,
    load,
    seed: 1,
    figures: { ...base, goodput, refusedShare },
  });

  it('counts a load as met when the means over its seeds meet both goals', () => {
    const played = [
      run('A', 'on-off', 0.96, 0.001),
      run('A', 'on-off', 0.99, 0.001),
      run('A', '1.5×', 0.99, 0.006),
      run('B', 'on-off', 0.8, 0.04),
    ];
    const [first, second] = summarizeProducts(played);
    expect(first).toMatchObject({ product: 'A', loads: 2, loadsMet: 1 });
    expect(second).toMatchObject({ product: 'B', loads: 1, loadsMet: 0, goodput: 0.8 });
    const report = writeProductReport(played);
    expect(report).toContain('1 of 3');
    expect(report).toContain('Goodput below 0.85: 1 (B)');
    expect(report).toContain('More than 3 % refused: 1 (B)');
  });
});
