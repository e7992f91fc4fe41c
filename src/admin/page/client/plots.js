/**
 * Draws the plots of the last five minutes. The legend, rendered by the server, holds column, colour and style of each line; it shows
 * the value under the pointer, or the newest.
 */

/** @typedef {(number | null)[]} Row */

const SHOWN_S = 300;
/** The least time shown after a start. */
const MIN_SHOWN_S = 60;
const HEIGHT = 150;
/** Longer without a row is shown as a gap, seconds. */
const GAP_S = 3;

/** @type {Row[]} */
let rows = [];
const plots = [...document.querySelectorAll('.plot')].map((element) =>
  createPlot(/** @type {HTMLElement} */ (element)),
);

document.addEventListener('rows', (event) => {
  const { rows: added, isAll } = /** @type {CustomEvent<{ rows: Row[], isAll: boolean }>} */ (event).detail;
  const [last, first] = [rows.at(-1), added[0]];
  // The server does not know the last row of this page, so it has restarted.
  const hasRestarted = isAll && !added.some((row) => timeOf(row) === timeOf(last));
  const isLate = !isAll && first !== undefined && timeOf(first) - timeOf(last) > GAP_S;
  if (last !== undefined && (hasRestarted || isLate)) rows.push([timeOf(last) + 0.5]);
  if (first === undefined) return;
  rows = [...rows.filter((row) => timeOf(row) < timeOf(first)), ...added];
  const end = timeOf(rows.at(-1));
  rows = rows.filter((row) => timeOf(row) > end - SHOWN_S - 1);
  for (const plot of plots) plot.show();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const plot of plots) plot.repaint();
});

/** @param {Row | undefined} row */
function timeOf(row) {
  return row?.[0] ?? 0;
}

/** @param {HTMLElement} element */
function createPlot(element) {
  const unit = element.dataset.unit ?? '';
  const entries = [...(element.parentElement?.querySelectorAll('li') ?? [])];
  const lines = entries.map((entry) => ({
    at: Number(entry.dataset.at),
    look: entry.dataset.look,
    colour: `--${entry.dataset.colour}`,
    value: entry.querySelector('b'),
  }));
  /** @param {number | null} index of a row; null: the newest */
  const showValues = (index) => {
    const row = index === null ? rows.at(-1) : rows[index];
    for (const { at, value } of lines) if (value !== null) value.textContent = formatValue(row?.[at] ?? null, unit);
  };
  const axis = {
    stroke: () => colourOf('--quiet'),
    grid: { stroke: () => colourOf('--line'), width: 1 },
    ticks: { show: false },
  };
  const font = '11px system-ui, sans-serif';
  const plot = new uPlot(
    {
      width: Math.max(200, element.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 18, 0, 0],
      cursor: { sync: { key: 'all' }, drag: { x: false, y: false }, y: false, points: { size: 6 } },
      scales: {
        x: { range: () => [Math.min(timeOf(rows[0]), timeOf(rows.at(-1)) - MIN_SHOWN_S), timeOf(rows.at(-1))] },
        y: { range: (_, __, highest) => [0, axisEnd(highest ?? 0)] },
      },
      axes: [
        {
          ...axis,
          font,
          size: 24,
          space: 70,
          values: (_, splits) => splits.map((at) => (at % 60 === 0 ? formatMinute(at) : '')),
          incrs: [60, 120],
        },
        { ...axis, font, size: 48, space: 32, values: (_, splits) => splits.map((value) => formatValue(value, unit)) },
      ],
      series: [
        {},
        ...lines.map(({ look, colour }) => ({
          stroke: () => colourOf(colour),
          width: look === 'bars' ? 0 : 1.75,
          points: { show: true, size: 5, filter: listIsolatedPoints },
          ...(look === 'dashed' ? { dash: [5, 4] } : {}),
          ...(look === 'bars' && uPlot.paths.bars
            ? { fill: () => colourOf(colour), paths: uPlot.paths.bars({ size: [0.8, 4, 2] }) }
            : {}),
        })),
      ],
      hooks: { setCursor: [({ cursor }) => showValues(cursor.idx ?? null)] },
    },
    columnsOf(lines),
    element,
  );
  new ResizeObserver(() => {
    if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: HEIGHT });
  }).observe(element);
  return {
    show() {
      plot.setData(columnsOf(lines));
      showValues(plot.cursor.idx ?? null);
    },
    repaint: () => plot.redraw(false),
  };
}

/**
 * A value between two gaps makes no line. A series that is not shown, such as the x axis, has none.
 * @type {(plot: uPlot, series: number, isShown: boolean) => number[]}
 */
function listIsolatedPoints({ data }, series, isShown) {
  const column = isShown ? [...(data[series] ?? [])] : [];
  const isGap = (/** @type {number} */ index) => column[index] === null || column[index] === undefined;
  return [...column.keys()].filter((index) => !isGap(index) && isGap(index - 1) && isGap(index + 1));
}

/**
 * @param {{ at: number }[]} lines
 * @returns {[number[], ...(number | null)[][]]}
 */
function columnsOf(lines) {
  return [rows.map(timeOf), ...lines.map(({ at }, index) => columnOf(at, index > 0))];
}

/**
 * A line of zeros is left out, since it would hide the line below it.
 * @param {number} at
 * @param {boolean} leavesOutZero
 */
function columnOf(at, leavesOutZero) {
  const column = rows.map((row) => row[at] ?? null);
  return leavesOutZero && column.every((value) => value === null || value === 0) ? column.fill(null) : column;
}

/** The end of the y axis: 10 % above the highest value. @param {number} highest */
function axisEnd(highest) {
  return highest <= 0 ? 1 : highest * 1.1;
}

/**
 * @param {number | null} value
 * @param {string} unit
 */
function formatValue(value, unit) {
  if (value === null) return '–';
  if (unit === 'ms' && value >= 1000) return `${Number((value / 1000).toPrecision(3))} s`;
  const digits = value === 0 || value >= 100 ? Math.round(value) : Number(value.toPrecision(2));
  return unit === 'ms' ? `${digits} ms` : digits.toLocaleString('en-GB');
}

/** @param {number} at epoch seconds */
function formatMinute(at) {
  const date = new Date(at * 1000);
  return [date.getHours(), date.getMinutes()].map((part) => String(part).padStart(2, '0')).join(':');
}

/** @param {string} name of a custom property */
function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
