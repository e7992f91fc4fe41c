/** Figures as people read them: for a terminal, and in Markdown. */
import type { ProxySummary } from './figures.ts';
import type { StartSummary, GoalResult, ScenarioResult } from './goals.ts';
import type { OpenLoopSummary } from './open-loop.ts';

/** The first column names, the others are figures. */
export type Table = readonly (readonly string[])[];

const MIB = 1024 * 1024;

/** Of one scenario. */
export function tabulate(all: readonly ProxySummary[], nameOf: (figures: ProxySummary) => string): Table {
  const speed = ['req/s', '× bare', 'p50 µs', 'added', 'p99 µs', 'added'];
  const head = ['', ...speed, 'CPU µs', '× bare', 'added', 'peak MiB', 'failed'];
  const rows = all.map((figures) => [
    nameOf(figures),
    whole(figures.requestsPerSecond),
    ratio(figures.ratio),
    whole(figures.p50Us),
    whole(figures.addedP50Us),
    whole(figures.p99Us),
    whole(figures.addedP99Us),
    tenths(figures.cpuUs),
    ratio(figures.cpuRatio),
    tenths(figures.addedCpuUs),
    whole(figures.peakBytes / MIB),
    String(figures.failed),
  ]);
  return [head, ...rows];
}

export function tabulateOpenLoop(all: readonly OpenLoopSummary[]): Table {
  const head = ['', 'req/s', 'p50 µs', 'p99 µs', 'p99.9 µs', 'failed'];
  const rows = all.map(({ title, rate, p50Us, p99Us, p999Us, failed }) => {
    return [title, whole(rate), ...[p50Us, p99Us, p999Us].map(whole), String(failed)];
  });
  return [head, ...rows];
}

/** All scenarios, for a page: the sidecar, and what others reach beside it. */
export function tabulateScenarios(played: readonly ScenarioResult[]): Table {
  const head = ['', 'req/s', '× bare', 'CPU µs', 'bare', 'p50 µs', 'bare', 'p99 µs', 'bare', 'peak MiB'];
  const rows = played.flatMap(({ title, figures }) => {
    const of = (name: string): ProxySummary | undefined => figures.find((one) => one.name === name);
    const [ours, bare] = [of('sidecar'), of('bare')];
    if (ours === undefined) return [];
    const beside = (field: 'cpuUs' | 'p50Us' | 'p99Us', format: (value: number) => string): string[] => [
      format(ours[field]),
      format(bare?.[field] ?? NaN),
    ];
    return [
      [
        title,
        ...[whole(ours.requestsPerSecond), ratio(ours.ratio), ...beside('cpuUs', tenths)],
        ...[...beside('p50Us', whole), ...beside('p99Us', whole), whole(ours.peakBytes / MIB)],
      ],
    ];
  });
  return [head, ...rows];
}

/** Throughput of each proxy, of the bare pass-through's, by scenario. */
export function tabulatePeers(played: readonly ScenarioResult[]): Table {
  const names = new Map(played.flatMap(({ figures }) => figures.map(({ name, title }) => [name, title])));
  const rows = [...names].map(([name, title]) => [
    title,
    ...played.map(({ figures }) => ratio(figures.find((one) => one.name === name)?.ratio ?? NaN)),
  ]);
  return [['', ...played.map(({ scenario }) => scenario)], ...rows];
}

/** Without load: what there is before the first request. */
export function tabulateStarts(all: readonly StartSummary[]): Table {
  const rows = all.map(({ title, startMs, idleBytes }) => [title, whole(startMs), whole(idleBytes / MIB)]);
  return [['', 'start to ready ms', 'idle MiB'], ...rows];
}

export function tabulateGoals(all: readonly GoalResult[]): Table {
  // What was missed comes first.
  const rank = ({ isReached }: GoalResult): number => (isReached === undefined ? 2 : Number(isReached));
  const sorted = all.toSorted((one, other) => rank(one) - rank(other));
  const rows = sorted.map(({ what, value, goal, isReached }) => {
    return [what, value, goal, isReached === undefined ? '' : isReached ? 'yes' : 'NO'];
  });
  return [['', 'measured', 'goal', 'reached'], ...rows];
}

export function formatForTerminal(table: Table): string {
  const widths = widthsOf(table);
  return table
    .map((row) =>
      row
        .map((cell, at) => pad(cell, at, widths))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function formatAsMarkdown(table: Table): string {
  const widths = widthsOf(table).map((width) => Math.max(width, 3));
  const [head = [], ...rows] = table;
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => pad(cell, at, widths)).join(' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

function widthsOf(table: Table): number[] {
  return (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
}

function pad(cell: string, column: number, widths: readonly number[]): string {
  const width = widths[column] ?? 0;
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}

function whole(value: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(0);
}

function tenths(value: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(1);
}

function ratio(value: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(3);
}
