/** The plot: throughput of each proxy at 64 connections, GET and POST, as bars. Plain SVG, light and dark. */
import type { ProxySummary } from './figures.ts';
import type { ScenarioResult } from './goals.ts';
import { DIRECT } from './measure.ts';

const WIDTH = 900;
const LEFT = 230;
const RIGHT = 820;
const TOP = 74;
const ROW = 46;
const BAR = 15;
const TITLE = 'Requests a second on one core, 64 connections';
const PLOTTED_SCENARIOS = [
  { scenario: 'get64', words: 'GET', shade: 'get' },
  { scenario: 'post64', words: 'POST 0.5 kB', shade: 'post' },
] as const;

const STYLE = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.paper { fill: #ffffff; }
.title { font-size: 16px; font-weight: 600; }
.ours { font-weight: 600; }
.grid { stroke: #57606a; stroke-opacity: 0.25; }
.get { fill: #2f7fc1; }
.post { fill: #7cb5e8; }
.get.ours { fill: #d1495b; }
.post.ours { fill: #e8939e; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; }
text { fill: #d6dde4; }
.grid { stroke: #9aa4af; }
}
</style>`;

/** @returns the file's text */
export function drawPlot(played: readonly ScenarioResult[]): string {
  const series = PLOTTED_SCENARIOS.map((shown) => {
    return { ...shown, figures: played.find(({ scenario }) => scenario === shown.scenario)?.figures ?? [] };
  });
  const rows = (series[0]?.figures ?? [])
    .filter(({ name }) => name !== DIRECT)
    .toSorted((one, other) => other.requestsPerSecond - one.requestsPerSecond);
  const most = Math.max(...series.flatMap(({ figures }) => figures.map(speedOf)), 1);
  const height = TOP + rows.length * ROW + 40;
  const x = (speed: number): number => Math.round(LEFT + (speed / most) * (RIGHT - LEFT));
  const grid = ticksTo(most).map(
    (speed) =>
      `<path class="grid" d="M${x(speed)} ${TOP - 8}V${height - 34}"/><text x="${x(speed)}" y="${height - 14}" text-anchor="middle">${speed / 1000}k</text>`,
  );
  const bars = rows.flatMap(({ name, title }, row) => {
    const y = TOP + row * ROW;
    const ours = name.startsWith('sidecar') ? ' ours' : '';
    const label = `<text class="${ours.trim()}" x="${LEFT - 10}" y="${y + BAR + 5}" text-anchor="end">${escape(title)}</text>`;
    return [
      label,
      ...series.map(({ figures, shade }, at) => bar(figures, name, `${shade}${ours}`, y + at * (BAR + 2), x)),
    ];
  });
  const legend = series.map(
    ({ words, shade }, at) =>
      `<rect class="${shade}" x="${LEFT + at * 90}" y="44" width="12" height="12"/><text x="${LEFT + 18 + at * 90}" y="55">${words}</text>`,
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${TITLE}">`,
    STYLE,
    `<rect class="paper" width="${WIDTH}" height="${height}"/>`,
    `<text class="title" x="20" y="30">${TITLE}</text>`,
    ...legend,
    ...grid,
    ...bars,
    '</svg>',
  ].join('\n')}\n`;
}

function bar(
  figures: readonly ProxySummary[],
  name: string,
  shade: string,
  y: number,
  x: (speed: number) => number,
): string {
  const found = figures.find((one) => one.name === name);
  if (found === undefined) return '';
  const end = x(speedOf(found));
  const value = `<text x="${end + 6}" y="${y + 12}">${(speedOf(found) / 1000).toFixed(1)}k</text>`;
  return `<rect class="${shade}" x="${LEFT}" y="${y}" width="${end - LEFT}" height="${BAR}"/>${value}`;
}

function speedOf({ name, requestsPerSecond }: ProxySummary): number {
  return name === DIRECT ? 0 : requestsPerSecond;
}

function ticksTo(most: number): number[] {
  const step = most > 50_000 ? 20_000 : 10_000;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
