/** The parts of the page that are updated while it is open, by the id of their element. */
import { ALERTS, runbookOf } from '../alerts/alert-table.ts';
import { markup, renderAdvice, renderBadge, renderClockTime, renderElapsed } from './markup.ts';
import type { Markup, PageView } from './markup.ts';
import { renderThrottles } from './throttle-part.ts';
import { renderTokens } from './token-part.ts';
import { describePlots, renderCalls, renderCodes, renderEvents, renderRoutes, renderTiles } from './traffic-parts.ts';
import { formatDuration } from '../quantity-texts.ts';

type Verdict = PageView['status']['verdict'];

/** By element id; each is the whole content of its element. */
export type Fragments = Readonly<Record<string, Markup>>;

/** Running clocks, which a script updates; without them a fragment changes only when something happens. */
const CLOCK_TEXT = /(<time data-(?:until|since)="\d+">)[^<]*/g;

const LEVEL_SYMBOLS = { good: '✓', wait: '!', bad: '✕' } as const;

export function renderFragments(view: PageView): Fragments {
  const plots = describePlots(view);
  return {
    up: markup`up ${renderElapsed(view.nowWallAt - view.status.uptimeSeconds * 1000, view.nowWallAt)}`,
    verdict: renderVerdict(view),
    now: renderTiles(view),
    routes: renderRoutes(view),
    'say-requests': markup`${plots.requests}`,
    'say-governor': markup`${plots.governor}`,
    'say-latency': markup`${plots.latency}`,
    'say-queue': markup`${plots.queue}`,
    parts: markup`${renderTokens(view)}${renderThrottles(view)}${renderFleet(view)}`,
    calls: renderCalls(view),
    events: renderEvents(view),
    codes: renderCodes(view),
  };
}

/** The fragments that differ from `before`, as text. */
export function diffFragments(before: ReadonlyMap<string, string>, now: Fragments): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const [id, { text }] of Object.entries(now)) if (before.get(id) !== withoutClocks(text)) changed[id] = text;
  return changed;
}

export function snapshotFragments(fragments: Fragments): Map<string, string> {
  return new Map(Object.entries(fragments).map(([id, { text }]) => [id, withoutClocks(text)]));
}

function withoutClocks(text: string): string {
  return text.replace(CLOCK_TEXT, '$1');
}

function renderVerdict(view: PageView): Markup {
  const { degraded, alerts, verdict } = view.status;
  const { level, headline, detail, other, advice } = verdict;
  return markup`<div class="verdict ${level}"><span class="sign" aria-hidden="true">${LEVEL_SYMBOLS[level]}</span>
<div><h2 id="headline">${headline}</h2>${renderPlace(verdict)}<p>${detail}</p>${
    other !== null && markup`<p>Also: ${other}</p>`
  }${degraded.length > 0 && markup`<ul>${degraded.map((warning) => markup`<li>${warning}</li>`)}</ul>`}${renderAdvice(
    advice === null ? [] : [advice],
  )}${alerts.length > 0 && renderAlerts(alerts)}</div></div>`;
}

const PLACES: Readonly<Record<Exclude<Verdict['where'], 'none'>, string>> = {
  partner: 'The partner',
  network: 'The network in between',
  application: 'The application',
  setting: 'A setting of this sidecar',
  limit: 'No one: the demand exceeds the limit of the partner',
  token: 'The token or the credentials',
  unclear: 'Not clear yet',
};

function renderPlace({ where, since }: Verdict): Markup {
  const instant = since !== null && renderClockTime(Date.parse(since));
  if (where === 'none') return markup``;
  return markup`<dl class="place"><div><dt>Where</dt><dd>${PLACES[where]}</dd></div>${
    instant !== false && markup`<div><dt>Since</dt><dd>${instant}</dd></div>`
  }</dl>`;
}

/** The alerts of deploy/prometheus that go with this state. The runbook is named by its path, as in their annotations. */
function renderAlerts(alerts: PageView['status']['alerts']): Markup {
  return markup`<div class="alerts">${alerts.map(
    ({ name, severity, forSeconds, subject }) =>
      markup`<details><summary>Alert <b>${name}</b> (${severity}${subject !== null && subject !== 'default' && `, ${subject}`}${
        forSeconds > 0 && `, if it lasts ${formatDuration(forSeconds * 1000).replace(/ 0 s$/, '')}`
      })</summary>${renderAdvice([...ALERTS[name].advice, `The runbook is \`${runbookOf(name)}\` of this version.`])}</details>`,
  )}</div>`;
}

function renderFleet({ status }: PageView): Markup {
  const { fleet } = status;
  if (fleet === null) return markup``;
  const text = fleet.connected
    ? 'Tokens and rate limits are shared with the other replicas'
    : (fleet.fault ?? 'Not connected yet');
  const { advice } =
    fleet.state === 'degraded' ? ALERTS.BearerSidecarFleetDegraded : ALERTS.BearerSidecarFleetDisconnected;
  const state = fleet.state === 'disconnected' ? 'not connected' : fleet.state;
  return markup`<section class="card" aria-label="Fleet"><h2>Fleet ${renderBadge(fleet.connected ? 'good' : 'wait', state)}</h2>
<p>${text}, since ${renderClockTime(Date.parse(fleet.since))}</p>${renderAdvice(fleet.connected ? [] : advice)}</section>`;
}
