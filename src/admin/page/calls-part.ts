/** The last calls as a table (pure). page.js filters its rows by the class of their status and by text. */
import { renderClockTime } from './format.ts';
import { formatInteger, formatLatency } from '../quantity-texts.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import type { PageView } from './view.ts';

const HEADINGS = ['Time', 'Method', 'Path', 'Status', 'Attempts', 'Wait', 'Duration', 'Reason'] as const;

/** The whole content of the table's region. */
export function renderCalls({ status: { recentCalls, throttles } }: Pick<PageView, 'status'>): Markup {
  if (recentCalls === null) return markup`<p>Not kept: <code>admin.recentCalls</code> is false.</p>`;
  if (recentCalls.length === 0) return markup`<p>No calls yet.</p>`;
  const headings = throttles.length > 1 ? (['Route', ...HEADINGS] as const) : HEADINGS;
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
  const level = status < 400 ? 'good' : status < 500 ? 'wait' : 'bad';
  const cells = [
    ...(hasRoutes ? [route] : []),
    renderClockTime(Date.parse(at)),
    method === '' ? '–' : method,
    path === '' ? '–' : path,
    markup`<span class="badge ${level}">${status}</span>`,
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
