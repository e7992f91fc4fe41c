/** What one route has done in a window, in numbers (pure): symptoms.ts says what they mean. */
import type { PendingAttempt } from '../../exchange/exchange.ts';
import type { Samples, Selector } from '../samples/samples.ts';
import { quotePattern } from '../samples/selector.ts';

type Counts = ReadonlyMap<string, number>;

export interface RouteFacts {
  /** Null: all routes. */
  readonly route: string | null;
  /** Selects its series. */
  readonly selector: Selector;
  /** Requests with a response of the upstream, by status. */
  readonly codes: Counts;
  /** Local replies, by code. */
  readonly replies: Counts;
  /** Attempts, by outcome. */
  readonly outcomes: Counts;
  /** Faults of attempts, by cause. */
  readonly faults: Counts;
  /** Requests refused for a missing scope. */
  readonly scopeRefusals: number;
  /** Attempts that took long, those without a response included; and the latency of the middle one, milliseconds. */
  readonly slow: number;
  readonly typicalSlowMs: number;
  /** Of all attempts. */
  readonly typicalMs: number;
  /** Attempts that have waited long for a response, and for a connection. */
  readonly unanswered: number;
  readonly unconnected: number;
  /** No response has come since the oldest attempt in flight was sent, or while clients left. */
  readonly isHung: boolean;
}

/** A slower response delays its request; a bound of the exposed buckets. */
const SLOW_MS = 2500;
/** From this latency on, requests that wait for a place in flight wait for the upstream, and clients leave for it. */
export const NOTABLE_MS = 1000;
/** Without any response for this long, the upstream does not respond. */
const HUNG_MS = 5000;
const RESPONSES = 'ok|error_status|rate_limited|unauthorized|cut';

/**
 * @param route null: all
 * @param windowMs at most five minutes
 */
export function readRouteFacts(
  samples: Samples,
  pending: readonly PendingAttempt[],
  route: string | null,
  windowMs: number,
): RouteFacts {
  const selector: Selector = route === null ? {} : { route: quotePattern(route) };
  const count = (metric: string, more: Selector = {}): number =>
    samples.increase(metric, windowMs, { ...selector, ...more });
  const countBy = (label: string, metric: string, more: Selector = {}): Counts =>
    samples.increaseBy(label, metric, windowMs, { ...selector, ...more });
  const quantile = (share: number): number =>
    samples.quantile('upstream_duration_seconds', share, windowMs, selector) ?? 0;
  const isLate = (attempt: PendingAttempt): boolean =>
    samples.now - attempt.startedAt >= SLOW_MS && (route === null || attempt.route === route);
  const late = pending.filter(isLate);
  const sent = late.filter(({ wasSent }) => wasSent);
  const oldestAt = sent.reduce((oldest, { startedAt }) => Math.min(oldest, startedAt), Infinity);
  const responseAt = samples.lastGrowthAt('upstream_attempts_total', { ...selector, outcome: RESPONSES });
  // Clients that leave after a while hide how long it would have taken.
  const isLeft = count('upstream_attempts_total', { outcome: 'client_left' }) > 0 && quantile(0.95) >= NOTABLE_MS;
  const silentSince = isLeft ? Math.min(oldestAt, samples.now - HUNG_MS) : oldestAt;
  const attempts = count('upstream_duration_seconds_count');
  const slow = attempts - count('upstream_duration_seconds_bucket', { le: String(SLOW_MS / 1000) });
  return {
    ...{ route, selector },
    codes: countBy('code', 'requests_total', { source: 'upstream' }),
    replies: countBy('code', 'local_replies_total'),
    outcomes: countBy('outcome', 'upstream_attempts_total'),
    faults: countBy('cause', 'upstream_faults_total'),
    scopeRefusals: count('insufficient_scope_total'),
    slow,
    // Quick refusals beside them are nothing to compare with.
    typicalSlowMs: Math.max(SLOW_MS, quantile(1 - slow / 2 / Math.max(1, attempts))),
    typicalMs: quantile(0.5),
    unanswered: sent.length,
    unconnected: late.length - sent.length,
    isHung: samples.now - silentSince >= HUNG_MS && (responseAt ?? -Infinity) < silentSince,
  };
}
