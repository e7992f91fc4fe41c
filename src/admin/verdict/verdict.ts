/**
 * Whose fault it is that requests fail or are delayed, since when, and what helps (pure). Each cause is weighed by the requests that it
 * explains; the largest is shown, and a second one is named. No side is blamed for a few failures, and a cause that has gone is past.
 */
import { ALERTS, type AlertName } from '../alerts/alert-table.ts';
import { formatHeadline } from '../alerts/active-alerts.ts';
import { describeOperations, formatCount, formatInteger, formatLatency, formatShare } from '../quantity-texts.ts';
import { quotePattern, type Selector } from '../samples/samples.ts';
import { countSuccesses, PASSED } from '../samples/traffic.ts';
import { describeDegradation, validForMs } from '../status/readiness.ts';
import type { LastFault } from '../status/states.ts';
import { ADVICE_AFTER_SUCCESS, CAUSES, toSentence, type Cause, type VerdictPlace } from './causes.ts';
import { describePast, formatClock, isUnchanged } from './past.ts';
import { listSymptoms, RECENT_MS, type Symptom, type VerdictInputs } from './symptoms.ts';
import { adviseOnTokenFailure, describeTokenFailure, findFailingToken, type TokenFailure } from './token-failures.ts';

export interface Verdict {
  /** `bad`: the application cannot work. `wait`: requests are delayed, or some fail. */
  readonly level: 'good' | 'wait' | 'bad';
  /** Whose fault it is; `none` also while the sidecar drains, and when a cause has gone. */
  readonly where: VerdictPlace;
  /** The dominant status, code of the local reply, or cause. Default: nothing is wrong. */
  readonly code?: string;
  readonly headline: string;
  /** Numbers, and the words of the last fault. */
  readonly detail: string;
  /** Default: no route, or several. */
  readonly route?: string | undefined;
  /** The share of the requests of the window, from 0 to 1. Default: nothing is wrong. */
  readonly share?: number;
  /** Since when, or when it ended, epoch milliseconds. Default: unknown. */
  readonly sinceWallAt?: number | undefined;
  /** The setting or the question that helps. Default: nothing is needed. */
  readonly advice?: string;
  /** The headline of a second cause. Default: there is none. */
  readonly other?: string | undefined;
}

interface CachedInputs extends VerdictInputs {
  /** The symptoms of one window are found once for all candidates. */
  readonly listSymptoms: (windowMs: number) => readonly Symptom[];
}

/** Symptoms of one cause, of all routes. */
interface Candidate extends Symptom {
  readonly text: Cause;
  readonly weight: number;
  readonly share: number;
  /** Share among the requests of the route alone. */
  readonly ownShare: number;
  /** Other routes have requests, too. */
  readonly hasOthers: boolean;
  readonly total: number;
  readonly windowMs: number;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
/** Where a minute has too few requests. */
const PAST_MS = 5 * MINUTE_MS;
/** A step back in time, to find the begin of a delay. */
const STEP_MS = 5000;
/** Fewer failures are no trend. */
const MIN_WEIGHT = 3;
const MIN_SHARE = 0.05;
/** So many failures would have been expected since: with fewer, chance may be the reason that there was none. */
const MISSED_FAILURES = 3;
/** Successes in a row end a cause at once where they would be so unlikely while it lasts. */
const MAX_CHANCE = 1e-5;
/** A larger share is described as every call. */
const EVERY = 0.995;
/** As long as the alert on a missing token waits, a first token is only being requested. */
const MAX_START_MS = 2 * MINUTE_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** About token requests that fail. */
const TOKEN_ALERTS: ReadonlySet<AlertName> = new Set<AlertName>([
  'BearerSidecarTokenExpiring',
  'BearerSidecarTokenEndpointFailing',
  'BearerSidecarClientRejected',
]);

export function evaluateVerdict(given: VerdictInputs): Verdict {
  if (given.draining) return describeDrain(given);
  const symptoms = new Map<number, readonly Symptom[]>();
  const inputs: CachedInputs = {
    ...given,
    listSymptoms(windowMs) {
      const found = symptoms.get(windowMs) ?? listSymptoms(given, windowMs);
      symptoms.set(windowMs, found);
      return found;
    },
  };
  // The present first: in a minute, what has begun just now is a small part.
  const [recent, minute, past] = [RECENT_MS, MINUTE_MS, PAST_MS].map((windowMs) => rankCandidates(inputs, windowMs));
  const current = [recent, minute, past]
    .map((candidates = []) => candidates.filter((candidate) => isCurrent(candidate, inputs)))
    .find((candidates) => candidates.length > 0);
  const [worst, second] = current ?? [];
  if (worst !== undefined) return describeCandidate(worst, second, inputs);
  const [gone] = [...(minute ?? []), ...(past ?? [])];
  return (
    describeStart(inputs) ??
    (gone === undefined ? undefined : describeRecovery(gone, inputs)) ??
    describeAlert(inputs) ??
    describeHealth(inputs)
  );
}

/** The causes that explain enough requests, the largest first. */
function rankCandidates(inputs: CachedInputs, windowMs: number): Candidate[] {
  const { samples, throttles, pending } = inputs;
  const countRequests = (route?: string): number =>
    samples.increase('requests_total', windowMs, route === undefined ? {} : { route });
  const waiting = throttles.reduce((total, { queued }) => total + queued, pending.length);
  const total = countRequests() + waiting;
  const byCause = Map.groupBy(inputs.listSymptoms(windowMs), ({ cause }) => cause);
  return [...byCause.values()]
    .map((symptoms) => mergeSymptoms(symptoms, total, windowMs, countRequests))
    .filter(
      ({ isCertain, weight, share, ownShare, text }) =>
        isCertain === true || (weight >= MIN_WEIGHT && Math.max(share, ownShare) >= (text.minShare ?? MIN_SHARE)),
    )
    .sort((one, other) => rank(other) - rank(one));
}

/** A failure is worse than a delay. */
function rank({ failed, delayed }: Candidate): number {
  return 3 * failed + delayed;
}

function mergeSymptoms(
  symptoms: readonly Symptom[],
  total: number,
  windowMs: number,
  countRequests: (route?: string) => number,
): Candidate {
  const weigh = ({ failed, delayed }: Symptom): number => failed + delayed;
  const largest = symptoms.reduce((most, next) => (weigh(next) > weigh(most) ? next : most));
  const sum = (part: 'failed' | 'delayed'): number => symptoms.reduce((all, next) => all + next[part], 0);
  // A request that waited long and then got a slow response has two symptoms.
  const failed = Math.min(total, sum('failed'));
  const delayed = Math.min(total - failed, sum('delayed'));
  const weight = failed + delayed;
  const share = Math.min(1, weight / Math.max(1, total));
  const routes = new Set(symptoms.map(({ selector }) => selector.route));
  const own = [...routes].reduce((all, route) => all + countRequests(route), 0);
  return {
    ...largest,
    failed,
    delayed,
    total,
    windowMs,
    weight,
    isCertain: symptoms.some(({ isCertain }) => isCertain === true),
    route: symptoms.every(({ route }) => route === largest.route) ? largest.route : null,
    share,
    // A route with few of the requests has a share of its own.
    ownShare: own === 0 ? share : Math.min(1, weight / own),
    hasOthers: own < countRequests(),
    text: CAUSES[largest.cause],
  };
}

/** Whether it goes on: it has gone when requests of its route have succeeded of which some would have failed. */
function isCurrent(candidate: Candidate, inputs: CachedInputs): boolean {
  const { cause, ownShare, isCertain, failed, delayed } = candidate;
  if (isCertain === true) return true;
  const { quietMs, since, before } = readEnd(candidate, inputs);
  // With one more call of either kind, since there may be few.
  const survival = 1 - (failed + 1) / (before + 2);
  if (delayed === 0 && failed > 0 && survival ** since < MAX_CHANCE) return false;
  if (inputs.listSymptoms(RECENT_MS).some((recent) => recent.cause === cause)) return true;
  return countOwnSuccesses(candidate, inputs, Math.max(quietMs, RECENT_MS)) * ownShare < MISSED_FAILURES;
}

/** How long nothing has failed, the successes of its route since then, and the calls until then, from the first failure of the window on. */
function readEnd(candidate: Candidate, inputs: VerdictInputs) {
  const { failed, metric, selector, windowMs } = candidate;
  const { samples } = inputs;
  const quietMs = failed === 0 ? RECENT_MS : samples.now - (samples.lastGrowthAt(metric, selector) ?? samples.now);
  const since = countOwnSuccesses(candidate, inputs, quietMs);
  const beganAt = samples.growingSince(metric, windowMs, selector) ?? -Infinity;
  const failingMs = Math.min(windowMs, samples.now - beganAt + SECOND_MS);
  const before = Math.max(failed, samples.increase('requests_total', failingMs, selectRoute(candidate)) - since);
  return { quietMs, since, before };
}

function countOwnSuccesses(candidate: Candidate, { samples }: VerdictInputs, overMs: number): number {
  const ofRoute = selectRoute(candidate);
  const increase = (counter: string, of?: Selector): number => samples.increase(counter, overMs, of);
  return countSuccesses(increase, { ...PASSED, ...ofRoute, source: 'upstream' }, ofRoute);
}

function selectRoute({ selector: { route } }: Candidate): Selector {
  return route === undefined ? {} : { route };
}

function describeCandidate(worst: Candidate, second: Candidate | undefined, inputs: VerdictInputs): Verdict {
  const { text, failed, total, share, code, route, cause } = worst;
  const isBad = text.isOutage === true || (text.where !== 'application' && failed >= total / 2 && failed > 0);
  const isCritical = inputs.alerts.some(({ name }) => ALERTS[name].severity === 'critical');
  const begin = findBegin(worst, inputs);
  const hasWorked = route !== null && isUnchanged('answered', route, inputs);
  return {
    level: isBad || isCritical ? 'bad' : 'wait',
    where: text.where,
    code,
    route: route ?? undefined,
    share,
    headline: headlineOf(worst, inputs),
    detail:
      [detailOf(worst, inputs), describePast(worst, begin, inputs)].filter(Boolean).join(' ') ||
      describeHealth(inputs).detail,
    sinceWallAt: begin,
    advice: toSentence(
      (hasWorked ? ADVICE_AFTER_SUCCESS[cause] : undefined) ??
        findLastFault(cause, route, inputs)?.advice ??
        fill(text.advice, worst),
    ),
    other: second && headlineOf(second, inputs),
  };
}

function headlineOf(candidate: Candidate, inputs: VerdictInputs): string {
  const { route, text, hasOthers } = candidate;
  const isNamed = route === null || inputs.throttles.length === 1 || (hasOthers && text.headline.includes('{part}'));
  return `${fill(text.headline, candidate)}${isNamed ? '' : ` (route ${route})`}`;
}

function fill(text: string, candidate: Candidate): string {
  const { code, values } = candidate;
  const known: Readonly<Record<string, string>> = { part: describePart(candidate), code, ...values };
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? '');
}

/** The requests that fail, in words: beside other routes, the share of all says little of the one that fails. */
function describePart({ route, share, ownShare, hasOthers }: Candidate): string {
  if (route === null || !hasOthers) return `${formatShare(share)} of the requests`;
  return `${ownShare >= EVERY ? 'every call' : `${formatShare(ownShare)} of the calls`} of route ${route}`;
}

function detailOf(candidate: Candidate, inputs: VerdictInputs): string {
  const { failed, delayed, total, windowMs, words, route, cause, text, hasOthers } = candidate;
  const failures = Math.round(failed);
  const parts = [
    ...(failures > 0 ? [`${formatCount(failures, 'request')} failed`] : []),
    ...(delayed > 0 ? [`${failures > 0 ? formatInteger(delayed) : formatCount(delayed, 'request')} delayed`] : []),
  ];
  const isOfRoute = route !== null && hasOthers && !text.headline.includes('{part}');
  const part = isOfRoute ? `: ${describePart(candidate)}` : '';
  const numbers = `${parts.join(' and ')}, of ${formatInteger(total)} ${describeWindow(windowMs, inputs)}${part}`;
  const shown = cause === 'token_refused' || cause === 'partly_unauthorized' ? 'unauthorized' : cause;
  const said = words ?? findLastFault(shown, route, inputs)?.detail;
  const throttle = cause === 'rate_limit' ? inputs.throttles.find((each) => each.route === route) : undefined;
  const operations = throttle && describeOperations(throttle);
  return [parts.length > 0 ? numbers : undefined, said, operations]
    .filter((text) => text !== undefined)
    .map(toSentence)
    .join(' ');
}

function findLastFault(cause: string, route: string | null, { faults }: VerdictInputs): LastFault | undefined {
  return faults
    .filter((each) => each.cause === cause && (route === null || each.route === route))
    .reduce<LastFault | undefined>((last, next) => (last && last.wallAt > next.wallAt ? last : next), undefined);
}

/** In as much time as was recorded. */
function describeWindow(windowMs: number, { samples }: VerdictInputs): string {
  if (samples.spanMs < windowMs || windowMs === RECENT_MS)
    return `in the last ${formatCount(Math.ceil(Math.min(windowMs, samples.spanMs) / 1000), 'second')}`;
  return windowMs === MINUTE_MS ? 'in the last minute' : 'in the last 5 minutes';
}

function findBegin(candidate: Candidate, inputs: VerdictInputs): number | undefined {
  const { samples, wallNow, pending } = inputs;
  const { cause, metric, selector, windowMs } = candidate;
  const grownSince = samples.growingSince(metric, Math.max(windowMs, MINUTE_MS), selector);
  if (cause === 'no_response_in_time') {
    const startedAt = pending.reduce((oldest, attempt) => Math.min(oldest, attempt.startedAt), grownSince ?? Infinity);
    if (startedAt !== Infinity) return wallNow - (samples.now - startedAt);
  }
  // A stated pause has one refusal, at its begin.
  if (candidate.beganWallAt !== undefined && grownSince === undefined) return candidate.beganWallAt;
  if (grownSince !== undefined && cause !== 'slow') return wallNow - (samples.now - grownSince);
  return findFirstDelay(candidate, inputs);
}

/** When the first of the delayed requests was delayed: to five seconds, as latencies are sampled. */
function findFirstDelay(candidate: Candidate, { samples, pending, wallNow }: VerdictInputs): number | undefined {
  const ofRoute = selectRoute(candidate);
  const countLonger = (histogram: string, le: string, windowMs: number): number =>
    samples.increase(`${histogram}_count`, windowMs, ofRoute) -
    samples.increase(`${histogram}_bucket`, windowMs, { ...ofRoute, le });
  let [begin, delayed] = [0, 0];
  for (let windowMs = STEP_MS; windowMs <= PAST_MS && windowMs - begin <= RECENT_MS; windowMs += STEP_MS) {
    const next =
      countLonger('upstream_duration_seconds', '2.5', windowMs) + countLonger('queue_wait_seconds', '1', windowMs);
    if (next > delayed) [begin, delayed] = [windowMs, next];
  }
  if (begin > 0) return wallNow - Math.min(begin, samples.spanMs);
  const startedAt = pending.reduce((oldest, attempt) => Math.min(oldest, attempt.startedAt), samples.now);
  return startedAt === samples.now ? undefined : wallNow - (samples.now - startedAt);
}

function describeDrain({ throttles }: VerdictInputs): Verdict {
  const left = throttles.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0);
  const detail = `${left === 0 ? 'No request' : formatCount(left, 'request')} in progress; new requests are rejected.`;
  return { level: 'wait', where: 'none', code: 'DRAINING', headline: 'Shutting down', detail };
}

function describeStart({ samples, tokens, uptimeMs }: VerdictInputs): Verdict | undefined {
  const without = tokens.find((token) => validForMs(token) <= 0);
  if (without === undefined) return undefined;
  const { credential } = without;
  const obtained = { credential: quotePattern(credential), outcome: 'ok' };
  const hadToken = samples.increase('token_requests_total', HOUR_MS, obtained) > 0;
  const isLate = hadToken || uptimeMs >= MAX_START_MS;
  const suffix = tokens.length === 1 ? '' : ` for ${credential}`;
  const headline = hadToken
    ? `No token${suffix}: the token endpoint has not responded yet`
    : `Starting: requesting the first token${suffix}`;
  const texts = { code: hadToken ? 'unavailable' : 'starting', headline, detail: 'Requests wait for the token.' };
  return isLate
    ? { ...texts, level: 'bad', where: 'token', advice: ALERTS.BearerSidecarTokenMissing.advice[0] }
    : { ...texts, level: 'wait', where: 'none' };
}

function describeRecovery(ended: Candidate, inputs: VerdictInputs): Verdict {
  // The successes since then are no part of it.
  const ownShare = Math.min(1, ended.failed / Math.max(1, readEnd(ended, inputs).before));
  const gone: Candidate = { ...ended, ownShare };
  const { samples, wallNow } = inputs;
  // The counter of what was only delayed grows with every request.
  const endedAt = gone.failed === 0 ? undefined : samples.lastGrowthAt(gone.metric, gone.selector);
  const endedWallAt = endedAt === undefined ? undefined : wallNow - (samples.now - endedAt);
  const end = endedWallAt === undefined ? '' : ` It ended at ${formatClock(endedWallAt, wallNow)}.`;
  return {
    // The windows of alerts are longer.
    level: inputs.alerts.length > 0 ? 'wait' : 'good',
    where: 'none',
    code: gone.code,
    route: gone.route ?? undefined,
    sinceWallAt: endedWallAt,
    headline: `Recovered: ${headlineOf(gone, inputs)}`,
    detail: `${detailOf(gone, inputs)}${end} ${describeHealth(inputs).detail}`,
  };
}

/** An alert whose condition has made no request fail. */
function describeAlert(inputs: VerdictInputs): Verdict | undefined {
  const [alert, second] = inputs.alerts.filter(({ name }) => !isShareOfThePast(name) && !isWrittenAgain(name, inputs));
  if (alert === undefined) return undefined;
  const { severity, where, advice } = ALERTS[alert.name];
  const token = TOKEN_ALERTS.has(alert.name) ? findFailingToken(inputs.tokens) : undefined;
  const isAlone = inputs.throttles.length === 1 && inputs.tokens.length === 1;
  const [headline, other] = [alert, second].map(
    (each) =>
      each &&
      `${formatHeadline(each.name, each.value)}${each.subject === undefined || isAlone ? '' : ` (${each.subject})`}`,
  );
  return {
    level: severity === 'critical' ? 'bad' : 'wait',
    where,
    code: alert.name,
    headline: headline ?? alert.name,
    detail: describeHealth(inputs).detail,
    advice: advice[0],
    other,
    ...(token?.lastFailure && explainTokenFailure(headline ?? '', token.credential, token.lastFailure, inputs)),
  };
}

/** While the held token is valid, its alert says what happens, and the last failure why. */
function explainTokenFailure(headline: string, credential: string, failure: TokenFailure, inputs: VerdictInputs) {
  const past = describePast({ cause: 'no_token', route: null }, undefined, inputs);
  return {
    headline: `${headline}: ${describeTokenFailure(failure)}`,
    detail: [toSentence(failure.detail), past, describeHealth(inputs).detail].filter(Boolean).join(' '),
    advice: adviseOnTokenFailure(credential, failure, inputs),
  };
}

/** What could not be written counts for a quarter of an hour. */
function isWrittenAgain(name: AlertName, { samples, unknownCallsFault }: VerdictInputs): boolean {
  const { condition } = ALERTS[name];
  if (condition.form !== 'increase' || !condition.of.metric.endsWith('write_errors_total')) return false;
  return unknownCallsFault === undefined && samples.increase(condition.of.metric, MINUTE_MS) === 0;
}

/** The requests of such an alert would be candidates if they still failed or waited. */
function isShareOfThePast(name: AlertName): boolean {
  const { condition } = ALERTS[name];
  const [first] = condition.form === 'all' ? condition.conditions : [condition];
  return first?.form === 'ratio' || first?.form === 'quantile';
}

/** The latency of the upstream is shown apart from the wait in the queue: only one of them is the partner's. */
function describeHealth(inputs: VerdictInputs): Verdict {
  const { samples } = inputs;
  const isDegraded = describeDegradation(inputs).length > 0;
  const warnings = isDegraded ? ', with warnings' : '';
  const base = { level: isDegraded ? 'wait' : 'good', where: 'none' } as const;
  const requests = samples.increase('requests_total', MINUTE_MS);
  const idle = 'A token is held; there were no requests in the last minute.';
  if (requests === 0) return { ...base, headline: `Ready${warnings}`, detail: idle };
  const failed = samples.increase('requests_total', MINUTE_MS, { code: '[45]..' });
  const median = (histogram: string): string => formatLatency(samples.quantile(histogram, 0.5, MINUTE_MS));
  const latency = `upstream p50 ${median('upstream_duration_seconds')}, queue p50 ${median('queue_wait_seconds')}`;
  const detail = `${formatCount(requests, 'request')} ${describeWindow(MINUTE_MS, inputs)}, ${failed} with 4xx or 5xx; ${latency}.`;
  return { ...base, headline: `Healthy${warnings}`, detail };
}
