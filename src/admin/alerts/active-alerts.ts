/**
 * The alerts whose conditions hold now (pure): the same expressions as in deploy/prometheus, from the counters of this process and the
 * states of its parts. Prometheus sends an alert only after its `for`; here it holds from the first second.
 */
import type { FleetConnectionState } from '../../fleet/redis/connection-health.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import type { TokenState } from '../../token/token.ts';
import type { Samples } from '../samples/samples.ts';
import { quotePattern } from '../samples/selector.ts';
import { AlertCounters } from './alert-counters.ts';
import type { RouteCounter } from './alert-counters.ts';
import { ALERT_RULES } from './alert-rules.ts';
import type { AlertId, AlertSeverity } from './alert-rules.ts';

export interface ActiveAlert {
  readonly id: AlertId;
  /** The route or the credential; undefined when the alert is about the process. */
  readonly subject: string | undefined;
  /** A share from 0 to 1, a number of events or seconds, as the alert's expression gives it. */
  readonly value: number;
}

export interface AlertInputs {
  readonly samples: Samples;
  readonly tokens: readonly TokenState[];
  readonly throttles: readonly Pick<ThrottleState, 'route' | 'queued' | 'queueMax'>[];
  /** Undefined without a fleet. */
  readonly fleet?: Pick<FleetConnectionState, 'state' | 'connected'> | undefined;
}

/** Critical ones first, then in the order of `ALERT_RULES`. */
export function evaluateAlerts(inputs: AlertInputs): readonly ActiveAlert[] {
  const active = [
    ...inputs.tokens.flatMap((token) => evaluateToken(token, inputs)),
    ...inputs.throttles.flatMap((throttle) => evaluateRoute(throttle, inputs)),
    ...evaluateProcess(inputs),
  ];
  const ids = Object.keys(ALERT_RULES) as AlertId[];
  const rank = ({ id }: ActiveAlert): number => ids.indexOf(id) + (severityOf(id) === 'critical' ? 0 : ids.length);
  return active.sort((one, other) => rank(one) - rank(other));
}

function severityOf(id: AlertId): AlertSeverity {
  return ALERT_RULES[id].severity;
}

/** @param value false: the condition does not hold */
function when(id: AlertId, subject: string | undefined, value: number | false): ActiveAlert[] {
  return value === false ? [] : [{ id, subject, value }];
}

function evaluateToken(token: TokenState, { samples }: AlertInputs): ActiveAlert[] {
  const counters = new AlertCounters(samples);
  const { credential, consecutiveFailures, missingScopes } = token;
  const { clientRejected, tokenExpiring, tokenEndpointFailing, rotationFailing, scopeMissing } = ALERT_RULES;
  const leftSeconds = token.status === 'none' ? 0 : (token.validForMs ?? 0) / 1000;
  const { failures, failingBelowSeconds, unchangedBelowSeconds, unchangedMs } = tokenExpiring.limits;
  const isExpiring =
    (leftSeconds < failingBelowSeconds && consecutiveFailures > failures) ||
    (leftSeconds < unchangedBelowSeconds && counters.tokenAgeMs(credential) >= unchangedMs);
  const rejections = counters.countCredential('rejections', credential, clientRejected.limits.windowMs);
  const rotations = counters.countCredential('rotationFailures', credential, rotationFailing.limits.windowMs);
  return [
    ...when('tokenMissing', credential, leftSeconds <= 0 && consecutiveFailures),
    ...when('clientRejected', credential, rejections > clientRejected.limits.rejections && rejections),
    ...when('tokenExpiring', credential, leftSeconds > 0 && isExpiring && leftSeconds),
    ...when(
      'tokenEndpointFailing',
      credential,
      consecutiveFailures > tokenEndpointFailing.limits.failures && consecutiveFailures,
    ),
    ...when('rotationFailing', credential, rotations > rotationFailing.limits.failures && rotations),
    ...when('scopeMissing', credential, missingScopes.length > scopeMissing.limits.missing && missingScopes.length),
  ];
}

function evaluateRoute(
  { route, queued, queueMax }: AlertInputs['throttles'][number],
  inputs: AlertInputs,
): ActiveAlert[] {
  const { samples } = inputs;
  const counters = new AlertCounters(samples);
  const count = (counter: RouteCounter, windowMs: number): number => counters.countRoute(counter, route, windowMs);
  const ofRoute = { route: quotePattern(route) };
  const { requestsShed, queueSaturated, queueSlow, paused, rateLimited, responsesCut, scopeMissing } = ALERT_RULES;
  const shed = count('shed', requestsShed.limits.windowMs);
  const shedShare = share(shed, shed + count('permits', requestsShed.limits.windowMs));
  const waits = samples.increase('queue_wait_seconds_count', queueSlow.limits.windowMs, ofRoute);
  const quick = samples.increase('queue_wait_seconds_bucket', queueSlow.limits.windowMs, { ...ofRoute, le: '10' });
  const slowShare = share(waits - quick, waits);
  const pausedShare = samples.average('paused', paused.limits.windowMs, ofRoute) ?? 0;
  const limitedShare = share(
    count('rateLimited', rateLimited.limits.windowMs),
    count('permits', rateLimited.limits.windowMs),
  );
  const isLimitedOften = count('rateLimited', rateLimited.limits.countWindowMs) > rateLimited.limits.count;
  const cut = count('cut', responsesCut.limits.windowMs);
  const cutShare = share(cut, count('requests', responsesCut.limits.windowMs));
  const refusals = count('scopeRefusals', scopeMissing.limits.windowMs);
  return [
    ...evaluateFailures('requestsFailing', 'failed', route, count),
    ...evaluateFailures('upstreamErrors', 'upstreamErrors', route, count),
    ...when('requestsShed', route, shedShare > requestsShed.limits.share && shedShare),
    ...when('queueSaturated', route, share(queued, queueMax) > queueSaturated.limits.share && share(queued, queueMax)),
    // The p95 is above a limit when more than a twentieth is.
    ...when('queueSlow', route, slowShare > 0.05 && slowShare),
    ...when('paused', route, pausedShare > paused.limits.share && pausedShare),
    ...when('rateLimited', route, limitedShare > rateLimited.limits.share && isLimitedOften && limitedShare),
    ...when('responsesCut', route, cut > responsesCut.limits.count && cutShare > responsesCut.limits.share && cut),
    ...when('scopeMissing', route, refusals > scopeMissing.limits.refusals && refusals),
  ];
}

/** A share of the requests, and a least number of them: one failure at low traffic is no trend. */
function evaluateFailures(
  id: 'requestsFailing' | 'upstreamErrors',
  counter: 'failed' | 'upstreamErrors',
  route: string,
  count: (counter: RouteCounter, windowMs: number) => number,
): ActiveAlert[] {
  const { limits } = ALERT_RULES[id];
  const failed = count(counter, limits.windowMs);
  const failedShare = share(failed, count('requests', limits.windowMs));
  const isTrend = failed > (limits.perSecond * limits.windowMs) / 1000;
  return when(id, route, failedShare > limits.share && isTrend && failedShare);
}

function evaluateProcess({ samples, fleet }: AlertInputs): ActiveAlert[] {
  const counters = new AlertCounters(samples);
  const { upstreamUnreachable, tokenNotAccepted, retryBudgetExhausted, reloadFailed } = ALERT_RULES;
  const { windowMs } = upstreamUnreachable.limits;
  const faultShare = share(
    counters.countProcess('upstreamFaults', windowMs),
    counters.countProcess('attempts', windowMs),
  );
  const isTrend = counters.countProcess('withoutResponse', windowMs) > upstreamUnreachable.limits.attempts;
  const unauthorizedShare = share(
    counters.countProcess('unauthorized', tokenNotAccepted.limits.windowMs),
    counters.countProcess('attempts', tokenNotAccepted.limits.windowMs),
  );
  const retriesRefused = counters.countProcess('retriesRefused', retryBudgetExhausted.limits.windowMs);
  const reloadsFailed = counters.countProcess('reloadsFailed', reloadFailed.limits.windowMs);
  return [
    ...when(
      'upstreamUnreachable',
      undefined,
      faultShare > upstreamUnreachable.limits.share && isTrend && Math.min(1, faultShare),
    ),
    ...when('tokenNotAccepted', undefined, unauthorizedShare > tokenNotAccepted.limits.share && unauthorizedShare),
    ...when('retryBudgetExhausted', undefined, retriesRefused > retryBudgetExhausted.limits.count && retriesRefused),
    ...when('reloadFailed', undefined, reloadsFailed > reloadFailed.limits.failures && reloadsFailed),
    ...when('fleetDisconnected', undefined, fleet !== undefined && !fleet.connected && fleet.state !== 'degraded' && 1),
    ...when('fleetDegraded', undefined, fleet?.state === 'degraded' && 1),
  ];
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
