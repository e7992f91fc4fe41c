/** What failed and what was delayed in a window, by cause and route (pure). Where requests wait, the cause is what holds them. */
import type { PendingAttempt } from '../../exchange/exchange.ts';
import type { FaultCause, ForeignCause } from '../../telemetry/events.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import type { ActiveAlert } from '../alerts/active-alerts.ts';
import type { PastSuccesses } from '../history/past-successes.ts';
import { formatCount, formatInteger, formatLatency, formatRoundedRate, formatShare } from '../quantity-texts.ts';
import type { Samples } from '../samples/sample-ring.ts';
import { quotePattern, type Selector } from '../samples/samples.ts';
import type { StatusPageSetting, LastFault, SidecarStates } from '../status/states.ts';
import { validForMs } from '../status/readiness.ts';
import type { CauseName } from './causes.ts';
import { isUnchanged } from './past.ts';
import { describeDeclaredUse, describePause, findFull, findPauseBegin, findStall, isPausedLately } from './holds.ts';
import { LONG_PAUSE_MS, PRESENT_MS } from './holds.ts';
import {
  countBroken,
  countResponses,
  describeBrokenMethods,
  findFailingMethod,
  readRouteFacts,
  sum,
  type RouteFacts,
} from './route-facts.ts';
import { NOTABLE_MS, SLOW_MS, WITH_STATUS } from './route-facts.ts';
import {
  adviseOnRejectedToken,
  adviseOnTokenFailure,
  describeTokenFailure,
  findFailingToken,
} from './token-failures.ts';

export interface Symptom {
  readonly cause: CauseName;
  /** Null: not of one route. */
  readonly route: string | null;
  /** The status, the code of the local reply, or the cause. */
  readonly code: string;
  readonly failed: number;
  readonly delayed: number;
  /** The counter that grows with it. */
  readonly metric: string;
  readonly selector: Selector;
  /** A state that needs no number of requests to be seen. Default false. */
  readonly isCertain?: boolean;
  /** When its state began, epoch milliseconds. Default: its counters tell. */
  readonly beganWallAt?: number | undefined;
  /** By their names in the texts of the cause. Default: none. */
  readonly values?: Readonly<Record<string, string>>;
  /** What the symptom says itself. Default: what the last fault says. */
  readonly words?: string | undefined;
}

type CountedIn = 'code' | 'failed' | 'delayed';
/** Default: the code is the cause, and no request has failed or was delayed. */
type Finding = Omit<Symptom, CountedIn> & Partial<Pick<Symptom, CountedIn>>;

export interface VerdictInputs extends SidecarStates {
  readonly samples: Samples;
  readonly wallNow: number;
  readonly pending: readonly PendingAttempt[];
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
  readonly alerts: readonly ActiveAlert[];
  /** The newest of each route and cause. */
  readonly faults: readonly LastFault[];
  /** Default: not known. */
  readonly successes?: Pick<PastSuccesses, 'find'> | undefined;
}

/** A longer wait in the queue delays its request; a bound of the exposed buckets. */
const LONG_WAIT_SECONDS = '1';
/** Causes that follow from how long something took. */
const TIMED: ReadonlySet<CauseName> = new Set<CauseName>([
  'slow',
  'no_response_in_time',
  'connect_timeout',
  'clients_leave',
  'slower_than_clients',
  'clients_leave_now',
  'rate_setting',
  'max_rate_setting',
  'in_flight_setting',
  'queue_setting',
]);
/** A latency that is so many times the usual one has another reason than chance. */
const MUCH_SLOWER = 4;
export const RECENT_MS = 15_000;
const NO_COUNTER = { metric: '', selector: {} };
/** A larger share is described as every call. */
const EVERY = 0.9;
const HALF = 0.5;
/** With more than this share of the attempts, refusals hold the queue. */
const REFUSED_SHARE = 0.25;
const REJECTION = /_NOT_ALLOWED$|^BAD_REQUEST$|^HEADERS_TOO_LARGE$|^REQUEST_TIMEOUT$/;
const SHED = 'full|timeout|expected_wait|quota';
const LEFT_QUEUE = {
  moment: 'their turn',
  than: ' than the queue does (`SIDECAR_QUEUE_TIMEOUT_MS`), or send fewer calls',
};
const INTERCEPTED = /^(?:403|406|407|451|503)$/;
const OF_OTHER_ROUTES =
  'The same token is accepted for other routes: ask the partner whether this client may use this API, and which audience or scope it needs.';
/** While a token is held again, of the failures there are the requests alone. */
const TOKEN_IS_BACK = {
  of: '',
  failure: 'requests failed for want of a token',
  advice: 'See the failures of the token endpoint under Recent events.',
};

export function listSymptoms(inputs: VerdictInputs, windowMs: number): readonly Symptom[] {
  const { samples, throttles, pending } = inputs;
  const served = samples.increaseBy('route', 'requests_total', windowMs).keys();
  const routes = [...new Set([...served, ...pending.map(({ route }) => route)])];
  // An idle throttle that none of its routes uses would have the calls of all routes for its own.
  const active = throttles.filter((throttle) => hasRequests(throttle, samples, windowMs));
  // A throttle that routes share has a name of its own, and they have none.
  const hasShared = routes.some((route) => throttles.every((throttle) => throttle.route !== route));
  const isShared = ({ route }: ThrottleState): boolean => hasShared && !routes.includes(route);
  const findThrottle = (route: string): ThrottleState | undefined =>
    active.find((throttle) => throttle.route === route) ?? active.find(isShared) ?? throttles[0];
  const known = new Map<string | null, RouteFacts>();
  const readFacts = (route: string | null, throttle: ThrottleState | undefined): RouteFacts => {
    const facts = known.get(route) ?? readRouteFacts(inputs, route, throttle, windowMs);
    // A throttle and the route of its name are one.
    if (route === throttle?.route) known.set(route, facts);
    return facts;
  };
  const findings: readonly Finding[] = [
    ...listTokens(inputs, windowMs),
    // Among equals the first is shown: what holds the queue, before that its clients leave.
    ...active.flatMap((throttle) => {
      const facts = readFacts(isShared(throttle) ? null : throttle.route, throttle);
      return [...listQueue(throttle, facts, inputs, windowMs), describeUnread(throttle, facts)];
    }),
    ...routes.flatMap((route) => {
      const throttle = findThrottle(route);
      const facts = readFacts(route, throttle);
      return [
        ...listFaults(facts, inputs, windowMs),
        ...listForeign(facts, inputs, windowMs),
        ...listStatuses(facts, throttle, inputs, windowMs),
        ...listRejections(facts),
        ...listSlow(facts, inputs),
      ];
    }),
    ...listStall(samples),
  ];
  const stalled = findStall(samples, windowMs);
  return findings
    .map((finding) => (TIMED.has(finding.cause) ? { ...finding, ...stalled } : finding))
    .map((finding): Symptom => ({ code: finding.cause, failed: 0, delayed: 0, ...finding }))
    .filter(({ failed, delayed, isCertain }) => failed + delayed > 0 || isCertain === true);
}

function listStall(samples: Samples): Finding[] {
  const stalled = findStall(samples, RECENT_MS);
  return stalled === undefined ? [] : [{ ...stalled, ...NO_COUNTER, route: null, isCertain: true }];
}

function hasRequests(throttle: ThrottleState, samples: Samples, windowMs: number): boolean {
  const selector = { route: quotePattern(throttle.route) };
  const count = (metric: string): number => samples.increase(metric, windowMs, selector);
  const isInUse = throttle.queued > 0 || throttle.stalledInFlight > 0;
  return isInUse || count('permits_total') > 0 || count('queue_rejected_total') > 0;
}

/** A credential without a usable token fails every request of its routes. */
function listTokens(inputs: VerdictInputs, windowMs: number): Finding[] {
  const { samples, tokens } = inputs;
  const token = findFailingToken(tokens);
  const [metric, selector] = ['local_replies_total', { code: 'TOKEN_.*' }];
  const failed = samples.increase(metric, windowMs, selector);
  const finding = { cause: 'no_token', route: null, metric, selector, failed } as const;
  if (token?.lastFailure === undefined) return [{ ...finding, code: 'unavailable', values: TOKEN_IS_BACK }];
  const { credential, lastFailure } = token;
  const values = {
    of: tokens.length === 1 ? '' : ` for ${credential}`,
    failure: describeTokenFailure(lastFailure),
    advice: adviseOnTokenFailure(credential, lastFailure, inputs),
  };
  const { outcome: code, detail: words } = lastFailure;
  return [{ ...finding, code, words, isCertain: validForMs(token) <= 0, values }];
}

/** Faults of attempts as far as their requests failed, and attempts that become such a fault. */
function* listFaults(facts: RouteFacts, { samples }: VerdictInputs, windowMs: number): Generator<Finding> {
  const { route, selector, faults, replies, unanswered, unconnected, isHung } = facts;
  const failed = sum([...replies].filter(([code]) => code.startsWith('UPSTREAM_')));
  const failedShare = Math.min(1, failed / Math.max(1, countBroken(facts)));
  const pending: Partial<Record<string, number>> = {
    connect_timeout: unconnected,
    no_response_in_time: isHung ? unanswered : 0,
  };
  for (const cause of new Set([...faults.keys(), ...Object.keys(pending)])) {
    const count = faults.get(cause) ?? 0;
    yield {
      cause: cause as FaultCause,
      route,
      failed: WITH_STATUS.has(cause) ? count : count * failedShare,
      delayed: pending[cause] ?? 0,
      metric: 'upstream_faults_total',
      selector: { ...selector, cause },
      values: { methods: cause === 'reset_after_sent' ? describeBrokenMethods(samples, selector, windowMs) : '' },
    };
  }
}

/** A page among others may be the API's own: it is an incident when nearly all calls of the route get one. */
function* listForeign(
  { route, selector, codes }: RouteFacts,
  { faults, samples }: VerdictInputs,
  windowMs: number,
): Generator<Finding> {
  const metric = 'foreign_responses_total';
  const failed = samples.increase(metric, windowMs, selector);
  const part = Math.min(1, failed / sum([...codes]));
  const isForeign = (fault: LastFault): fault is LastFault & { readonly cause: ForeignCause } =>
    fault.route === route && fault.cause.startsWith('foreign_');
  const last = faults.filter(isForeign).toSorted((one, other) => other.wallAt - one.wallAt)[0];
  if (last === undefined || part < EVERY) return;
  const words = `${last.detail} for ${formatShare(part)} of the calls of route ${last.route}`;
  yield { cause: last.cause, route, failed, words, metric, selector };
}

/** Responses of the upstream that the client got. */
function* listStatuses(
  facts: RouteFacts,
  throttle: ThrottleState | undefined,
  inputs: VerdictInputs,
  windowMs: number,
): Generator<Finding> {
  const { route, selector, codes, insufficientScopes } = facts;
  const all = sum([...codes]);
  const advice = adviseOnUnauthorized(route, inputs);
  const isKnownPath = route !== null && isUnchanged('succeeded', route, inputs);
  let intercepted = facts.faults.get('intercepted') ?? 0;
  const byCause = new Map<CauseName, [code: string, count: number][]>([
    ['scope_missing', [['403', insufficientScopes]]],
  ]);
  for (const [code, total] of codes) {
    const byOthers = Math.min(
      total,
      (code === '403' ? insufficientScopes : 0) + (INTERCEPTED.test(code) ? intercepted : 0),
    );
    if (INTERCEPTED.test(code)) intercepted -= Math.min(intercepted, byOthers);
    const found = causeOfStatus(code, total / all, facts, throttle);
    const cause = found === 'not_found' && isKnownPath ? 'path_not_found' : found;
    if (cause !== undefined) byCause.set(cause, [...(byCause.get(cause) ?? []), [code, total - byOthers]]);
  }
  for (const [cause, counts] of byCause) {
    const [code] = counts.reduce((most, next) => (next[1] > most[1] ? next : most));
    const every = cause === 'client_error' ? findFailingMethod(inputs.samples, selector, code, windowMs) : '';
    yield {
      cause,
      route,
      code,
      failed: sum(counts),
      metric: 'requests_total',
      selector: { ...selector, source: 'upstream', code: counts.map(([each]) => each).join('|') },
      isCertain: every !== '',
      values: { ...describeRefusals(throttle, code), advice, every },
    };
  }
}

function adviseOnUnauthorized(route: string | null, inputs: VerdictInputs): string {
  const { samples, tokens } = inputs;
  const accepted = samples.increaseBy('route', 'upstream_attempts_total', RECENT_MS, { outcome: 'ok' });
  const isOfRoute = route !== null && tokens.length === 1 && [...accepted.keys()].some((other) => other !== route);
  if (isOfRoute) return OF_OTHER_ROUTES;
  const wasAccepted = route !== null && isUnchanged('authorized', route, inputs);
  return [...new Set(tokens.map((token) => adviseOnRejectedToken(token, wasAccepted)))].join(' ');
}

/** The share of the calls that is refused at any rate, and the setting that makes an assumed refusal certain. */
function describeRefusals(throttle: ThrottleState | undefined, code: string) {
  const status = throttle?.assumed?.[0]?.status ?? code;
  return {
    refused: formatShare(throttle?.learned?.refusedShare ?? 0),
    setting: `SIDECAR_THROTTLE_REFUSALS=[{"status":${String(status)}}]`,
  };
}

function causeOfStatus(
  code: string,
  share: number,
  { outcomes }: RouteFacts,
  throttle: ThrottleState | undefined,
): CauseName | undefined {
  const status = Number(code);
  if (status < 400) return undefined;
  const isRefusal = outcomes.has('rate_limited') && throttle?.recentSignals.some((signal) => signal.status === status);
  if (status === 429 || isRefusal === true) return causeOfRefusals(throttle);
  if (throttle?.assumed?.some((one) => one.status === status) === true) return 'likely_rate_limit';
  if (status === 401) return share > HALF ? 'token_refused' : 'partly_unauthorized';
  if (status >= 500) return status === 503 ? 'unavailable' : 'server_error';
  if (share > EVERY && status === 403) return 'forbidden';
  return share > EVERY && status === 404 ? 'not_found' : 'client_error';
}

function causeOfRefusals(throttle: ThrottleState | undefined): CauseName {
  return throttle?.learned?.refusedShare === undefined ? 'rate_limit' : 'random_refusals';
}

/** Requests that the sidecar rejected for what they are. */
function* listRejections({ route, selector, replies }: RouteFacts): Generator<Finding> {
  const metric = 'local_replies_total';
  for (const [code, failed] of replies)
    if (REJECTION.test(code))
      yield { cause: 'request_refused', route, code, failed, metric, selector: { ...selector, code } };
}

/** Slow responses, and clients that did not wait for the end of one. */
function* listSlow(facts: RouteFacts, inputs: VerdictInputs): Generator<Finding> {
  const { route, outcomes, slow, typicalLeftMs, typicalSlowMs, unanswered, isHung } = facts;
  const left = Math.max(0, (outcomes.get('client_left') ?? 0) - facts.brokenOff);
  const metric = 'upstream_attempts_total';
  const responses = countResponses(facts);
  const leftAfter = formatLatency(Math.round(typicalLeftMs / 100) * 100);
  const values = {
    leftAfter,
    moment: `the end of their responses, after about ${leftAfter}`,
    than: ' for its responses; how long the partner takes is not known while no client waits for it',
    typical: formatLatency(Math.max(typicalSlowMs, typicalLeftMs)),
    usual: formatLatency(facts.usualMs),
  };
  const cause = findCauseOfLeaving(facts, left, inputs);
  yield { cause, route, failed: left, values, metric, selector: { ...facts.selector, outcome: 'client_left' } };
  const delayed = Math.max(0, slow - left - countBroken(facts)) + (isHung ? 0 : unanswered);
  if (delayed * 2 >= responses) yield { cause: 'slow', route, delayed, values, metric, selector: facts.selector };
}

/** Clients that leave before any response: the partner has become slow, the clients impatient, or both were so all the time. */
function findCauseOfLeaving(facts: RouteFacts, left: number, inputs: VerdictInputs): CauseName {
  const { route, isHung, leftEarly, typicalLeftMs, usualMs } = facts;
  const wasInTime = route !== null && isUnchanged('answered', route, inputs);
  if (wasInTime && left > 0 && usualMs * MUCH_SLOWER < typicalLeftMs) return 'slower_than_clients';
  if (isHung) return 'no_response_in_time';
  if (leftEarly === 0) return 'slow';
  return wasInTime && left > countResponses(facts) ? 'clients_leave_now' : 'clients_leave';
}

/** Requests that the queue refused, that waited long, that wait now, or that left. */
function* listQueue(
  throttle: ThrottleState,
  facts: RouteFacts,
  inputs: VerdictInputs,
  windowMs: number,
): Generator<Finding> {
  const { samples, wallNow } = inputs;
  const { route, queued, pausedMs } = throttle;
  const selector: Selector = { route: quotePattern(route) };
  const metric = 'queue_rejected_total';
  const shed = { ...selector, reason: SHED };
  const leaving = { ...selector, reason: 'client_left' };
  const isShort = isBurstShed(throttle, samples, windowMs);
  const limiter = isHeldByClients(throttle, facts)
    ? 'unread_responses'
    : findLimiter(throttle, facts, wallNow, isShort);
  const isRefusing = limiter === 'rate_limit' || limiter === 'random_refusals';
  // A queue that is too short shows in what it refuses now: what it refused before had another cause.
  const isPast = limiter === 'queue_setting' && !isShort && samples.increase(metric, PRESENT_MS, shed) === 0;
  const left = samples.increase(metric, windowMs, leaving);
  const isSlow = limiter === 'slow' || limiter === 'no_response_in_time';
  const isLong = isSlow || pausedMs >= 1000 || facts.queuedMs >= NOTABLE_MS || refusesMany(facts);
  const isHeld = limiter !== 'queue_setting' && isLong;
  yield {
    cause: limiter,
    route,
    failed: (isPast ? 0 : samples.increase(metric, windowMs, shed)) + (isHeld ? left + facts.leftEarly : 0),
    delayed: limiter === 'queue_setting' ? 0 : countDelayed(throttle, samples, windowMs),
    isCertain: pausedMs >= 1000 && queued > 0,
    values: describeThrottle(throttle, facts),
    metric: isRefusing ? 'rate_limited_total' : metric,
    selector: isRefusing ? selector : shed,
    beganWallAt: findPauseBegin(throttle),
    words:
      describePause(throttle, wallNow) ?? (limiter === 'declared_limit' ? describeDeclaredUse(throttle) : undefined),
  };
  // Beside what holds the queue, the advice to wait longer helps, too.
  if (!isSlow) yield { cause: 'clients_leave', route, failed: left, metric, selector: leaving, values: LEFT_QUEUE };
}

/** Requests that waited long, and that wait now: a queue that is served within a second delays nothing. */
function countDelayed({ route, queued }: ThrottleState, samples: Samples, windowMs: number): number {
  const selector: Selector = { route: quotePattern(route) };
  const count = (metric: string, overMs: number, more: Selector = {}): number =>
    samples.increase(metric, overMs, { ...selector, ...more });
  const short = count('queue_wait_seconds_bucket', windowMs, { le: LONG_WAIT_SECONDS });
  const waiting = queued > count('permits_total', 1000) ? queued : 0;
  return count('queue_wait_seconds_count', windowMs) - short + waiting;
}

/**
 * Whether the queue was full, although the configured rate was not used up over the window, and by half at most of late: a longer queue would
 * have kept the burst. Where the application calls too fast all the time, only the start of the window is idle.
 */
function isBurstShed({ route, mode, rate }: ThrottleState, samples: Samples, windowMs: number): boolean {
  const count = (metric: string, overMs: number, more: Selector = {}): number =>
    samples.increase(metric, overMs, { route: quotePattern(route), ...more });
  const isUsed = (overMs: number, part: number): boolean =>
    count('permits_total', overMs) >= ((rate * Math.min(overMs, samples.spanMs)) / 1000) * part;
  if (mode !== 'static' || !Number.isFinite(rate) || isUsed(windowMs, EVERY) || isUsed(PRESENT_MS, HALF)) return false;
  const metric = 'queue_rejected_total';
  return count(metric, windowMs, { reason: 'full' }) > count(metric, windowMs, { reason: SHED }) * HALF;
}

/** Places in flight that responses hold because their clients do not read. */
function describeUnread(throttle: ThrottleState, facts: RouteFacts): Finding {
  const { route, queued, stalledInFlight, inFlightLimit } = throttle;
  return {
    cause: 'unread_responses',
    route,
    failed: facts.brokenOff,
    words:
      'a request that waits gets such a place after a second, or after 30 s where calls in flight are limited or throttle.maxStreams are open',
    isCertain: isHeldByClients(throttle, facts) && (queued > 0 || stalledInFlight >= inFlightLimit * EVERY),
    metric: 'responses_broken_off_total',
    selector: facts.selector,
    values: describeThrottle(throttle, facts),
  };
}

function isHeldByClients({ pausedMs }: ThrottleState, { isFullOfUnread, isHung }: RouteFacts): boolean {
  return isFullOfUnread && pausedMs === 0 && !isHung;
}

/** @param isShort the queue was full below the configured rate */
function findLimiter(throttle: ThrottleState, facts: RouteFacts, wallNow: number, isShort: boolean): CauseName {
  const { pausedMs, recentSignals } = throttle;
  const { isHung, isFull, unconnected, outcomes } = facts;
  if (isHung) return 'no_response_in_time';
  if (unconnected > 0 && !outcomes.has('ok')) return 'connect_timeout';
  if (isSlowNow(throttle, facts)) return unconnected > 0 ? 'connect_timeout' : 'slow';
  const isRefused = outcomes.has('rate_limited');
  if (pausedMs === 0 && (facts.replies.has('QUOTA_EXHAUSTED') || findFull(throttle) !== undefined))
    return 'declared_limit';
  const isPaused = isPausedLately(throttle, wallNow);
  if (isPaused && !isRefused && recentSignals[0]?.status === 503) return 'unavailable';
  if (isRefused || isPaused || isKnown(throttle)) return causeOfRefusals(throttle);
  return nameSetting(throttle, isFull, isShort);
}

/** A limit of all calls was learned, or one of an operation whose calls wait. */
function isKnown({ learned, lanes = [] }: ThrottleState): boolean {
  const isOfOperation = lanes.some(({ isConfirmed, queued }) => isConfirmed && queued > 0);
  return isOfOperation || (learned !== undefined && learned.confidence !== 'none');
}

/** The setting that holds calls back. A rate of `auto` without a highest one is the partner's. */
function nameSetting({ rate, mode, maxRate }: ThrottleState, isFull: boolean, isShort: boolean): CauseName {
  if (isShort) return 'queue_setting';
  if (rate === Infinity) return isFull ? 'in_flight_setting' : 'queue_setting';
  if (mode === 'static') return 'rate_setting';
  return maxRate === undefined ? 'rate_limit' : 'max_rate_setting';
}

/** Where all places in flight are taken, the present decides: a median of a minute may still be that of the time before. */
function isSlowNow({ rate, pausedMs, learned }: ThrottleState, facts: RouteFacts): boolean {
  // Where many calls are refused, or none may start, places that are free a moment later are not what requests wait for.
  if (pausedMs > 0 || refusesMany(facts)) return false;
  // What clients do not wait for is not known.
  if (facts.leftEarly > countResponses(facts)) return false;
  if (facts.isFull) return facts.presentMs >= (learned?.kind === 'concurrency' ? SLOW_MS : NOTABLE_MS);
  return rate === Infinity && (facts.typicalSlowMs >= NOTABLE_MS || facts.unanswered > 0);
}

function refusesMany({ outcomes }: RouteFacts): boolean {
  return (outcomes.get('rate_limited') ?? 0) > sum([...outcomes]) * REFUSED_SHARE;
}

function describeThrottle(throttle: ThrottleState, facts: RouteFacts) {
  const { typicalSlowMs, presentMs: latencyMs, brokenOff } = facts;
  const { mode, rate, pausedMs, learned, inFlightLimit, queueMax, stalledResponses, stalledInFlight } = throttle;
  const full = findFull(throttle);
  // Where no limit explains the refusals, the rate in use is none of the partner's.
  const inUse = learned !== undefined && Number.isFinite(learned.rate) ? learned.rate : rate;
  const known = mode === 'auto' && learned?.kind === 'unknown' ? Infinity : inUse;
  return {
    // What one stated pause teaches of a rate is no number to quote.
    rate:
      Number.isFinite(known) && pausedMs < LONG_PAUSE_MS
        ? `: ${mode === 'static' ? '' : 'about '}${formatRoundedRate(known)} requests per second`
        : '',
    limit: full === undefined ? '' : `: ${full.name} (${formatCount(full.calls, 'call')} per ${full.per})`,
    refused: formatShare(learned?.refusedShare ?? 0),
    inFlight: String(inFlightLimit),
    queue: String(queueMax),
    unread:
      stalledResponses > 0
        ? `${formatInteger(stalledResponses)} of them, with ${formatInteger(stalledInFlight)} of ${formatInteger(inFlightLimit)} places in flight`
        : `${formatCount(brokenOff, 'response')} broken off`,
    // None ends: it takes at least as long as the present reaches back.
    typical: formatLatency(Math.max(typicalSlowMs, Math.min(Number.isNaN(latencyMs) ? 0 : latencyMs, PRESENT_MS))),
  };
}
