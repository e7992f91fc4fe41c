/** What went through: figures of the last minute, sentences that stand for the plots, the last minutes as a table, codes, events. */
import { ROW_NAMES } from '../history/history.ts';
import type { Row } from '../history/history.ts';
import { markup } from './markup.ts';
import type { Content, Markup } from './markup.ts';
import { clockTime, inDigits, inMs, inRate } from './words.ts';
import type { View } from './view.ts';

const LISTED_EVENTS = 12;

/** The figures to look at first. */
export function renderTiles({ status, lastMinute, rows }: View): Markup {
  const { requests, ok, spanMs, own, clientErrors, serverErrors, refused, medianMs, p95Ms } = lastMinute;
  const ended = ok + own + clientErrors + serverErrors;
  const [queued, inFlight] = [sumOf(status, 'queued'), sumOf(status, 'inFlight')];
  const share = ended === 0 ? '–' : `${ok === ended ? '100' : (Math.floor((ok / ended) * 1000) / 10).toFixed(1)} %`;
  return markup`${[
    renderTile('Calls a second', inRate(spanMs === 0 ? 0 : (requests * 1000) / spanMs), 'over the last minute'),
    renderTile('Answered well', share, ended === 0 ? 'no calls yet' : `${inDigits(ok)} of ${inDigits(ended)}`),
    renderTile('Half within', inMs(medianMs), `95 % within ${inMs(p95Ms)}`),
    renderTile('Refused as too fast', inDigits(refused), 'in the last minute'),
    renderTile('Waiting', inDigits(queued), `at most ${inDigits(highest(rows, 'queued'))}`),
    renderTile('In flight', inDigits(inFlight), `at most ${inDigits(highest(rows, 'inFlight'))}`),
  ]}`;
}

function renderTile(name: string, value: string, aside: string): Markup {
  return markup`<div class="tile"><dt>${name}</dt><dd><b>${value}</b> <span>${aside}</span></dd></div>\n`;
}

/** One sentence for each plot, by its name. */
export function describePlots({
  rows,
  status,
}: View): Readonly<Record<'requests' | 'governor' | 'latency' | 'queue', string>> {
  const most = (name: RowName): string => inRate(highest(rows, name));
  const now = (name: RowName): string => inRate(latest(rows, name));
  const failed = rows.some((row) =>
    ['clientErrors', 'serverErrors', 'own'].some((name) => cell(row, name as RowName) > 0),
  );
  const refused = highest(rows, 'refused') === 0 ? 'None refused.' : `Refused: at most ${most('refused')} a second.`;
  const paced = status.throttles.filter(({ rate }) => rate !== null);
  return {
    requests:
      !failed && highest(rows, 'ok') === 0
        ? 'No calls so far.'
        : `Answered well: ${now('ok')} a second now, at most ${most('ok')}; ${failed ? 'some were not' : 'all were'}.`,
    governor: `Sent: ${now('sent')} a second now, at most ${most('sent')}. ${refused}${
      paced.length === 0 ? ' No limit is known.' : ''
    }`,
    latency:
      latest(rows, 'p95Ms') === 0
        ? `No call in the last second; at most 95 % within ${inMs(highest(rows, 'p95Ms'))}.`
        : `Now half within ${inMs(latest(rows, 'medianMs'))}, 95 % within ${inMs(latest(rows, 'p95Ms'))}.`,
    queue: `Waiting: ${now('queued')} now, at most ${most('queued')}. In flight: ${now('inFlight')} now, at most ${most('inFlight')}.`,
  };
}

/** The last minutes as a table, which says what the plots show. */
export function renderMinutes({ minutes, codes }: View): Markup {
  return markup`<table>
<thead><tr><th scope="col">Minute</th><th scope="col">Calls</th><th scope="col">Too fast</th><th scope="col">Half within</th><th scope="col">95 % within</th><th scope="col">Most waiting</th></tr></thead>
<tbody>
${minutes.map(
  ({ wallAt, requests, refused, medianMs, p95Ms, mostQueued }) =>
    markup`<tr><th scope="row">${clockTime(wallAt, 'minutes')}</th>${[
      ...[inDigits(requests), inDigits(refused), inMs(medianMs), inMs(p95Ms), inDigits(mostQueued)],
    ].map((value) => markup`<td class="number">${value}</td>`)}</tr>\n`,
)}</tbody>
</table>
<p class="codes"><span>Codes sent in these minutes:</span> ${codes.length === 0 ? 'none' : codes.map(renderCode)}</p>`;
}

function renderCode({ code, source, count }: View['codes'][number]): Markup {
  const level = code < 400 ? 'good' : code < 500 ? 'wait' : 'bad';
  const name =
    code === 499 ? 'client left' : source === 'sidecar' && code >= 400 ? `${code} by the sidecar` : String(code);
  return markup`<span class="badge ${level}">${name} × ${inDigits(count)}</span> `;
}

export function renderHappenings({ happenings }: Pick<View, 'happenings'>): Markup {
  if (happenings.length === 0) return markup`<p>Nothing yet.</p>`;
  return markup`<ol class="events">
${happenings
  .slice(0, LISTED_EVENTS)
  .map(
    ({ wallAt, words, level, count }) =>
      markup`<li class="${level}"><span class="when">${clockTime(wallAt)}</span> <span>${renderLevel(level)}${words}${
        count > 1 && markup` <b class="times">× ${inDigits(count)}</b>`
      }</span></li>\n`,
  )}</ol>`;
}

/** Colour alone says nothing to some. */
function renderLevel(level: string): Content {
  return level !== 'info' && markup`<span class="level">${level === 'warn' ? 'look' : 'fault'}</span> `;
}

type RowName = (typeof ROW_NAMES)[number];

function cell(row: Row, name: RowName): number {
  return row[ROW_NAMES.indexOf(name)] ?? 0;
}

function latest(rows: readonly Row[], name: RowName): number {
  const row = rows.at(-1);
  return row === undefined ? 0 : cell(row, name);
}

function highest(rows: readonly Row[], name: RowName): number {
  return rows.reduce((most, row) => Math.max(most, cell(row, name)), 0);
}

function sumOf({ throttles }: View['status'], name: 'queued' | 'inFlight'): number {
  return throttles.reduce((sum, throttle) => sum + throttle[name], 0);
}
