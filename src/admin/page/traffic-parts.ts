/** What went through: figures of the last minute, sentences that stand for the plots, the last minutes as a table, codes, events. */
import { ROW_COLUMNS } from '../history/history.ts';
import type { PlotRow } from '../history/history.ts';
import { markup } from './markup.ts';
import type { Content, Markup } from './markup.ts';
import { renderClockTime, formatInteger, formatLatency, formatRate } from './format.ts';
import type { PageView } from './view.ts';

const MAX_LISTED_EVENTS = 12;

/** The figures to look at first. */
export function renderTiles({ status, lastMinute, rows }: PageView): Markup {
  const { requests, ok, spanMs, own, clientErrors, serverErrors, refused, medianMs, p95Ms } = lastMinute;
  const ended = ok + own + clientErrors + serverErrors;
  const [queued, inFlight] = [sumThrottles(status, 'queued'), sumThrottles(status, 'inFlight')];
  const share = ended === 0 ? '–' : `${ok === ended ? '100' : (Math.floor((ok / ended) * 1000) / 10).toFixed(1)} %`;
  return markup`${[
    renderTile('Calls a second', formatRate(spanMs === 0 ? 0 : (requests * 1000) / spanMs), 'over the last minute'),
    renderTile(
      'Answered well',
      share,
      ended === 0 ? 'no calls yet' : `${formatInteger(ok)} of ${formatInteger(ended)}`,
    ),
    renderTile('Half within', formatLatency(medianMs), `95 % within ${formatLatency(p95Ms)}`),
    renderTile('Refused as too fast', formatInteger(refused), 'in the last minute'),
    renderTile('Waiting', formatInteger(queued), `at most ${formatInteger(findHighest(rows, 'queued'))}`),
    renderTile('In flight', formatInteger(inFlight), `at most ${formatInteger(findHighest(rows, 'inFlight'))}`),
  ]}`;
}

function renderTile(name: string, value: string, aside: string): Markup {
  return markup`<div class="tile"><dt>${name}</dt><dd><b>${value}</b> <span>${aside}</span></dd></div>\n`;
}

/** One sentence for each plot, by its name. */
export function describePlots({
  rows,
  status,
}: PageView): Readonly<Record<'requests' | 'governor' | 'latency' | 'queue', string>> {
  const most = (name: RowColumn): string => formatRate(findHighest(rows, name));
  const now = (name: RowColumn): string => formatRate(getLatest(rows, name));
  const failed = rows.some((row) =>
    ['clientErrors', 'serverErrors', 'own'].some((name) => getCell(row, name as RowColumn) > 0),
  );
  const refused =
    findHighest(rows, 'refused') === 0 ? 'None refused.' : `Refused: at most ${most('refused')} a second.`;
  const paced = status.throttles.filter(({ rate }) => rate !== null);
  return {
    requests:
      !failed && findHighest(rows, 'ok') === 0
        ? 'No calls so far.'
        : `Answered well: ${now('ok')} a second now, at most ${most('ok')}; ${failed ? 'some were not' : 'all were'}.`,
    governor: `Sent: ${now('sent')} a second now, at most ${most('sent')}. ${refused}${
      paced.length === 0 ? ' No limit is known.' : ''
    }`,
    latency:
      getLatest(rows, 'p95Ms') === 0
        ? `No call in the last second; at most 95 % within ${formatLatency(findHighest(rows, 'p95Ms'))}.`
        : `Now half within ${formatLatency(getLatest(rows, 'medianMs'))}, 95 % within ${formatLatency(getLatest(rows, 'p95Ms'))}.`,
    queue: `Waiting: ${now('queued')} now, at most ${most('queued')}. In flight: ${now('inFlight')} now, at most ${most('inFlight')}.`,
  };
}

/** The last minutes as a table, which says what the plots show. */
export function renderMinutes({ minutes, codes }: PageView): Markup {
  return markup`<table>
<thead><tr><th scope="col">Minute</th><th scope="col">Calls</th><th scope="col">Too fast</th><th scope="col">Half within</th><th scope="col">95 % within</th><th scope="col">Most waiting</th></tr></thead>
<tbody>
${minutes.map(
  ({ wallAt, requests, refused, medianMs, p95Ms, maxQueued }) =>
    markup`<tr><th scope="row">${renderClockTime(wallAt, 'minutes')}</th>${[
      ...[
        formatInteger(requests),
        formatInteger(refused),
        formatLatency(medianMs),
        formatLatency(p95Ms),
        formatInteger(maxQueued),
      ],
    ].map((value) => markup`<td class="number">${value}</td>`)}</tr>\n`,
)}</tbody>
</table>
<p class="codes"><span>Codes sent in these minutes:</span> ${codes.length === 0 ? 'none' : codes.map(renderCode)}</p>`;
}

function renderCode({ code, source, count }: PageView['codes'][number]): Markup {
  const level = code < 400 ? 'good' : code < 500 ? 'wait' : 'bad';
  const name =
    code === 499 ? 'client left' : source === 'sidecar' && code >= 400 ? `${code} by the sidecar` : String(code);
  return markup`<span class="badge ${level}">${name} × ${formatInteger(count)}</span> `;
}

export function renderEvents({ events }: Pick<PageView, 'events'>): Markup {
  if (events.length === 0) return markup`<p>Nothing yet.</p>`;
  return markup`<ol class="events">
${events
  .slice(0, MAX_LISTED_EVENTS)
  .map(
    ({ lastWallAt, text, level, count }) =>
      markup`<li class="${level}"><span class="when">${renderClockTime(lastWallAt)}</span> <span>${renderLevel(level)}${text}${
        count > 1 && markup` <b class="times">× ${formatInteger(count)}</b>`
      }</span></li>\n`,
  )}</ol>`;
}

/** Colour alone says nothing to some. */
function renderLevel(level: string): Content {
  return level !== 'info' && markup`<span class="level">${level === 'warn' ? 'look' : 'fault'}</span> `;
}

type RowColumn = (typeof ROW_COLUMNS)[number];

function getCell(row: PlotRow, name: RowColumn): number {
  return row[ROW_COLUMNS.indexOf(name)] ?? 0;
}

function getLatest(rows: readonly PlotRow[], name: RowColumn): number {
  const row = rows.at(-1);
  return row === undefined ? 0 : getCell(row, name);
}

function findHighest(rows: readonly PlotRow[], name: RowColumn): number {
  return rows.reduce((most, row) => Math.max(most, getCell(row, name)), 0);
}

function sumThrottles({ throttles }: PageView['status'], name: 'queued' | 'inFlight'): number {
  return throttles.reduce((sum, throttle) => sum + throttle[name], 0);
}
