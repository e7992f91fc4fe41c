/** The growth of docs/benchmarks/robustness.md: one row for each thing that grows, with its figures in the order of its sizes. Pure. */
import { formatAsMarkdown, type Table } from '../speed/table.ts';

export interface GrowthRow {
  readonly title: string;
  /** The columns of `FIGURES`, for each size; empty when it could not be measured. */
  readonly steps: readonly (readonly string[])[];
}

export const FIGURES = ['size', 'req/s', 'CPU µs', '× the smallest', 'peak MiB'] as const;

/** @param date as 2026-11-22 */
export interface GrowthTerms {
  readonly date: string;
  readonly machine: readonly string[];
  readonly rounds: string;
  readonly seconds: number;
}

export function writeGrowth(rows: readonly GrowthRow[], { date, machine, rounds, seconds }: GrowthTerms): string {
  const list = (steps: GrowthRow['steps'], column: number): string =>
    steps.map((step) => step[column] ?? '').join(', ') || 'not measured';
  const table: Table = [
    ['what grows', ...FIGURES],
    ...rows.map(({ title, steps }) => [title, ...FIGURES.map((_, column) => list(steps, column))]),
  ];
  return `Measured on ${date}.

${machine.map((line) => `- ${line}`).join('\n')}

Each size is a process of its own with the default settings, on one core; the sizes take turns, ${rounds} rounds of ${seconds} s. CPU time is user and
system time of all threads for one request (median), and should not grow: the next column is its ratio to the smallest size of the same
round. The bare pass-through shows what many busy connections cost in every proxy.

${formatAsMarkdown(table)}`;
}
