/** What one route has done in a window, in numbers (pure): symptoms.ts says what they mean. */
import type { PendingAttempt } from '../../exchange/exchange.ts';
import type { FaultCause } from '../../telemetry/events.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import type { Samples } from '../samples/sample-ring.ts';
import { quotePattern, type Selector } from '../samples/samples.ts';

type Places = Pick<ThrottleState, 'inFlight' | 'stalledInFlight' | 'inFlightLimit'>;

export type RouteFacts = ReturnType<typeof readRouteFacts>;

/** A slower response delays its request; a bound of the exposed buckets. */
export const SLOW_MS = 2500;
/** From this latency on, requests that wait for a place in flight wait for the upstream, and clients leave for it. */
export const NOTABLE_MS = 1000;
/** A client that leaves earlier shows nothing about the partner, whose usual responses take that long. */
const PATIENT_MS = 1250;
/** Without any response for this long, the upstream does not respond. */
const HUNG_MS = 5000;
/** Nearly all places: one may be free for a moment. */
const FULL_SHARE = 0.9;
/** Faults of attempts whose response has a status. */
export const WITH_STATUS: ReadonlySet<string> = new Set<FaultCause>(['response_cut', 'intercepted']);
const USUAL_MS = 300_000;
const FEWEST_USUAL = 10;
const NO_PLACES: Places = { inFlight: 0, stalledInFlight: 0, inFlightLimit: Infinity };
const RESPONSES = 'ok|error_status|rate_limited|unauthorized|cut';

/** @param route null: all @param windowMs at most five minutes */
export function readRouteFacts(
  { samples, pending }: { readonly samples: Samples; readonly pending: readonly PendingAttempt[] },
  route: string | null,
  throttle: ThrottleState | undefined,
  windowMs: number,
) {
  const selector: Selector = route === null ? {} : { route: quotePattern(route) };
  const countBy = (label: string, metric: string, more: Selector = {}) =>
    samples.increaseBy(label, metric, windowMs, { ...selector, ...more });
  const isLate = (attempt: PendingAttempt): boolean =>
    samples.now - attempt.startedAt >= SLOW_MS && (route === null || attempt.route === route);
  const late = pending.filter(isLate);
  const sent = late.filter(({ wasSent }) => wasSent);
  const outcomes = countBy('outcome', 'upstream_attempts_total');
  const ended = samples.increase('upstream_attempts_total', HUNG_MS, selector);
  const left = outcomes.get('client_left') ?? 0;
  const { working, ...places } = countPlaces(throttle);
  // Waits are counted by throttle.
  const queue: Selector = throttle === undefined ? {} : { route: quotePattern(throttle.route) };
  const readQueued = (overMs: number): number => samples.quantile('queue_wait_seconds', 0.5, overMs, queue) ?? 0;
  const latencies = readLatencies(samples, selector, windowMs, left);
  const isHung = hasNoResponse(samples, selector, sent, places.isFull ? readQueued(HUNG_MS) : undefined);
  return {
    route,
    selector,
    /** Attempts, by outcome. */
    outcomes,
    /** No response has come since the oldest attempt in flight was sent, or while clients left. */
    isHung,
    ...places,
    /** Requests with a response of the upstream, by status. */
    codes: countBy('code', 'requests_total', { source: 'upstream' }),
    replies: countBy('code', 'local_replies_total'),
    /** Faults of attempts, by cause. */
    faults: countBy('cause', 'upstream_faults_total'),
    insufficientScopes: samples.increase('insufficient_scope_total', windowMs, selector),
    ...latencies,
    /** Attempts whose clients left early, where the upstream responds at all. */
    leftEarly: !isHung && latencies.typicalLeftMs < PATIENT_MS ? left : 0,
    queuedMs: readQueued(windowMs),
    /** What an attempt takes now, by Little's law: attempts in flight, divided by those that end in a second. NaN: none. */
    presentMs: (working * Math.min(HUNG_MS, samples.spanMs)) / ended,
    brokenOff: samples.increase('responses_broken_off_total', windowMs, selector),
    /** Attempts that have waited long for a response, and for a connection. */
    unanswered: sent.length,
    unconnected: late.length - sent.length,
  };
}

/** `isFull`: by calls that the upstream still has to answer. `isFullOfUnread`: some places are held by responses that are not read. */
function countPlaces({ inFlight, stalledInFlight, inFlightLimit }: Places = NO_PLACES) {
  const working = inFlight - stalledInFlight;
  const isFull = working >= inFlightLimit * FULL_SHARE;
  return { working, isFull, isFullOfUnread: !isFull && inFlight >= inFlightLimit * FULL_SHARE };
}

/** @param left how many clients left */
function readLatencies(samples: Samples, selector: Selector, windowMs: number, left: number) {
  const count = (series: string, more: Selector = {}): number =>
    samples.increase(`upstream_duration_seconds_${series}`, windowMs, { ...selector, ...more });
  const quantile = (share: number): number =>
    samples.quantile('upstream_duration_seconds', share, windowMs, selector) ?? 0;
  const attempts = count('count');
  const slow = attempts - count('bucket', { le: String(SLOW_MS / 1000) });
  const medianOfLongest = (number: number): number => quantile(1 - Math.min(1, number / Math.max(1, attempts)) / 2);
  return {
    /** Attempts that took long, those without a response included; and the latency of the middle one. */
    slow,
    // Quick refusals beside them are nothing to compare with.
    typicalSlowMs: slow > 0 ? Math.max(SLOW_MS, medianOfLongest(slow)) : quantile(0.5),
    /** How long the clients waited that left: the median of as many of the longest attempts. */
    typicalLeftMs: left === 0 ? 0 : medianOfLongest(left),
    usualMs: readUsualMs(samples, selector),
  };
}

/**
 * `, for POST only` where other methods get responses. Calls that are not idempotent are not repeated: where others were, their resets may
 * have been repaired.
 */
export function describeBrokenMethods(samples: Samples, selector: Selector, windowMs: number): string {
  if (samples.increase('retries_total', windowMs, { reason: 'reset' }) > 0) return '';
  const countMethods = (more: Selector) =>
    samples.increaseBy('method', 'requests_total', windowMs, { ...selector, ...more });
  const [method, ...others] = countMethods({ code: '502', source: 'sidecar' }).keys();
  const served = countMethods({ source: 'upstream' });
  const isAlone = method !== undefined && others.length === 0 && !served.has(method) && served.size > 0;
  return isAlone ? `, for ${method} only` : '';
}

/** A method that had successes within five minutes, and of whose calls nearly all get this status now. */
export function findFailingMethod(samples: Samples, selector: Selector, code: string, windowMs: number): string {
  const countMethods = (overMs: number, more: Selector) =>
    samples.increaseBy('method', 'requests_total', overMs, { ...selector, ...more });
  const [all, before] = [countMethods(windowMs, {}), countMethods(USUAL_MS, { code: '2..' })];
  const isFailing = ([method, count]: readonly [string, number]): boolean =>
    count >= 3 && count >= (all.get(method) ?? 0) * FULL_SHARE && (before.get(method) ?? 0) >= FEWEST_USUAL;
  const found = [...countMethods(windowMs, { code })].find(isFailing);
  return found === undefined ? '' : `: every ${found[0]}`;
}

/**
 * No response comes while attempts wait for one, or while clients leave after a while, which hides how long it would have taken.
 * @param queuedMs for a place in flight; undefined when places are free
 */
function hasNoResponse(
  samples: Samples,
  selector: Selector,
  sent: readonly PendingAttempt[],
  queuedMs: number | undefined,
): boolean {
  const count = (outcome: string): number =>
    samples.increase('upstream_attempts_total', HUNG_MS, { ...selector, outcome });
  if (count(RESPONSES) > 0) return false;
  if (sent.some(({ startedAt }) => samples.now - startedAt >= HUNG_MS)) return true;
  const quantile = (share: number): number =>
    samples.quantile('upstream_duration_seconds', share, HUNG_MS, selector) ?? 0;
  // Where all places are taken, requests wait in the queue for responses, too.
  const waitMs = queuedMs === undefined ? 0 : queuedMs + quantile(0.5);
  return count('client_left') > 0 && Math.max(quantile(0.95), waitMs) >= PATIENT_MS;
}

/** The median latency of the responses of five minutes; those that no client waited for took longer. NaN: there are too few. */
function readUsualMs(samples: Samples, selector: Selector): number {
  const attempts = samples.increase('upstream_duration_seconds_count', USUAL_MS, selector);
  const left = samples.increase('upstream_attempts_total', USUAL_MS, { ...selector, outcome: 'client_left' });
  const share = (attempts - left) / attempts / 2;
  if (attempts - left < FEWEST_USUAL) return NaN;
  return samples.quantile('upstream_duration_seconds', share, USUAL_MS, selector) ?? NaN;
}

export function countResponses({ outcomes }: RouteFacts): number {
  return (outcomes.get('ok') ?? 0) + (outcomes.get('error_status') ?? 0);
}

export function countBroken({ faults }: RouteFacts): number {
  return sum([...faults].filter(([cause]) => !WITH_STATUS.has(cause)));
}

export function sum(counts: readonly (readonly [string, number])[]): number {
  return counts.reduce((total, [, count]) => total + count, 0);
}
