/** Formats figures for tables. */

/** Three digits below 1, and never a rounded-up 1.000. */
export function formatGoodput(goodput: number): string {
  const rounded = Math.round(goodput * 1000) / 1000;
  return (goodput < 1 ? Math.min(rounded, 0.999) : rounded).toFixed(3);
}

/** A share as percent, finer where it is small; zero only when it is zero. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent === 0) return '0 %';
  if (percent < 0.01) return '<0.01 %';
  return `${percent.toFixed(percent < 1 ? 2 : percent < 10 ? 1 : 0)} %`;
}

/** Milliseconds as seconds; a dash where there is no such figure, ∞ where it never happened. */
export function formatSeconds(ms: number | undefined): string {
  if (ms === undefined) return '–';
  if (ms === Infinity) return '∞';
  const seconds = ms / 1000;
  if (seconds < 0.0005) return '0 s';
  return `${seconds.toFixed(seconds < 0.1 ? 3 : seconds < 10 ? 1 : 0)} s`;
}

/** As the formatter has it. */
const LEAST_WIDTH = 3;

/** A table in Markdown. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) =>
    Math.max(LEAST_WIDTH, ...[title, ...rows.map((row) => row[column] ?? '')].map((cell) => cell.length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [line(header), rule, ...rows.map(line)].join('\n');
}
