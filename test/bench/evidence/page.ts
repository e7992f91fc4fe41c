/** docs/benchmarks/evidence.md: one row for each hidden limit, one for all other causes. Pure. */
import { formatAsMarkdown, type Table } from '../speed/table.ts';

export interface CaseStats {
  /** The limit or the cause, a comma, and the load or the traffic. */
  readonly name: string;
  /** Runs with a proposal. */
  readonly found: number;
  readonly runs: number;
  /** From the first call to the proposal; undefined without one. */
  readonly medianMs: number | undefined;
}

/** @param options of `npm run bench:evidence`, with which it was run */
export function writeEvidencePage(limits: readonly CaseStats[], others: readonly CaseStats[], options: string): string {
  const loads = [...new Set(limits.map(({ name }) => split(name)[1]))];
  const names = [...new Set(limits.map(({ name }) => split(name)[0]))];
  const cellOf = (limit: string, load: string): string => {
    const one = limits.find(({ name }) => name === `${limit}, ${load}`);
    return one === undefined ? '' : describe(one);
  };
  const table: Table = [
    ['hidden limit', ...loads],
    ...names.map((name) => [name, ...loads.map((load) => cellOf(name, load))]),
  ];
  const wrong = others.filter(({ found }) => found > 0).map(({ name, found }) => `${found} with “${name}”`);
  return `# Evidence for rate limits that no setting names

What \`throttle.refusalProposals\` finds, in virtual time, when the partner refuses calls past a limit with a bare 503. Written by this command, about 15 minutes
on two cores; its seeds were not used to choose the rules.

\`\`\`sh
npm run bench:evidence -- ${options} --write
\`\`\`

Median seconds from the first call to the proposal. A fraction: only so many of the runs had a proposal.

${formatAsMarkdown(table)}

In all ${total(limits)} runs had one. Other causes (outages, random failures, overload, a dead node, forbidden calls), where each proposal is
false: ${total(others)} runs (${wrong.join(', ') || 'none'}).
`;
}

function split(name: string): readonly [string, string] {
  const comma = name.indexOf(', ');
  return [name.slice(0, comma), name.slice(comma + 2)];
}

function describe({ found, runs, medianMs }: CaseStats): string {
  const seconds = medianMs === undefined ? '' : (medianMs / 1000).toFixed(0);
  return found === runs ? seconds : `${found}/${runs} ${seconds}`.trimEnd();
}

function total(stats: readonly CaseStats[]): string {
  const sum = (of: (one: CaseStats) => number): number => stats.reduce((all, one) => all + of(one), 0);
  return `${sum(({ found }) => found)} of ${sum(({ runs }) => runs)}`;
}
