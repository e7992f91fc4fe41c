/**
 * Says from the CPU times of two builds whether the one is faster, slower or the same (pure). One start of both gives one ratio: V8 compiles
 * differently from start to start, so that rounds of the same start are not independent.
 */

export interface Verdict {
  readonly kind: 'faster' | 'slower' | 'the same';
  /** CPU time for a request of the new build, of the old one's. */
  readonly ratio: number;
  /** Of the ratio, at 95 %. */
  readonly interval: readonly [from: number, to: number];
}

/** Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond the list that of 30 is used, which is a little too wide. */
const T_95 = [
  NaN,
  12.706,
  4.303,
  3.182,
  2.776,
  2.571,
  2.447,
  2.365,
  2.306,
  2.262,
  2.228,
  2.201,
  2.179,
  2.16,
  2.145,
  2.131,
  2.12,
  2.11,
  2.101,
  2.093,
  2.086,
  2.08,
  2.074,
  2.069,
  2.064,
  2.06,
  2.056,
  2.052,
  2.048,
  2.045,
  2.042,
];

/**
 * @param ratios of one start of both builds each, above 0; at least two
 * @throws RangeError with fewer
 */
export function evaluateRatios(ratios: readonly number[]): Verdict {
  if (ratios.length < 2) throw new RangeError('a verdict needs at least two starts of both builds');
  const logs = ratios.map(Math.log);
  const mean = meanOf(logs);
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1);
  const t = T_95[Math.min(logs.length - 1, T_95.length - 1)] ?? NaN;
  const half = t * Math.sqrt(variance / logs.length);
  const interval = [Math.exp(mean - half), Math.exp(mean + half)] as const;
  const kind = interval[0] > 1 ? 'slower' : interval[1] < 1 ? 'faster' : 'the same';
  return { kind, ratio: Math.exp(mean), interval };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
