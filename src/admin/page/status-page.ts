/** The HTML of the status page: complete without JavaScript, kept up to date with it. No inline script or style is allowed. */
import type { StatusPageSetting } from '../status/states.ts';
import { ROW_COLUMNS, PLOTTED_THROTTLES, type RowColumn } from '../samples/traffic.ts';
import type { PageAssetPaths } from './assets.ts';
import { renderFragments, type Fragments } from './fragments.ts';
import { formatCount } from '../quantity-texts.ts';
import { markup, type Markup, type PageView } from './markup.ts';

export const STATUS_PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface PlotSeries {
  readonly label: string;
  /** Index of its values in a `PlotRow`. */
  readonly rowIndex: number;
  readonly colour: string;
  readonly look: 'line' | 'dashed' | 'bars';
}

interface Plot {
  readonly name: 'requests' | 'governor' | 'latency' | 'queue';
  readonly title: string;
  readonly unit: 'per-second' | 'ms' | 'number';
  readonly series: readonly PlotSeries[];
}

export function renderStatusPage(view: PageView, paths: PageAssetPaths): string {
  const { status } = view;
  const parts = renderFragments(view);
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${view.status.verdict.headline} · bearer-sidecar</title>
<link rel="icon" href="${paths['icon.svg']}">
<link rel="stylesheet" href="${paths['uPlot.css']}">
<link rel="stylesheet" href="${paths['page.css']}">
<script defer src="${paths['uPlot.js']}"></script>
<script type="module" src="${paths['plots.js']}"></script>
<script type="module" src="${paths['page.js']}"></script>
</head>
<body data-page="${paths['page.js']}">
<header>
<h1>bearer-sidecar <span>${status.version}</span></h1>
<p id="up">${parts.up}</p>
<p id="link"><noscript>Values at page load; reload for newer ones.</noscript></p>
</header>
<main>
<section id="verdict" aria-labelledby="headline">${parts.verdict}</section>
<p id="aloud" class="unseen" role="status"></p>
<section aria-label="Now"><dl id="now" class="tiles">${parts.now}</dl></section>
<div id="routes" class="parts">${parts.routes}</div>
<section class="plots" aria-label="The last five minutes">
${listPlots(status.throttles.map(({ route }) => route)).map((plot) => renderPlot(plot, parts[`say-${plot.name}`]))}</section>
<div id="parts" class="parts">${parts.parts}</div>
${renderCallsSection(parts)}
${renderPast(parts)}
${renderSettings(view.settings, status.configuration)}
</main>
<footer><nav aria-label="Machine-readable"><a href="/status">Status as JSON</a> <a href="/metrics">Metrics</a> <a href="/readyz">Readiness</a></nav></footer>
</body>
</html>
`.text;
}

function renderPast({ events, codes }: Fragments): Markup {
  return markup`<div class="parts">
<section class="card" aria-labelledby="events-title"><h2 id="events-title">Recent events</h2><div id="events">${events}</div></section>
<section class="card" aria-labelledby="codes-title"><h2 id="codes-title">Status codes of the last five minutes</h2><div id="codes">${codes}</div></section>
</div>`;
}

/** The filter works in the browser alone, so page.js shows it. */
function renderCallsSection({ calls }: Fragments): Markup {
  return markup`<section class="card" aria-labelledby="calls-title"><h2 id="calls-title">Recent calls</h2>
<div class="filter" id="calls-filter" hidden><label>Status <select id="calls-class" autocomplete="off"><option value="">all</option>${[
    2, 3, 4, 5,
  ].map(
    (first) => markup`<option value="${first}">${first}xx</option>`,
  )}</select></label> <label>Text <input id="calls-text" type="search" autocomplete="off" placeholder="path, method, reason"></label> <span id="calls-shown"></span></div>
<div class="scroll" id="calls" tabindex="0" role="region" aria-label="Recent calls, table">${calls}</div></section>`;
}

function nameSeries(label: string, name: RowColumn, colour: string, look: PlotSeries['look'] = 'line'): PlotSeries {
  return { label, rowIndex: ROW_COLUMNS.indexOf(name), colour, look };
}

function listPlots(routes: readonly string[]): Plot[] {
  const plotted = routes.slice(0, PLOTTED_THROTTLES);
  const allowed = plotted.map((route, index): PlotSeries => {
    const label = routes.length === 1 ? 'limit' : `limit: ${route}`;
    return { label, rowIndex: ROW_COLUMNS.length + index, colour: `allowed-${index}`, look: 'dashed' };
  });
  const requests = [
    nameSeries('success', 'ok', 'good'),
    nameSeries('4xx', 'clientErrors', 'wait'),
    nameSeries('5xx, foreign', 'serverErrors', 'bad'),
    nameSeries('sidecar errors', 'own', 'own', 'dashed'),
  ];
  const attempts = nameSeries('attempts', 'sent', 'sent');
  const governor = [attempts, ...allowed, nameSeries('rate limited', 'refused', 'bad', 'bars')];
  const latency = [
    nameSeries('p50', 'p50Ms', 'sent'),
    nameSeries('p95', 'p95Ms', 'own', 'dashed'),
    nameSeries('p99', 'p99Ms', 'wait'),
  ];
  const queue = [nameSeries('queued', 'queued', 'wait'), nameSeries('in flight', 'inFlight', 'sent', 'dashed')];
  return [
    { name: 'requests', title: 'Requests per second', unit: 'per-second', series: requests },
    { name: 'governor', title: 'Attempts and rate limit per second', unit: 'per-second', series: governor },
    { name: 'latency', title: 'Latency', unit: 'ms', series: latency },
    { name: 'queue', title: 'Queued and in flight', unit: 'number', series: queue },
  ];
}

function renderPlot({ name, title, unit, series }: Plot, summary: Markup | undefined): Markup {
  return markup`<figure class="card"><figcaption><h2 id="plot-${name}-title">${title}</h2>
<ul class="legend">${series.map(
    ({ label, rowIndex, colour, look }) =>
      markup`<li data-at="${rowIndex}" data-colour="${colour}" data-look="${look}"><i class="${colour} ${look}"></i>${label} <b></b></li>`,
  )}</ul></figcaption>
<div class="plot" data-plot="${name}" data-unit="${unit}" role="img" aria-labelledby="plot-${name}-title" aria-describedby="say-${name}"></div>
<p class="say" id="say-${name}">${summary}</p></figure>\n`;
}

function renderSettings(settings: PageView['settings'], configuration: PageView['status']['configuration']): Markup {
  if (settings === undefined) return markup``;
  const isDefault = ({ origin }: StatusPageSetting): boolean => origin === 'default';
  const [defaults, changed] = [settings.filter(isDefault), settings.filter((setting) => !isDefault(setting))];
  const reload = configuration?.lastReload ?? null;
  return markup`<section class="card" aria-labelledby="settings-title"><h2 id="settings-title">Configuration</h2>
${reload !== null && markup`<p>Last reload at ${reload.at}: ${reload.outcome}, ${reload.detail}</p>`}
${renderSettingList(changed)}
<details><summary>${formatCount(defaults.length, 'setting')} at default</summary>${renderSettingList(defaults)}</details></section>`;
}

function renderSettingList(settings: readonly StatusPageSetting[]): Markup {
  return markup`<dl class="settings">
${settings.map(
  ({ key, value, origin }) =>
    markup`<div><dt>${key}</dt><dd>${value}${origin !== 'default' && markup` <span class="aside">${origin}</span>`}</dd></div>\n`,
)}</dl>`;
}
