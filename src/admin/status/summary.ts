/** The status as text for a terminal, which `bearer-sidecar status` prints: the verdict, then one line for each fact (pure). */
import { formatDuration, formatInteger, formatLatency, formatRate, formatShare } from '../quantity-texts.ts';
import { describeDeclared, describeLearned, describeObserved, describeQuotaFields } from './limit-texts.ts';
import { listLimitRows, toRows, type Row } from './limit-texts.ts';
import type { Status } from './status.ts';

type Throttle = Status['throttle'];

const MAX_SIGNALS = 5;
const NAME_WIDTH = 9;

/** Lines, each ended by a line feed. A text from outside cannot begin another one. */
export function renderSummary(status: Status): string {
  const { version, uptimeSeconds, pid, tokens, throttles, routes, degraded, alerts, verdict } = status;
  const process = pid === null ? '' : `, process ${pid}`;
  const list = (name: string, texts: readonly string[]): Row[] => texts.map((text, at) => [at === 0 ? name : '', text]);
  const ofThrottles = (name: string, describe: (throttle: Throttle) => readonly string[]): Row[] =>
    throttles.flatMap((one) =>
      toRows(
        name,
        describe(one).map((text) => text + nameOf(one.route, throttles)),
      ),
    );
  const rows = [
    ...listVerdict(verdict),
    ...list('failed', describeFailedCall(status)),
    ...toRows('route', routes.length === 1 ? [] : routes.map(describeRoute)),
    ...toRows(
      'token',
      tokens.map((token) => describeToken(token) + nameOf(token.credential, tokens)),
    ),
    ...ofThrottles('limit', (throttle) => [describeLimit(throttle)]),
    ...ofThrottles('observes', describeObserved),
    ...ofThrottles('stated', describeQuotaFields),
    ...ofThrottles('declared', ({ limits }) => limits.map(describeDeclared)),
    ...ofThrottles('queue', (throttle) => [describeQueue(throttle)]),
    ...list('refusals', describeSignals(throttles)),
    ...list('alerts', alerts.map(describeAlert)),
    ...list('warnings', degraded),
  ];
  return toText([
    `bearer-sidecar ${version}  ${verdict.headline}`,
    `up ${formatDuration(uptimeSeconds * 1000)}${process}`,
    '',
    ...rows.map(formatRow),
  ]);
}

/** What is known of the limits, for the partner: no client, host or setting is in it. */
export function renderLimits({ version, uptimeSeconds, throttles }: Status, now: string): string {
  return toText([
    `bearer-sidecar ${version}  rate limits as seen at ${now}`,
    `up ${formatDuration(uptimeSeconds * 1000)}`,
    ...throttles.flatMap((throttle) => [
      '',
      ...(throttles.length === 1 ? [] : [`route ${throttle.route}`]),
      ...listLimitRows(throttle).map(formatRow),
    ]),
  ]);
}

function formatRow([name, words]: Row): string {
  return `  ${name.padEnd(NAME_WIDTH)} ${words}`;
}

function toText(lines: readonly string[]): string {
  return lines.map((line) => `${line.replaceAll(/[\n\v\f\r\u0085\u2028\u2029]/g, ' ')}\n`).join('');
}

/** What the verdict says besides its headline, if there is more. */
function listVerdict({ where, detail, since, advice, other }: Status['verdict']): readonly Row[] {
  return [
    ...toRows('where', where === 'none' ? [] : [`${where}${since === null ? '' : `, since ${since}`}`]),
    ['detail', detail],
    ...toRows('also', other === null ? [] : [other]),
    ...toRows('do', advice === null ? [] : [advice]),
  ];
}

/** The newest of the last calls that failed: what a partner asks for. Empty for none. */
function describeFailedCall({ recentCalls }: Status): string[] {
  const call = recentCalls?.find(({ status }) => status >= 400);
  if (call === undefined) return [];
  const { at, method, path, status, source, reason, durationSeconds, requestId, upstreamRequestId } = call;
  const ids = `${upstreamRequestId === null ? '' : `, upstreamRequestId ${upstreamRequestId}`}, requestId ${requestId}`;
  const origin = `${status} of the ${source}${reason === null ? '' : ` (${reason})`}`;
  return [`${method} ${path} at ${at}: ${origin} after ${formatLatency(durationSeconds * 1000)}${ids}`];
}

function describeRoute(traffic: Status['routes'][number]): string {
  const { route, share, perSecond, success, clientErrors, upstreamP50Seconds, upstreamP95Seconds } = traffic;
  if (success === null) return `${route}: no requests in the last minute${describeLastFailure(traffic)}`;
  const [p50, p95] = [upstreamP50Seconds, upstreamP95Seconds].map((seconds) =>
    formatLatency(seconds === null ? undefined : seconds * 1000),
  );
  const own = clientErrors === 0 ? '' : `, ${formatInteger(clientErrors)} got 4xx`;
  return `${route}: ${formatRate(perSecond)} per second, ${formatShare(share)} of the requests, ${formatShare(success)} succeed${own}, upstream p50 ${p50}, p95 ${p95}${describeLastFailure(traffic)}`;
}

function describeLastFailure({ lastFailure: last }: Status['routes'][number]): string {
  return last === null ? '' : `; last failure ${last.status} at ${last.at}`;
}

/** docs/runbooks.md has a section of that name for each. */
function describeAlert({ name, subject, severity }: Status['alerts'][number]): string {
  return `${name}${subject === null ? '' : ` (${subject})`}, ${severity}`;
}

/** With a single one its name says nothing. */
function nameOf(name: string, all: readonly unknown[]): string {
  return all.length === 1 ? '' : ` (${name})`;
}

function describeToken({ status, validForSeconds, lastFailure, scope }: Status['token']): string {
  if (status === 'none' || validForSeconds === 0) return `none: ${lastFailure?.detail ?? 'not requested yet'}`;
  const lifetime =
    validForSeconds === null ? 'without an expiry' : `valid for ${formatDuration(validForSeconds * 1000)}`;
  const state = status === 'suspect' ? ', refused by the upstream' : '';
  return `${lifetime}${state}${scope === null || scope === '' ? '' : `, scope ${scope}`}`;
}

function describeLimit({ mode, rate, learned, pausedSeconds }: Throttle): string {
  const pause =
    pausedSeconds === null
      ? ', paused until the upstream accepts a call'
      : pausedSeconds > 0
        ? `, paused for ${formatDuration(pausedSeconds * 1000)}`
        : '';
  const perSecond = rate === null ? '' : `${formatRate(rate)} requests per second`;
  if (mode === 'static') return `${perSecond || 'none'}, configured${pause}`;
  if (learned === null) return `${perSecond || 'none known'}${pause}`;
  return `${perSecond}${perSecond && ': '}${describeLearned(learned)}${pause}`;
}

function describeQueue({ queued, inFlight, inFlightLimit }: Throttle): string {
  return `${queued} waiting, ${inFlight} in flight${inFlightLimit === null ? '' : ` of at most ${inFlightLimit}`}`;
}

function describeSignals(throttles: readonly Throttle[]): string[] {
  return throttles
    .flatMap(({ route, recentSignals }) => recentSignals.map((signal) => ({ ...signal, route })))
    .sort((one, other) => other.at.localeCompare(one.at))
    .slice(0, MAX_SIGNALS)
    .map(({ at, status, pauseSeconds, stated, route }) => {
      const pause = pauseSeconds === null ? '' : `, pause ${pauseSeconds} s${stated ? ' as stated' : ''}`;
      return `${status} at ${at}${pause}${nameOf(route, throttles)}`;
    });
}
