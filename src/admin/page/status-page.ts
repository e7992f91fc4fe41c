/**
 * The status page as a whole: complete without a script, and kept up to date by one. Everything it asks for comes from this port, which
 * the policy it is sent with enforces: no inline script or style, nothing from elsewhere.
 */
import type { StatusPageSetting } from '../status/configuration.ts';
import { ROW_COLUMNS, PLOTTED_THROTTLES } from '../history/history.ts';
import { evaluateView, renderFragments } from './fragments.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import type { PageView } from './view.ts';

/** The Content-Security-Policy of the page. */
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

/** Where the files of the page are, relative to it. */
export type PageAssetPaths = Readonly<
  Record<'page.js' | 'plots.js' | 'page.css' | 'uPlot.js' | 'uPlot.css' | 'icon.svg', string>
>;

interface PlotSeries {
  readonly label: string;
  /** Where its values stand in a row. */
  readonly rowIndex: number;
  /** Names a colour of the style sheet. */
  readonly colour: string;
  readonly look?: 'dashed' | 'bars';
}

interface Plot {
  readonly name: 'requests' | 'governor' | 'latency' | 'queue';
  readonly title: string;
  readonly unit: 'per-second' | 'ms' | 'number';
  readonly series: readonly PlotSeries[];
}

/** The page as HTML; every value is escaped. */
export function renderStatusPage(view: PageView, places: PageAssetPaths): string {
  const { status } = view;
  const parts = renderFragments(view);
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${evaluateView(view).headline} · bearer-sidecar</title>
<link rel="icon" href="${places['icon.svg']}">
<link rel="stylesheet" href="${places['uPlot.css']}">
<link rel="stylesheet" href="${places['page.css']}">
<script defer src="${places['uPlot.js']}"></script>
<script type="module" src="${places['plots.js']}"></script>
<script type="module" src="${places['page.js']}"></script>
</head>
<body data-page="${places['page.js']}">
<header>
<h1>bearer-sidecar <span>${status.version}</span></h1>
<p id="up">${parts.up}</p>
<p id="link"><noscript>As of the moment of loading; reload for newer values.</noscript></p>
</header>
<main>
<section id="verdict" aria-labelledby="headline">${parts.verdict}</section>
<p id="aloud" class="unseen" role="status"></p>
<section aria-label="Now"><dl id="now" class="tiles">${parts.now}</dl></section>
<section class="plots" aria-label="The last five minutes">
${listPlots(status.throttles.map(({ route }) => route)).map((plot) => renderPlot(plot, parts[`say-${plot.name}`]))}</section>
<div id="parts" class="parts">${parts.parts}</div>
<div class="parts">
<section class="card" aria-labelledby="events-title"><h2 id="events-title">Recent events</h2><div id="events">${parts.events}</div></section>
<section class="card" aria-labelledby="minutes-title"><h2 id="minutes-title">Minute by minute</h2><div id="minutes">${parts.minutes}</div></section>
</div>
${renderSettings(view.settings, status.configuration)}
</main>
<footer><nav aria-label="The same for programs"><a href="/status">Status as JSON</a> <a href="/metrics">Metrics</a> <a href="/readyz">Readiness</a></nav></footer>
</body>
</html>
`.text;
}

function listPlots(routes: readonly string[]): Plot[] {
  const at = (name: (typeof ROW_COLUMNS)[number]): number => ROW_COLUMNS.indexOf(name);
  const plotted = routes.slice(0, PLOTTED_THROTTLES);
  const allowed = plotted.map((route, index): PlotSeries => {
    const label = routes.length === 1 ? 'allowed' : `allowed: ${route}`;
    return { label, rowIndex: ROW_COLUMNS.length + index, colour: `allowed-${index}`, look: 'dashed' };
  });
  const named = (label: string, name: (typeof ROW_COLUMNS)[number], colour: string): PlotSeries => ({
    label,
    rowIndex: at(name),
    colour,
  });
  return [
    {
      ...{ name: 'requests', title: 'Calls a second', unit: 'per-second' },
      series: [
        named('answered well', 'ok', 'good'),
        named('4xx', 'clientErrors', 'wait'),
        named('5xx', 'serverErrors', 'bad'),
        { ...named('refused here', 'own', 'own'), look: 'dashed' },
      ],
    },
    {
      ...{ name: 'governor', title: 'Rate limit', unit: 'per-second' },
      series: [named('sent', 'sent', 'sent'), ...allowed, { ...named('refused', 'refused', 'bad'), look: 'bars' }],
    },
    {
      ...{ name: 'latency', title: 'How long calls take', unit: 'ms' },
      series: [named('half within', 'medianMs', 'sent'), { ...named('95 % within', 'p95Ms', 'own'), look: 'dashed' }],
    },
    {
      ...{ name: 'queue', title: 'Waiting and in flight', unit: 'number' },
      series: [named('waiting', 'queued', 'wait'), { ...named('in flight', 'inFlight', 'sent'), look: 'dashed' }],
    },
  ];
}

function renderPlot({ name, title, unit, series }: Plot, say: Markup | undefined): Markup {
  return markup`<figure class="card"><figcaption><h2 id="plot-${name}-title">${title}</h2>
<ul class="legend">${series.map(
    ({ label, rowIndex, colour, look }) =>
      markup`<li data-at="${rowIndex}" data-colour="${colour}" data-look="${look ?? 'line'}"><i class="${colour} ${look ?? 'line'}"></i>${label} <b></b></li>`,
  )}</ul></figcaption>
<div class="plot" data-plot="${name}" data-unit="${unit}" role="img" aria-labelledby="plot-${name}-title" aria-describedby="say-${name}"></div>
<p class="say" id="say-${name}">${say}</p></figure>\n`;
}

function renderSettings(settings: PageView['settings'], configuration: PageView['status']['configuration']): Markup {
  if (settings === undefined) return markup``;
  const isDefault = ({ origin }: StatusPageSetting): boolean => origin === 'default';
  const [defaults, given] = [settings.filter(isDefault), settings.filter((setting) => !isDefault(setting))];
  const reload = configuration?.lastReload ?? null;
  return markup`<section class="card" aria-labelledby="settings-title"><h2 id="settings-title">Configuration</h2>
${reload !== null && markup`<p>Read again at ${reload.at}: ${reload.outcome}, ${reload.detail}</p>`}
${renderSettingList(given)}
<details><summary>${defaults.length} more are as by default</summary>${renderSettingList(defaults)}</details></section>`;
}

function renderSettingList(settings: readonly StatusPageSetting[]): Markup {
  return markup`<dl class="settings">
${settings.map(
  ({ key, value, origin }) =>
    markup`<div><dt>${key}</dt><dd>${value}${origin !== 'default' && markup` <span class="aside">${origin}</span>`}</dd></div>\n`,
)}</dl>`;
}
