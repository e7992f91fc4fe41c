/** The plot: goodput against the share of attempts refused, one mark for each client and scenario. Plain SVG, light and dark. */
import { CLIENTS } from './clients/clients.ts';
import { isCommonCase } from './plan.ts';
import type { Result } from './pool.ts';

const WIDTH = 900;
const HEIGHT = 560;
const PLOT = { left: 70, top: 56, right: 650, bottom: 490 };
/** Refused shares from here to all; what is less stands at the left edge. */
const LEAST_SHARE = 1e-4;

/** Distinguished by shape and by lightness, for readers who see few colours. */
const MARKS = [
  { colour: '#d1495b', path: 'M0-6.5 1.9-2 6.5-2 2.8 1 4.2 5.8 0 2.9-4.2 5.8-2.8 1-6.5-2-1.9-2Z' },
  { colour: '#8d99ae', path: 'M-4-4H4V4H-4Z' },
  { colour: '#2f7fc1', path: 'M0-5 5 4H-5Z' },
  { colour: '#7cb5e8', path: 'M0 5 5-4H-5Z' },
  { colour: '#c98a1b', path: 'M0-5.5 5.5 0 0 5.5-5.5 0Z' },
  { colour: '#8a6bb8', path: 'M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z' },
  { colour: '#3a9a6b', path: 'M-4 0A4 4 0 1 1 4 0A4 4 0 1 1-4 0Z' },
  { colour: '#8fcf9f', path: 'M-5-3 5-3 5 3-5 3Z' },
];

/** @returns the file's text */
export function drawPlot(results: readonly Result[]): string {
  const shown = results.filter(({ job }) => isCommonCase(job.played));
  const clients = CLIENTS.filter(({ name }) => shown.some(({ job }) => job.client === name));
  const marks = clients.flatMap(({ name }, index) =>
    shown.filter(({ job }) => job.client === name).map((result) => drawMark(result, index)),
  );
  // Ours on top.
  const paper = `<rect class="paper" width="${WIDTH}" height="${HEIGHT}"/>`;
  const parts = [STYLE, paper, drawTitle(), drawAxes(), ...marks.toReversed(), ...clients.map(drawLegend)];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${TITLE}">`;
  return `${[head, ...parts, '</svg>'].join('\n')}\n`;
}

const TITLE = 'Clients against undocumented rate limits: load 1.5 × the limit, no hints';

const STYLE = `<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.paper { fill: #ffffff; }
.title { font-size: 16px; font-weight: 600; }
.axis { stroke: #57606a; stroke-width: 1; fill: none; }
.grid { stroke: #57606a; stroke-opacity: 0.2; stroke-width: 1; }
.mark { fill-opacity: 0.85; stroke: #ffffff; stroke-width: 0.6; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; }
text { fill: #d6dde4; }
.axis, .grid { stroke: #9aa4af; }
.mark { stroke: #0d1117; }
}
</style>`;

function drawTitle(): string {
  return `<text class="title" x="${PLOT.left}" y="30">${TITLE}</text>`;
}

function drawAxes(): string {
  const shares = [1e-4, 1e-3, 1e-2, 1e-1, 1];
  const goodputs = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const middle = (PLOT.left + PLOT.right) / 2;
  const height = (PLOT.top + PLOT.bottom) / 2;
  return [
    ...shares.map((share) => {
      const x = xOf(share);
      const label = share === LEAST_SHARE ? '≤ 0.01 %' : `${share * 100} %`;
      return `<path class="grid" d="M${x} ${PLOT.top}V${PLOT.bottom}"/><text x="${x}" y="${PLOT.bottom + 20}" text-anchor="middle">${label}</text>`;
    }),
    ...goodputs.map((goodput) => {
      const y = yOf(goodput);
      return `<path class="grid" d="M${PLOT.left} ${y}H${PLOT.right}"/><text x="${PLOT.left - 8}" y="${y + 4}" text-anchor="end">${goodput.toFixed(1)}</text>`;
    }),
    `<path class="axis" d="M${PLOT.left} ${PLOT.top}V${PLOT.bottom}H${PLOT.right}"/>`,
    `<text x="${middle}" y="${PLOT.bottom + 44}" text-anchor="middle">share of attempts refused (logarithmic; better to the left)</text>`,
    `<text transform="translate(24 ${height}) rotate(-90)" text-anchor="middle">goodput, of what was possible (better above)</text>`,
  ].join('\n');
}

function drawMark({ job, figures }: Result, index: number): string {
  const { colour, path } = markOf(index);
  const x = xOf(figures.refusedShare);
  const y = yOf(figures.goodput);
  const title = `${job.client}: ${escape(job.played.title)}`;
  return `<path class="mark" fill="${colour}" transform="translate(${x} ${y})" d="${path}"><title>${title}</title></path>`;
}

function drawLegend({ title, hasKnownLimit }: (typeof CLIENTS)[number], index: number): string {
  const { colour, path } = markOf(index);
  const y = PLOT.top + 14 + index * 26;
  const words = escape(title.replaceAll('`', '') + (hasKnownLimit ? ' *' : ''));
  const mark = `<path class="mark" fill="${colour}" transform="translate(${PLOT.right + 24} ${y})" d="${path}"/>`;
  const star = `<text x="${PLOT.right + 18}" y="${y + 34}">* knows the limit</text>`;
  const isLast = index === CLIENTS.length - 1;
  return `${mark}<text x="${PLOT.right + 38}" y="${y + 4}">${words}</text>${isLast ? star : ''}`;
}

function markOf(index: number): (typeof MARKS)[number] {
  const mark = MARKS[index % MARKS.length];
  if (mark === undefined) throw new RangeError('there is no mark');
  return mark;
}

function xOf(share: number): number {
  const position = 1 - Math.log10(Math.max(share, LEAST_SHARE)) / Math.log10(LEAST_SHARE);
  return round(PLOT.left + position * (PLOT.right - PLOT.left));
}

function yOf(goodput: number): number {
  return round(PLOT.bottom - Math.min(goodput, 1.05) * (PLOT.bottom - PLOT.top) * 0.96);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
