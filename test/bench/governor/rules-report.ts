/** What each rule of the governor contributes: the same cases without that rule. */
import { formatGoodput, formatShare, formatTable } from './format.ts';
import type { Result } from './pool.ts';
import { RULES } from './rules.ts';

/** Scenarios with a column of their own; the means are over all. */
const SHOWN = [
  'fixed-100-10s',
  'fixed-600-60s',
  'sliding-600-60s',
  'bucket-10-b20',
  'gcra-10-b1-steady',
  'steps-bucket',
  'steps-window',
];

/** A page in Markdown. */
export function compareRules(results: readonly Result[]): string {
  const shown = SHOWN.filter((name) => results.some(({ job }) => job.played.scenario === name));
  const rows = [undefined, ...RULES.keys()].map((rule) => {
    const own = results.filter(({ job }) => job.leaveOut === rule);
    const cells = shown.map((name) => describe(own.filter(({ job }) => job.played.scenario === name)));
    return [rule === undefined ? '(none)' : (RULES.get(rule)?.title ?? rule), describe(own), ...cells];
  });
  return `# What each rule of the governor contributes

Made by \`npm run bench:governor -- --rules\`. Goodput and share of attempts refused at load 1.5, no hints, one replica, with one rule left
out at a time; the second column is the mean over all limiters of the benchmark.

${formatTable(['left out', 'all', ...shown], rows)}
`;
}

function describe(results: readonly Result[]): string {
  const mean = (pick: (result: Result) => number): number =>
    results.reduce((sum, result) => sum + pick(result), 0) / results.length;
  const goodput = formatGoodput(mean(({ figures }) => figures.goodput));
  return `${goodput} / ${formatShare(mean(({ figures }) => figures.refusedShare))}`;
}
