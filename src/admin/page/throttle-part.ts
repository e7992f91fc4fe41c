/** The throttles: learned limit, current rate, queue. A card for each throttle, or a table for many. */
import {
  describeDeclaredUse,
  describeFields,
  describeLane,
  describeLearned,
  describeObserved,
  describeQuotaFields,
  describeRate,
} from '../status/limit-texts.ts';
import type { Status } from '../status/status.ts';
import { markup, renderBadge, renderClockTime, renderCountdown, renderFacts } from './markup.ts';
import { formatCount, formatDuration, formatInteger, formatLatency, formatRate } from '../quantity-texts.ts';
import type { Content, Markup, PageView } from './markup.ts';

type ThrottleStatus = Status['throttle'];
type DeclaredLimit = ThrottleStatus['limits'][number];
type Usage = NonNullable<ThrottleStatus['usage']>;

const MAX_CARDS = 2;

export function renderThrottles({ status, nowWallAt }: Pick<PageView, 'status' | 'nowWallAt'>): Markup {
  const { throttles } = status;
  if (throttles.length > MAX_CARDS) return renderTable(throttles, nowWallAt);
  return markup`${throttles.map(
    (
      throttle,
    ) => markup`<section class="card" aria-label="${throttles.length === 1 ? 'Rate limit' : `Rate limit ${throttle.route}`}">
<h2>Rate limit${throttles.length === 1 ? '' : markup` <span class="name">${throttle.route}</span>`} ${renderState(throttle)}</h2>
${renderUsage(throttle)}${renderFacts(listFacts(throttle, nowWallAt))}${renderAssumed(throttle)}</section>`,
  )}`;
}

function listFacts(throttle: ThrottleStatus, nowWallAt: number): (readonly [string, Content])[] {
  const { mode, streams, inFlight, inFlightLimit, fleet, readingBodies, stalledBodies, limits } = throttle;
  const { stalledResponses, stalledInFlight, queued } = throttle;
  const { high, normal, low } = throttle.queuedByPriority;
  return [
    ...describeObserved(throttle).map((text) => ['Observes', text] as const),
    ['Current rate', markup`<strong>${describeRate(throttle)}</strong>`],
    ['Limit', mode === 'static' ? 'configured, not learned' : describeLimit(throttle)],
    ...limits.map((limit) => [`Declared: ${limit.name}`, describeDeclared(limit, nowWallAt)] as const),
    ...throttle.lanes.map((lane) => ['Operation', describeLane(lane)] as const),
    ['Pause', describePause(throttle, nowWallAt)],
    ...describeQuotaFields(throttle).map((text) => ['Stated limit', text] as const),
    ['Queued', high + low === 0 ? String(queued) : `${queued} (high ${high}, normal ${normal}, low ${low})`],
    ['In flight', inFlightLimit === null ? String(inFlight) : `${inFlight}, limit ${inFlightLimit}`],
    ['Request bodies being read', readingBodies > 0 && readingBodies],
    ['Stalled request bodies', stalledBodies > 0 && stalledBodies],
    ['Responses that clients do not read', stalledResponses > 0 && `${stalledResponses}, ${stalledInFlight} in flight`],
    ['Open streams', streams > 0 && streams],
    ['Last rate-limit response', describeLastSignal(throttle)],
    ['Fleet', fleet !== null && describeFleetShare(fleet)],
  ];
}

function describeLimit({ learned }: ThrottleStatus): Content {
  const known = describeLearned(learned);
  if (learned === null || learned.confidence === 'none') return known;
  return markup`${known}, since ${renderClockTime(Date.parse(learned.since))}`;
}

function describeDeclared(limit: DeclaredLimit, nowWallAt: number): Content {
  const { reserve, usedUpAt, resetsAt } = limit;
  const reset = resetsAt !== null && markup`, resets in ${renderCountdown(Date.parse(resetsAt), nowWallAt)}`;
  const forecast =
    usedUpAt !== null &&
    !isUsedUp(limit) &&
    markup`, used up in <strong>${renderCountdown(Date.parse(usedUpAt), nowWallAt)}</strong> at the pace of the last hour`;
  const state = isUsedUp(limit) && markup` ${renderBadge('wait', 'used up')}`;
  return markup`${describeDeclaredUse(limit)}${reserve > 0 && `, ${formatInteger(reserve)} kept for priority high`}${forecast}${reset}${state}`;
}

function isUsedUp({ used, calls, reserve }: DeclaredLimit): boolean {
  return used >= calls - reserve;
}

function describePause({ pausedSeconds }: ThrottleStatus, nowWallAt: number): Content {
  if (pausedSeconds === null) return 'no end known';
  if (pausedSeconds < 1) return 'none';
  return markup`<strong>${renderCountdown(nowWallAt + pausedSeconds * 1000, nowWallAt)}</strong> left`;
}

function describeLastSignal({ recentSignals: [signal] }: ThrottleStatus): Content {
  if (signal === undefined) return 'none';
  const { at, status, pauseSeconds, stated, fields } = signal;
  return markup`${renderClockTime(Date.parse(at))}: ${status}, ${describeSignalPause(pauseSeconds)} (${stated ? 'stated by the upstream' : 'estimated'}) <span class="aside">${describeFields(fields)}</span>`;
}

function describeSignalPause(pauseSeconds: number | null): string {
  if (pauseSeconds === null) return 'pause without a known end';
  return pauseSeconds < 0.5 ? 'pause under 0.5 s' : `pause of ${formatDuration(pauseSeconds * 1000)}`;
}

function describeFleetShare({ state, leader, replicas, rate, leased }: NonNullable<ThrottleStatus['fleet']>): string {
  if (state === 'unknown') return 'not connected: limits are not shared';
  const total = rate === null ? 'no limit known' : `${formatRate(rate)} per second in total`;
  const apart = state === 'apart' ? 'disconnected, with a share of the last known rate; ' : '';
  return `${apart}${formatCount(replicas, 'replica')}, ${total}${leader ? ', this one is the leader' : ''}${leased > 0 ? `, ${formatCount(leased, 'permit')} leased` : ''}`;
}

function renderState({ observed, pausedSeconds, limits, unpaced, queued }: ThrottleStatus): Markup {
  if (observed !== null) return renderBadge('wait', 'observes: limits are not enforced');
  if (pausedSeconds === null || pausedSeconds >= 1) return renderBadge('wait', 'paused');
  if (limits.some(isUsedUp)) return renderBadge('wait', 'limit used up');
  if (unpaced && limits.length === 0) return renderBadge('good', 'no limit');
  return queued > 0 ? renderBadge('wait', 'limiting') : renderBadge('good', 'within limit');
}

function renderAssumed({ assumed }: ThrottleStatus): Markup {
  return markup`${assumed.map(
    ({ status, endpoints, count, setting, variable }) =>
      markup`<p>${renderBadge('wait', 'assumed')} ${status} is taken for a rate limit, and calls are paced (${formatCount(count, 'refusal')}: ${endpoints.join(', ')}). If it is one, set <code>${setting}</code> or <code>${variable}</code>; if not, <code>throttle: { assumeRefusals: false }</code></p>`,
  )}`;
}

function renderTable(throttles: readonly ThrottleStatus[], nowWallAt: number): Markup {
  return markup`<section class="card wide" aria-label="Rate limit per route">
<h2>Rate limit per route</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Rate limit per route, table">
<table>
<thead><tr><th scope="col">Route</th><th scope="col">Current rate</th><th scope="col">Limit</th><th scope="col">Pause</th><th scope="col" class="number">Queued</th><th scope="col" class="number">In flight</th></tr></thead>
<tbody>
${throttles.map(
  (throttle) => markup`<tr><th scope="row">${throttle.route}</th><td>${describeRate(throttle)}</td>
<td>${throttle.observed !== null && markup`observes: limits are not enforced<br>`}${throttle.mode === 'static' ? 'configured' : describeLimit(throttle)}${throttle.limits.map((limit) => markup`<br>${limit.name}: ${describeDeclared(limit, nowWallAt)}`)}${throttle.lanes.map((lane) => markup`<br>${describeLane(lane)}`)}</td><td>${describePause(throttle, nowWallAt)}${describeQuotaFields(throttle).map((text) => markup`<br>${text}`)}</td>
<td class="number">${throttle.queued}</td><td class="number">${throttle.inFlight}</td></tr>\n`,
)}</tbody>
</table>
</div>${throttles.map(renderAssumed)}</section>`;
}

const WIDTH = 400;
/** The time axis of a limit without a window, seconds. */
const MIN_AXIS_SECONDS = 1;

/** The learned limit as a picture with its text: how much is used, and when the next request may be sent. Nothing while none is known. */
function renderUsage({ usage, learned }: ThrottleStatus): Markup {
  if (usage === null) return markup``;
  const { used, limit, windowSeconds, opensInSeconds } = usage;
  const fill = limit === 0 ? 0 : Math.min(1, used / limit) * WIDTH;
  const axisSeconds = Math.max(windowSeconds ?? MIN_AXIS_SECONDS, opensInSeconds ?? 0);
  const opening = opensInSeconds === null ? null : (opensInSeconds / axisSeconds) * WIDTH;
  // The text beside the drawing says the same.
  return markup`<figure class="usage"><svg viewBox="0 0 ${WIDTH} 44" aria-hidden="true" focusable="false">
<rect class="track" x="0" y="0" width="${WIDTH}" height="16" rx="4"></rect>
<rect class="${used >= limit ? 'used full' : 'used'}" x="0" y="0" width="${roundToTenths(fill)}" height="16" rx="4"></rect>
<path class="axis" d="M0 30H${WIDTH}M0 26V34M${WIDTH} 26V34"></path>
${opening !== null && markup`<circle class="opening" cx="${roundToTenths(Math.min(WIDTH - 5, Math.max(5, opening)))}" cy="30" r="5"></circle>`}
<text x="0" y="43">now</text><text class="end" x="${WIDTH}" y="43">in ${formatSeconds(axisSeconds)}</text>
</svg><figcaption class="say">${describeUsage(usage, learned?.kind)}</figcaption></figure>`;
}

function describeUsage({ used, limit, windowSeconds, opensInSeconds }: Usage, kind: string | undefined): string {
  const counted = `${formatRate(used)} of ${formatRate(limit)}`;
  const where =
    windowSeconds !== null
      ? `${counted} requests used in the window of ${formatDuration(windowSeconds * 1000)}`
      : kind === 'bucket'
        ? `${counted} requests of the burst used`
        : `${counted} concurrent requests in use`;
  if (opensInSeconds === null) return `${where}; the next one is sent when another ends.`;
  return opensInSeconds === 0
    ? `${where}; the next one may be sent now.`
    : `${where}; the next one may be sent in ${formatSeconds(opensInSeconds)} (the dot).`;
}

function formatSeconds(seconds: number): string {
  return seconds < 10 ? formatLatency(seconds * 1000) : formatDuration(seconds * 1000);
}

function roundToTenths(value: number): number {
  return Math.round(value * 10) / 10;
}
