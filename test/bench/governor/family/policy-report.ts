/** The table of `--cpu`: what the learned rate policy costs, by family (pure). */
import { formatTable } from '../format.ts';
import { FAMILIES, type Family } from './families.ts';
import type { PolicyCosts } from './policy-costs.ts';

const HEADER = [
  'family',
  'at once, µs',
  'held back, µs',
  'refusals',
  'mean ms',
  'p99 ms',
  'max ms',
  'whole run, µs per attempt',
];

export function writeCostReport(played: readonly { readonly family: Family; readonly costs: PolicyCosts }[]): string {
  const rows = FAMILIES.map((family) => {
    const costs = played.filter((one) => one.family === family).map((one) => one.costs);
    return costs.length === 0 ? [] : describeCosts(family, costs);
  });
  const all = describeCosts(
    'all',
    played.map(({ costs }) => costs),
  );
  return formatTable(HEADER, [...rows.filter((row) => row.length > 0), all]);
}

function describeCosts(name: string, costs: readonly PolicyCosts[]): string[] {
  const refusals = costs.flatMap(({ refusalsMs }) => refusalsMs).sort((one, other) => one - other);
  const mean = refusals.reduce((sum, ms) => sum + ms, 0) / refusals.length;
  const format = (ms: number | undefined): string => (refusals.length === 0 ? '–' : (ms ?? 0).toFixed(3));
  const perCall = (cost: keyof Omit<PolicyCosts, 'refusalsMs'>): string => {
    const calls = costs.reduce((sum, one) => sum + one[cost].calls, 0);
    const totalMs = costs.reduce((sum, one) => sum + one[cost].totalMs, 0);
    return calls === 0 ? '–' : ((totalMs * 1000) / calls).toFixed(1);
  };
  return [
    name,
    perCall('immediate'),
    perCall('waited'),
    `${refusals.length}`,
    format(mean),
    format(refusals[Math.floor(refusals.length * 0.99)]),
    format(refusals.at(-1)),
    perCall('run'),
  ];
}
