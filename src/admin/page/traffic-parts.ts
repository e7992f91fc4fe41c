/** The traffic: figures of the last minute, text alternatives of the plots, last calls, status codes, recent events. */
import { levelOfStatus, markup, renderBadge, renderClockTime } from './markup.ts';
import type { Content, Markup, PageView } from './markup.ts';
import { formatInteger, formatLatency, formatRate, formatShare } from '../quantity-texts.ts';
import { ROW_COLUMNS, type PlotRow, type RowColumn } from '../samples/traffic.ts';

const MAX_LISTED_EVENTS = 12;
const NO_REQUESTS = 'No requests so far.';

export function renderTiles({ status, lastMinute, rows }: PageView): Markup {
  const { requests, ok, spanMs, own, clientErrors, serverErrors, refused, p50Ms, p95Ms } = lastMinute;
  const { upstreamMs, queuedMs } = lastMinute;
  const ended = ok + own + clientErrors + serverErrors;
  const [queued, inFlight] = [sumThrottles(status, 'queued'), sumThrottles(status, 'inFlight')];
  const share = ended === 0 ? '–' : `${ok === ended ? '100' : (Math.floor((ok / ended) * 1000) / 10).toFixed(1)} %`;
  return markup`${[
    renderTile('Requests per second', formatRate(spanMs === 0 ? 0 : (requests * 1000) / spanMs), 'in the last minute'),
    renderTile(
      'Success rate',
      share,
      ended === 0
        ? 'no requests in the last minute'
        : `${formatInteger(ok)} of ${formatInteger(ended)}${clientErrors > 0 ? `; ${formatInteger(clientErrors)} got 4xx` : ''}`,
    ),
    renderTile(
      'Latency p50',
      formatLatency(p50Ms),
      `p95 ${keepTogether(formatLatency(p95Ms))}; upstream ${keepTogether(formatLatency(upstreamMs))}, queue ${keepTogether(formatLatency(queuedMs))}`,
    ),
    renderTile('Rate limited', formatInteger(refused), 'in the last minute'),
    renderTile('Queued', formatInteger(queued), `peak ${formatInteger(findHighest(rows, 'queued'))} in 5 min`),
    renderTile('In flight', formatInteger(inFlight), `peak ${formatInteger(findHighest(rows, 'inFlight'))} in 5 min`),
  ]}`;
}

function keepTogether(text: string): string {
  return text.replace(' ', '\u00a0');
}

function renderTile(name: string, value: string, aside: string): Markup {
  return markup`<div class="tile"><dt>${name}</dt><dd><b>${value}</b> <span>${aside}</span></dd></div>\n`;
}

export function describePlots({
  rows,
  status,
}: PageView): Readonly<Record<'requests' | 'governor' | 'latency' | 'queue', string>> {
  const highest = (name: RowColumn): string => formatRate(findHighest(rows, name));
  const now = (name: RowColumn): string => formatRate(getLatest(rows, name));
  const failed = (['clientErrors', 'serverErrors', 'own'] as const).some((name) => findHighest(rows, name) > 0);
  const refused =
    findHighest(rows, 'refused') === 0 ? 'None rate limited.' : `Rate limited: max ${highest('refused')} per second.`;
  const isLimited = status.throttles.some(({ rate }) => rate !== null);
  return {
    requests:
      !failed && findHighest(rows, 'ok') === 0
        ? NO_REQUESTS
        : `Success: ${now('ok')} per second, max ${highest('ok')}; ${failed ? 'there were errors' : 'no errors'}.`,
    governor: `Attempts: ${now('sent')} per second, max ${highest('sent')}. ${refused}${isLimited ? '' : ' No limit known.'}`,
    latency:
      findHighest(rows, 'p95Ms') === 0
        ? NO_REQUESTS
        : getLatest(rows, 'p95Ms') === 0
          ? `No request in the last second; max p95 ${formatLatency(findHighest(rows, 'p95Ms'))}.`
          : `p50 ${formatLatency(getLatest(rows, 'p50Ms'))}, p95 ${formatLatency(getLatest(rows, 'p95Ms'))}, p99 ${formatLatency(getLatest(rows, 'p99Ms'))}.`,
    queue: `Queued: ${now('queued')}, peak ${highest('queued')}. In flight: ${now('inFlight')}, peak ${highest('inFlight')}.`,
  };
}

export function renderCodes({ codes }: Pick<PageView, 'codes'>): Markup {
  return markup`<p class="codes">${codes.length === 0 ? 'None so far.' : codes.map(renderCode)}</p>`;
}

function renderCode({ code, source, count }: PageView['codes'][number]): Markup {
  const name =
    code === 499 ? '499 client left' : source === 'sidecar' && code >= 400 ? `${code} from the sidecar` : String(code);
  return markup`${renderBadge(levelOfStatus(code), `${name} × ${formatInteger(count)}`)} `;
}

export function renderEvents({ events }: Pick<PageView, 'events'>): Markup {
  if (events.length === 0) return markup`<p>No events yet.</p>`;
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

/** The level as text, since colour alone is not accessible. */
function renderLevel(level: string): Content {
  return level !== 'info' && markup`<span class="level">${level === 'warn' ? 'warning' : 'error'}</span> `;
}

const ROUTE_HEADINGS = ['Route', 'Per second', 'Share', 'Success', '4xx', 'Upstream p50', 'p95', 'Last failure'];

/** A table of the last minute; nothing with a single route, whose figures the tiles have. */
export function renderRoutes({ status: { routes } }: Pick<PageView, 'status'>): Markup {
  if (routes.length < 2) return markup``;
  return markup`<section class="card wide" aria-label="Routes"><h2>Routes <span class="aside">in the last minute</span></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Routes, table"><table>
<thead><tr>${ROUTE_HEADINGS.map((name) => markup`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>
${routes.map(renderRoute)}</tbody></table></div></section>`;
}

function renderRoute(traffic: PageView['status']['routes'][number]): Markup {
  const { route, perSecond, share, success, clientErrors, upstreamP50Seconds, upstreamP95Seconds } = traffic;
  const { lastFailure: last } = traffic;
  const toLatency = (seconds: number | null): string =>
    keepTogether(formatLatency(seconds === null ? undefined : seconds * 1000));
  const level = success === null || success > 0.99 ? 'good' : success > 0.5 ? 'wait' : 'bad';
  const cells: Content[] = [
    formatRate(perSecond),
    keepTogether(formatShare(share)),
    success === null ? '–' : renderBadge(level, keepTogether(formatShare(success))),
    formatInteger(clientErrors),
    toLatency(upstreamP50Seconds),
    toLatency(upstreamP95Seconds),
    last === null
      ? '–'
      : markup`${renderClockTime(Date.parse(last.at))}: ${last.status} ${last.reason ?? `of the ${last.source}`}`,
  ];
  return markup`<tr><th scope="row">${route}</th>${cells.map((cell) => markup`<td>${cell}</td>`)}</tr>\n`;
}

function getCell(row: PlotRow | undefined, name: RowColumn): number {
  return row?.[ROW_COLUMNS.indexOf(name)] ?? 0;
}

function getLatest(rows: readonly PlotRow[], name: RowColumn): number {
  return getCell(rows.at(-1), name);
}

function findHighest(rows: readonly PlotRow[], name: RowColumn): number {
  return rows.reduce((most, row) => Math.max(most, getCell(row, name)), 0);
}

function sumThrottles({ throttles }: PageView['status'], name: 'queued' | 'inFlight'): number {
  return throttles.reduce((sum, throttle) => sum + throttle[name], 0);
}

const HEADINGS = ['Time', 'Method', 'Path', 'Status', 'Attempts', 'Wait', 'Duration', 'Reason'];

/** The whole content of the table's region; page.js filters its rows by the class of their status and by text. */
export function renderCalls({ status: { recentCalls, throttles } }: Pick<PageView, 'status'>): Markup {
  if (recentCalls === null) return markup`<p>Not kept: <code>admin.recentCalls</code> is false.</p>`;
  if (recentCalls.length === 0) return markup`<p>No calls yet.</p>`;
  const headings = throttles.length > 1 ? ['Route', ...HEADINGS] : HEADINGS;
  // End tags of cells and rows are optional in HTML: fifty rows are sent with each change.
  return markup`<table>
<thead><tr>${headings.map((name) => markup`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>
${recentCalls.map((call) => renderCall(call, throttles.length > 1))}</tbody>
</table>`;
}

type Call = NonNullable<PageView['status']['recentCalls']>[number];

function renderCall(call: Call, hasRoutes: boolean): Markup {
  const { at, route, method, path, status, attempts, waitSeconds, durationSeconds } = call;
  const cells = [
    ...(hasRoutes ? [route] : []),
    renderClockTime(Date.parse(at)),
    method === '' ? '–' : method,
    path === '' ? '–' : path,
    renderBadge(levelOfStatus(status), status),
    formatInteger(attempts),
    formatLatency(waitSeconds * 1000),
    formatLatency(durationSeconds * 1000),
    markup`${describeEnd(call)}<br><small>${listIds(call)}</small>`,
  ];
  return markup`<tr data-class=${Math.floor(status / 100)}>${cells.map((cell) => markup`<td>${cell}`)}\n`;
}

function describeEnd({ reason, source, outcome }: Call): string {
  const words = reason ?? (source === 'sidecar' ? 'from the sidecar' : '–');
  return outcome === null ? words : `${words}, outcome ${outcome}`;
}

/** By which the call is found in the log, by its application and by the partner. */
function listIds({ requestId, upstreamRequestId, caller }: Call): string {
  const partner = upstreamRequestId === null ? '' : `, partner's id ${upstreamRequestId}`;
  return `request ${requestId}${partner}${caller === null ? '' : `, caller ${caller}`}`;
}
