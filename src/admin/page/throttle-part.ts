/** The governor: what it has inferred, what it allows, who waits. A card for each of a few throttles, a table for many. */
import type { Status } from '../status/status-shape.ts';
import { renderFacts } from './facts.ts';
import { markup } from './markup.ts';
import type { Content, Markup } from './markup.ts';
import { renderClockTime, formatCount, renderCountdown, formatRate, formatDuration } from './format.ts';
import type { PageView } from './view.ts';

type ThrottleStatus = Status['throttle'];

/** More than this are rows of a table. */
const MAX_CARDS = 2;

export function renderThrottles({ status, nowWallAt }: Pick<PageView, 'status' | 'nowWallAt'>): Markup {
  const { throttles } = status;
  if (throttles.length > MAX_CARDS) return renderTable(throttles, nowWallAt);
  return markup`${throttles.map(
    (
      throttle,
    ) => markup`<section class="card" aria-label="${throttles.length === 1 ? 'Rate' : `Rate ${throttle.route}`}">
<h2>Rate${throttles.length === 1 ? '' : markup` <span class="name">${throttle.route}</span>`} ${renderState(throttle)}</h2>
${renderFacts(listFacts(throttle, nowWallAt))}</section>`,
  )}`;
}

function listFacts(throttle: ThrottleStatus, nowWallAt: number): (readonly [string, Content])[] {
  const { mode, streams, inFlight, inFlightLimit, fleet, readingBodies, stalledBodies } = throttle;
  return [
    ['Allowed now', markup`<strong>${describeRate(throttle)}</strong>`],
    ['Limit', mode === 'static' ? 'configured, nothing is inferred' : describeLimit(throttle)],
    ['Pause', describePause(throttle, nowWallAt)],
    ['Waiting', describeQueue(throttle)],
    ['In flight', `${inFlight} of ${inFlightLimit ?? 'any number'}`],
    ['Request bodies being read', readingBodies > 0 && readingBodies],
    ['Request bodies stalled', stalledBodies > 0 && stalledBodies],
    ['Streams open', streams > 0 && streams],
    ['Last refusal', describeRefusal(throttle)],
    ['Fleet', fleet !== null && describeFleetShare(fleet)],
  ];
}

function describeRate({ unpaced, rate }: ThrottleStatus): string {
  return unpaced || rate === null ? 'as fast as they come' : `${formatRate(rate)} a second`;
}

/** In one plain line. */
function describeLimit({ learned }: ThrottleStatus): Content {
  if (learned === null) return 'none seen so far';
  if (learned.confidence === 'none')
    return learned.rate === null ? 'none seen so far' : 'there is one, and nothing explains it yet';
  const { limit, windowSeconds, kind, confidence, since, rate } = learned;
  const pace = rate === null ? '' : `about ${formatRate(rate)} a second`;
  const calls =
    limit === null
      ? pace
      : kind === 'bucket'
        ? `${pace}, up to ${limit} at once`
        : windowSeconds === null
          ? `${formatCount(limit, 'call')} at once`
          : `${formatCount(limit, 'call')} in ${formatDuration(windowSeconds * 1000)}`;
  return markup`${calls} (${kind.replaceAll('-', ' ')}, inferred with ${confidence} confidence since ${renderClockTime(Date.parse(since))})`;
}

function describePause({ pausedSeconds }: ThrottleStatus, nowWallAt: number): Content {
  if (pausedSeconds === null) return 'without an end';
  if (pausedSeconds < 1) return 'no';
  return markup`<strong>${renderCountdown(nowWallAt + pausedSeconds * 1000, nowWallAt)}</strong> more`;
}

function describeQueue({ queued, queuedByPriority: { high, normal, low } }: ThrottleStatus): string {
  return high + low === 0 ? String(queued) : `${queued} (high ${high}, normal ${normal}, low ${low})`;
}

function describeRefusal({ recentSignals: [signal] }: ThrottleStatus): Content {
  if (signal === undefined) return 'none';
  const { at, status, pauseSeconds, stated, fields } = signal;
  const wait = describeWait(pauseSeconds);
  const said = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  return markup`${renderClockTime(Date.parse(at))}: ${status}, ${wait} (${stated ? 'stated' : 'estimated'})${
    said.length > 0 && markup` <span class="aside">${said.join('; ')}</span>`
  }`;
}

function describeWait(pauseSeconds: number | null): string {
  if (pauseSeconds === null) return 'a pause without end';
  return pauseSeconds < 0.5 ? 'a pause of a moment' : `a pause of ${formatDuration(pauseSeconds * 1000)}`;
}

function describeFleetShare({ state, leader, replicas, rate, leased }: NonNullable<ThrottleStatus['fleet']>): string {
  if (state === 'unknown') return 'not joined: as if it were alone';
  const together = rate === null ? 'no limit known' : `${formatRate(rate)} a second together`;
  const apart = state === 'apart' ? 'apart, with a part of the last known rate; ' : '';
  return `${apart}${formatCount(replicas, 'replica')}, ${together}${leader ? ', this one learns for all' : ''}${leased > 0 ? `, ${leased} permits ahead` : ''}`;
}

function renderState(throttle: ThrottleStatus): Markup {
  if (throttle.pausedSeconds === null || throttle.pausedSeconds >= 1)
    return markup`<span class="badge wait">paused</span>`;
  if (throttle.unpaced) return markup`<span class="badge good">no limit seen</span>`;
  return throttle.queued > 0
    ? markup`<span class="badge wait">holds calls back</span>`
    : markup`<span class="badge good">within the limit</span>`;
}

function renderTable(throttles: readonly ThrottleStatus[], nowWallAt: number): Markup {
  return markup`<section class="card wide" aria-label="Rate of each route">
<h2>Rate of each route</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Rate of each route, table">
<table>
<thead><tr><th scope="col">Route</th><th scope="col">Allowed</th><th scope="col">Limit</th><th scope="col">Pause</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">In flight</th></tr></thead>
<tbody>
${throttles.map(
  (throttle) => markup`<tr><th scope="row">${throttle.route}</th><td>${describeRate(throttle)}</td>
<td>${throttle.mode === 'static' ? 'configured' : describeLimit(throttle)}</td><td>${describePause(throttle, nowWallAt)}</td>
<td class="number">${throttle.queued}</td><td class="number">${throttle.inFlight}</td></tr>\n`,
)}</tbody>
</table>
</div></section>`;
}
