/** The parts of the page that change while somebody looks, by the id of the element that holds each. */
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import { renderThrottles } from './throttle-part.ts';
import { renderTokens } from './token-part.ts';
import { describePlots, renderHappenings, renderMinutes, renderTiles } from './traffic-parts.ts';
import { judge } from './verdict.ts';
import type { Verdict } from './verdict.ts';
import { clockTime, countUp } from './words.ts';
import type { View } from './view.ts';

/** By id; each is the whole content of its element. */
export type Fragments = Readonly<Record<string, Markup>>;

/** What is said by a part of the page in a second in which nothing happens is the same but for the clocks in it. */
const CLOCKS = /(<time data-(?:until|since)="\d+">)[^<]*/g;

const SIGNS = { good: '✓', wait: '!', bad: '✕' } as const;

export function judgeView({ status, lastMinute, latestCodes }: View): Verdict {
  return judge({ status, lastMinute, codes: latestCodes });
}

export function renderFragments(view: View): Fragments {
  const plots = describePlots(view);
  return {
    up: markup`up ${countUp(view.nowWallAt - view.status.uptimeSeconds * 1000, view.nowWallAt)}`,
    verdict: renderVerdict(view),
    now: renderTiles(view),
    'say-requests': markup`${plots.requests}`,
    'say-governor': markup`${plots.governor}`,
    'say-latency': markup`${plots.latency}`,
    'say-queue': markup`${plots.queue}`,
    parts: markup`${renderTokens(view)}${renderThrottles(view)}${renderFleet(view)}`,
    events: renderHappenings(view),
    minutes: renderMinutes(view),
  };
}

/** Those that a reader of `before` does not have yet, as text. */
export function changedSince(before: ReadonlyMap<string, string>, now: Fragments): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const [id, { text }] of Object.entries(now)) if (before.get(id) !== withoutClocks(text)) changed[id] = text;
  return changed;
}

/** What `changedSince` compares with. */
export function remember(fragments: Fragments): Map<string, string> {
  return new Map(Object.entries(fragments).map(([id, { text }]) => [id, withoutClocks(text)]));
}

function withoutClocks(text: string): string {
  return text.replace(CLOCKS, '$1');
}

function renderVerdict(view: View): Markup {
  const { level, headline, detail } = judgeView(view);
  const { degraded } = view.status;
  return markup`<div class="verdict ${level}"><span class="sign" aria-hidden="true">${SIGNS[level]}</span>
<div><h2 id="headline">${headline}</h2><p>${detail}</p>${
    degraded.length > 0 && markup`<ul>${degraded.map((words) => markup`<li>${words}</li>`)}</ul>`
  }</div></div>`;
}

function renderFleet({ status: { fleet } }: View): Markup {
  if (fleet === null) return markup``;
  const words = fleet.connected ? 'Replicas share tokens and limits' : (fleet.fault ?? 'Not joined yet');
  const level = fleet.connected ? 'good' : 'wait';
  return markup`<section class="card" aria-label="Fleet"><h2>Fleet <span class="badge ${level}">${fleet.connected ? 'joined' : 'alone'}</span></h2>
<p>${words}, since ${clockTime(Date.parse(fleet.since))}</p></section>`;
}
