/** The last calls as a table (pure). page.js filters its rows by the class of their status and by text. */
import { formatInteger, formatLatency, renderClockTime } from './format.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import type { PageView } from './view.ts';

const HEADINGS = ['Time', 'Method', 'Path', 'Status', 'Attempts', 'Wait', 'Duration', 'Reason'] as const;
const NUMERIC = new Set(['Attempts', 'Wait', 'Duration']);

/** The whole content of the table's region. */
export function renderCalls({ status: { recentCalls, throttles } }: Pick<PageView, 'status'>): Markup {
  if (recentCalls === null) return markup`<p>Not kept: <code>admin.recentCalls</code> is false.</p>`;
  if (recentCalls.length === 0) return markup`<p>No calls yet.</p>`;
  const headings = throttles.length > 1 ? (['Route', ...HEADINGS] as const) : HEADINGS;
  return markup`<table>
<thead><tr>${headings.map((name) => markup`<th scope="col"${NUMERIC.has(name) && markup` class="number"`}>${name}</th>`)}</tr></thead>
<tbody>
${recentCalls.map((call) => renderCall(call, throttles.length > 1))}</tbody>
</table>`;
}

function renderCall(call: NonNullable<PageView['status']['recentCalls']>[number], hasRoutes: boolean): Markup {
  const { at, route, method, path, status, source, attempts, waitSeconds, durationSeconds, reason } = call;
  const level = status < 400 ? 'good' : status < 500 ? 'wait' : 'bad';
  return markup`<tr data-class="${Math.floor(status / 100)}">${hasRoutes && markup`<td>${route}</td>`}<td>${renderClockTime(Date.parse(at))}</td><td>${method === '' ? '–' : method}</td><td class="path">${path === '' ? '–' : path}</td>
<td><span class="badge ${level}">${status}</span></td><td class="number">${formatInteger(attempts)}</td><td class="number">${formatLatency(waitSeconds * 1000)}</td><td class="number">${formatLatency(durationSeconds * 1000)}</td><td>${reason ?? (source === 'sidecar' ? 'from the sidecar' : '–')}</td></tr>\n`;
}
