/** Figures as people read them: for a terminal, and in Markdown. */
import type { ProxySummary } from './figures.ts';
import type { StartSummary, GoalResult } from './goals.ts';
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
  const head = ['', 'half of', 'req/s', 'p50 µs', 'p99 µs', 'p99.9 µs', 'failed'];
  const rows = all.map(({ title, name, rateOf, rate, p50Us, p99Us, p999Us, failed }) => {
    return [
      title,
      rateOf === name ? 'its own' : rateOf,
      whole(rate),
      ...[p50Us, p99Us, p999Us].map(whole),
      String(failed),
    ];
  });
  return [head, ...rows];
}

/** Without load: what there is before the first request. */
export function tabulateStarts(all: readonly StartSummary[]): Table {
  const rows = all.map(({ title, startMs, idleBytes }) => [title, whole(startMs), whole(idleBytes / MIB)]);
  return [['', 'start to ready ms', 'idle MiB'], ...rows];
}

export function tabulateGoals(all: readonly GoalResult[]): Table {
  const rows = all.map(({ what, value, goal, isReached }) => {
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
