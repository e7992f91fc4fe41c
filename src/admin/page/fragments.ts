/** The parts of the page that change while somebody looks, by the id of the element that holds each. */
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import { renderThrottles } from './throttle-part.ts';
import { renderTokens } from './token-part.ts';
import { describePlots, renderEvents, renderMinutes, renderTiles } from './traffic-parts.ts';
import { evaluateHealth } from './health-summary.ts';
import type { HealthSummary } from './health-summary.ts';
import { renderClockTime, renderElapsed } from './format.ts';
import type { PageView } from './view.ts';

/** By id; each is the whole content of its element. */
export type Fragments = Readonly<Record<string, Markup>>;

/** What is said by a part of the page in a second in which nothing happens is the same but for the clocks in it. */
const CLOCK_TEXT = /(<time data-(?:until|since)="\d+">)[^<]*/g;

const LEVEL_SYMBOLS = { good: '✓', wait: '!', bad: '✕' } as const;

export function evaluateView({ status, lastMinute, recentCodes }: PageView): HealthSummary {
  return evaluateHealth({ status, lastMinute, codes: recentCodes });
}

export function renderFragments(view: PageView): Fragments {
  const plots = describePlots(view);
  return {
    up: markup`up ${renderElapsed(view.nowWallAt - view.status.uptimeSeconds * 1000, view.nowWallAt)}`,
    verdict: renderVerdict(view),
    now: renderTiles(view),
    'say-requests': markup`${plots.requests}`,
    'say-governor': markup`${plots.governor}`,
    'say-latency': markup`${plots.latency}`,
    'say-queue': markup`${plots.queue}`,
    parts: markup`${renderTokens(view)}${renderThrottles(view)}${renderFleet(view)}`,
    events: renderEvents(view),
    minutes: renderMinutes(view),
  };
}

/** Those that a reader of `before` does not have yet, as text. */
export function diffFragments(before: ReadonlyMap<string, string>, now: Fragments): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const [id, { text }] of Object.entries(now)) if (before.get(id) !== withoutClocks(text)) changed[id] = text;
  return changed;
}

/** What `changedSince` compares with. */
export function snapshotFragments(fragments: Fragments): Map<string, string> {
  return new Map(Object.entries(fragments).map(([id, { text }]) => [id, withoutClocks(text)]));
}

function withoutClocks(text: string): string {
  return text.replace(CLOCK_TEXT, '$1');
}

function renderVerdict(view: PageView): Markup {
  const { level, headline, detail } = evaluateView(view);
  const { degraded } = view.status;
  return markup`<div class="verdict ${level}"><span class="sign" aria-hidden="true">${LEVEL_SYMBOLS[level]}</span>
<div><h2 id="headline">${headline}</h2><p>${detail}</p>${
    degraded.length > 0 && markup`<ul>${degraded.map((words) => markup`<li>${words}</li>`)}</ul>`
  }</div></div>`;
}

function renderFleet({ status: { fleet } }: PageView): Markup {
  if (fleet === null) return markup``;
  const words = fleet.connected ? 'Replicas share tokens and limits' : (fleet.fault ?? 'Not joined yet');
  const level = fleet.connected ? 'good' : 'wait';
  return markup`<section class="card" aria-label="Fleet"><h2>Fleet <span class="badge ${level}">${fleet.connected ? 'joined' : 'alone'}</span></h2>
<p>${words}, since ${renderClockTime(Date.parse(fleet.since))}</p></section>`;
}
