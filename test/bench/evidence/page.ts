/** The outages of docs/benchmarks/robustness.md: a row for each case in which calls were delayed. Pure. */
import { formatAsMarkdown } from '../speed/table.ts';

/** Figures of all runs of a case, an hour. */
export interface CaseDelays {
  /** The cause, a comma, and the traffic. */
  readonly name: string;
  readonly assumedPerHour: number;
  /** In which at least one call waited that would not have waited otherwise. */
  readonly delayedSeconds: number;
  /** Of all calls together. */
  readonly waitedSeconds: number;
  readonly longestSeconds: number;
  readonly rejected: number;
}

export const HEADINGS = ['case', 'assumed', 'delayed s', 'waits s', 'longest s', 'rejected'] as const;

export function describeDelays(delays: CaseDelays): readonly string[] {
  const { name, assumedPerHour, delayedSeconds, waitedSeconds, longestSeconds, rejected } = delays;
  const figures = [assumedPerHour, delayedSeconds, waitedSeconds, longestSeconds].map((figure) => figure.toFixed(1));
  return [name, ...figures, String(rejected)];
}

/** @param options of `npm run bench:evidence`, with which it was run */
export function writeEvidence(all: readonly CaseDelays[], options: string): string {
  const assumed = all.filter(({ assumedPerHour }) => assumedPerHour > 0);
  const within = all.filter(({ delayedSeconds }) => delayedSeconds <= 30);
  return `Options of this run: \`${options}\`.

Figures are those of an hour: refusals that were taken for a limit's; the time in which at least one call waited that would not have waited with
\`assumeRefusals: false\`; the waits of all calls together; the longest wait; calls that were rejected by it. Cases without such a refusal
(${all.length - assumed.length} of ${all.length}) are left out. In ${within.length} of ${all.length} cases calls were delayed for at most 30 s an hour.

${formatAsMarkdown([HEADINGS, ...assumed.map(describeDelays)])}`;
}
