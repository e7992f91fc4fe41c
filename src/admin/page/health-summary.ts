/**
 * The summary at the top of the status page: the most severe problem, or that all is well (pure). Its level is that of the alerts in
 * deploy/prometheus whose conditions hold; advice.ts says what to do.
 */
import { ALERTS } from '../alerts/alert-table.ts';
import type { AlertName } from '../alerts/alert-table.ts';
import { formatHeadline } from '../alerts/headline.ts';
import { isTokenPathWrong } from './advice.ts';
import type { Status } from '../status/status-shape.ts';
import type { CodeCount, LastMinute } from '../samples/traffic.ts';
import { formatCount, formatInteger, formatLatency, formatRoundedRate, formatShare } from './format.ts';

export interface HealthSummary {
  /** `bad`: the condition of a critical alert holds. `wait`: a warning's, or requests are delayed. */
  readonly level: 'good' | 'wait' | 'bad';
  /** The kind of the problem. Screen readers announce a new kind, not a new text. */
  readonly kind: string;
  readonly headline: string;
  readonly detail: string;
}

export interface HealthSummaryInputs {
  readonly status: Status;
  readonly lastMinute: LastMinute;
  /** Of the current and the previous minute. */
  readonly codes: readonly CodeCount[];
  /** Of the last five minutes. */
  readonly allCodes: readonly CodeCount[];
}

type ActiveAlert = Status['alerts'][number];

/** Fewer requests than this show no trend. */
const MIN_REQUESTS = 3;
/** As long as the alert on a missing token waits, a first token is only being requested. */
const MAX_START_SECONDS = ALERTS.BearerSidecarTokenMissing.forMs / 1000;

/** The first check that applies, the most severe first. A critical alert is never below `bad`, a warning never `good`. */
export function evaluateHealth(inputs: HealthSummaryInputs): HealthSummary {
  const { alerts, degraded } = inputs.status;
  const hasWarning = alerts.length > 0 || degraded.length > 0;
  return (
    evaluateDrain(inputs) ??
    evaluateTokens(inputs) ??
    evaluateFailures(inputs) ??
    evaluateAlerts(inputs, 'critical') ??
    evaluateProposals(inputs) ??
    evaluateLastMinute(inputs) ??
    evaluateLimits(inputs) ??
    evaluateClients(inputs) ??
    evaluateAlerts(inputs, 'warning') ?? {
      level: hasWarning ? 'wait' : 'good',
      kind: hasWarning ? 'degraded' : 'good',
      ...describeTraffic(inputs),
    }
  );
}

function evaluateDrain({ status }: HealthSummaryInputs): HealthSummary | undefined {
  if (!status.draining) return undefined;
  const left = status.throttles.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0);
  const detail = `${left === 0 ? 'No request' : formatCount(left, 'request')} in progress; new requests are rejected.`;
  return { level: 'wait', kind: 'draining', headline: 'Shutting down', detail };
}

function evaluateTokens({ status }: HealthSummaryInputs): HealthSummary | undefined {
  const { tokens } = status;
  const without = tokens.filter((token) => token.status === 'none' || (token.validForSeconds ?? 0) <= 0);
  const worst = without.find(({ lastFailure }) => lastFailure !== null) ?? without[0];
  if (worst === undefined) return undefined;
  const suffix = tokens.length === 1 ? '' : ` for ${worst.credential}`;
  const { lastFailure } = worst;
  if (lastFailure === null)
    return {
      level: status.uptimeSeconds < MAX_START_SECONDS ? 'wait' : 'bad',
      kind: 'starting',
      headline: `Starting: requesting the first token${suffix}`,
      detail: 'Requests wait for the token.',
    };
  const others = tokens.length > without.length ? ' Routes with other credentials work.' : '';
  return {
    level: 'bad',
    kind: `no-token ${lastFailure.outcome}`,
    headline: `No token${suffix}: ${describeTokenFailure(lastFailure)}`,
    detail: `Last failure: ${endSentence(lastFailure.detail)} Requests get an error response from the sidecar.${others}`,
  };
}

function describeTokenFailure(failure: { readonly outcome: string; readonly detail: string }): string {
  const { outcome, detail } = failure;
  // First: a server may explain its 404 with an error code.
  if (isTokenPathWrong(failure)) return 'the token endpoint does not exist at this address (404)';
  const error = outcome === 'rejected' ? /error "([^"]+)"/.exec(detail)?.[1] : undefined;
  if (error === 'invalid_client') return 'client authentication failed (invalid_client)';
  if (error !== undefined) return `the authorization server rejects the request (${error})`;
  if (/^auth\.\w+: the file /.test(detail)) return 'a file of the client cannot be used';
  if (outcome === 'rejected') return 'the authorization server rejects the request';
  return outcome === 'malformed' ? 'the token endpoint sends invalid responses' : 'the token endpoint is not available';
}

/** The critical alerts on requests, with the most frequent failure. */
function evaluateFailures({ status, lastMinute, allCodes }: HealthSummaryInputs): HealthSummary | undefined {
  const unreachable = findAlert(status, 'BearerSidecarUpstreamUnreachable');
  if (unreachable !== undefined)
    return {
      ...{ level: 'bad', kind: 'unreachable', headline: 'The upstream is unreachable' },
      detail: `${formatShare(unreachable.value)} of the attempts in the last 5 minutes got no response.`,
    };
  const failing = findAlert(status, 'BearerSidecarRequestsFailing');
  if (failing === undefined) return undefined;
  const worst = findMostFrequent(allCodes.filter(({ code }) => isFailure(code)));
  const recent = allCodes.filter(({ code }) => isFailure(code)).reduce((sum, { count }) => sum + count, 0);
  const now =
    lastMinute.requests > 0 && lastMinute.requests === lastMinute.ok ? ' None failed in the last minute.' : '';
  return {
    ...{ level: 'bad', kind: worst?.code === 401 ? 'token-refused' : 'requests-failing' },
    headline: `${formatShare(failing.value)} of the requests fail${describeOnRoute(status, failing)}: ${describeCause(worst)}`,
    detail: `${formatCount(recent, 'request')} of the last 5 minutes got 401, 429 or 5xx.${now}`,
  };
}

function describeCause(worst: CodeCount | undefined): string {
  if (worst === undefined) return 'see Recent calls';
  if (worst.source === 'sidecar') return `the sidecar responds ${worst.code}`;
  return worst.code === 401 ? 'the upstream rejects the token (401)' : `the upstream responds ${worst.code}`;
}

/** The first alert of the severity. */
function evaluateAlerts(inputs: HealthSummaryInputs, severity: ActiveAlert['severity']): HealthSummary | undefined {
  const alert = inputs.status.alerts.find((active) => active.severity === severity);
  if (alert === undefined) return undefined;
  return {
    ...{ level: severity === 'critical' ? 'bad' : 'wait', kind: alert.name },
    headline: `${formatHeadline(alert.name, alert.value)}${describeOnRoute(inputs.status, alert)}`,
    detail: describeTraffic(inputs).detail,
  };
}

function describeOnRoute({ throttles, tokens }: Status, { subject }: ActiveAlert): string {
  if (subject === null || (throttles.length === 1 && tokens.length === 1)) return '';
  return ` (${subject})`;
}

function findAlert({ alerts }: Status, name: AlertName): ActiveAlert | undefined {
  return alerts.find((alert) => alert.name === name);
}

/** As the alerts count it: 401, 429 and 5xx. */
function isFailure(code: number): boolean {
  return code === 401 || code === 429 || (code >= 500 && code < 600);
}

/** Errors that are likely refusals for the rate, as far as they go on. */
function evaluateProposals({ status, codes }: HealthSummaryInputs): HealthSummary | undefined {
  for (const { route, refusalProposals } of status.throttles)
    for (const proposal of refusalProposals) {
      if (countCodes(codes, (code) => code === proposal.status) < MIN_REQUESTS) continue;
      return {
        ...{ level: 'wait', kind: 'refusal-proposal' },
        headline: `Likely rate limited: the upstream refuses calls with ${proposal.status}${describeRoute(status, route)}`,
        detail: `The application gets these responses.`,
      };
    }
  return undefined;
}

/** Most of the last minute, before the share of five minutes is above the threshold of the alert. */
function evaluateLastMinute({ codes, lastMinute }: HealthSummaryInputs): HealthSummary | undefined {
  const { requests, faults, ok, clientErrors, serverErrors, sent } = lastMinute;
  const responses = ok + clientErrors + serverErrors;
  if (faults >= MIN_REQUESTS && faults > responses / 2)
    return {
      ...{ level: 'wait', kind: 'unreachable', headline: 'The upstream does not respond' },
      detail: `${formatInteger(faults)} of ${formatCount(Math.max(sent, faults), 'attempt')} in the last minute got no response.`,
    };
  const failed = codes.filter(({ code }) => isFailure(code));
  const count = failed.reduce((sum, next) => sum + next.count, 0);
  if (count >= MIN_REQUESTS && count > codes.reduce((sum, next) => sum + next.count, 0) / 2)
    return {
      ...{ level: 'wait', kind: 'requests-failing' },
      headline: `Most requests of the last minutes fail: ${describeCause(findMostFrequent(failed))}`,
      detail: `${formatInteger(count)} of them got 401, 429 or 5xx; ${formatCount(requests, 'request')} in the last minute.`,
    };
  return undefined;
}

function evaluateLimits({ status, lastMinute }: HealthSummaryInputs): HealthSummary | undefined {
  const queueing = status.throttles.filter(({ queued }) => queued > 0);
  const paused = status.throttles.find((throttle) => throttle.pausedSeconds === null || throttle.pausedSeconds >= 1);
  const queued = queueing.reduce((sum, throttle) => sum + throttle.queued, 0);
  const waiting = queued === 1 ? '1 request waits' : `${formatInteger(queued)} requests wait`;
  if (paused !== undefined && (paused.queued > 0 || lastMinute.refused > 0)) {
    const [signal] = paused.recentSignals;
    const cause = signal?.stated === true ? 'stated by the upstream' : 'after a rate-limit response';
    return {
      ...{ level: 'wait', kind: 'limits' },
      headline: `Rate limited: paused, ${cause}`,
      detail: `${waiting}${describeRoute(status, paused.route)} and will be sent after the pause.`,
    };
  }
  // A request that leaves the queue at once counts as queued, too; the summary must not change with each.
  const slow = queueing.find(({ rate, queued: waiting }) => rate !== null && waiting >= rate / 2);
  if (slow === undefined || slow.rate === null) return undefined;
  const limiter = slow.mode === 'static' ? 'the configuration allows' : 'the upstream allows about';
  return {
    ...{ level: 'wait', kind: 'limits' },
    headline: `Rate limited: ${limiter} ${formatRoundedRate(slow.learned?.rate ?? slow.rate)} requests per second`,
    detail: `Requests are sent at that rate; ${waiting}${describeRoute(status, slow.route)}${describeLocalRefusals(lastMinute)}.`,
  };
}

function describeLocalRefusals({ own }: LastMinute): string {
  return own === 0 ? '' : `, and the sidecar rejected ${formatInteger(own)} in the last minute`;
}

function evaluateClients({ lastMinute, codes }: HealthSummaryInputs): HealthSummary | undefined {
  const { requests, own, clientErrors, ok, serverErrors } = lastMinute;
  if (own >= MIN_REQUESTS && own > requests / 2)
    return {
      ...{ level: 'wait', kind: 'refused-here' },
      headline: 'The sidecar rejects most requests',
      detail: `${formatInteger(own)} of ${formatCount(requests, 'request')} in the last minute; the recent events show why.`,
    };
  const responses = ok + clientErrors + serverErrors;
  if (clientErrors < MIN_REQUESTS || clientErrors <= responses / 2) return undefined;
  return {
    ...{ level: 'wait', kind: 'client-errors' },
    headline: `Most requests get a client error (${findMostFrequentCode(codes, 400)})`,
    detail: `${formatInteger(clientErrors)} of ${formatCount(responses, 'response')} in the last minute were 4xx: check the requests of the application.`,
  };
}

function describeTraffic({ status, lastMinute }: HealthSummaryInputs): Pick<HealthSummary, 'headline' | 'detail'> {
  const { requests, own, serverErrors, clientErrors, refused, p50Ms } = lastMinute;
  const warnings = status.degraded.length === 0 ? '' : ', with warnings';
  if (requests === 0)
    return { headline: `Ready${warnings}`, detail: 'A token is held; there were no requests in the last minute.' };
  const failed = own + serverErrors;
  const clientShare = clientErrors === 0 ? '' : `, ${formatCount(clientErrors, 'client error')} (4xx)`;
  const limited = refused === 0 ? '' : `; ${formatInteger(refused)} rate limited`;
  return {
    headline: `Healthy${warnings}`,
    detail: `${formatCount(requests, 'request')} in the last minute, p50 ${formatLatency(p50Ms)}; ${formatInteger(failed)} failed${clientShare}${limited}.`,
  };
}

function describeRoute({ throttles }: Status, route: string): string {
  return throttles.length === 1 ? '' : ` on ${route}`;
}

/** Undefined without codes. */
function findMostFrequent(codes: readonly CodeCount[]): CodeCount | undefined {
  return codes.reduce<CodeCount | undefined>(
    (most, next) => (most === undefined || next.count > most.count ? next : most),
    undefined,
  );
}

/** The most frequent upstream status in the class that starts at `from`, such as 500. */
function findMostFrequentCode(codes: readonly CodeCount[], from: number): number {
  const candidates = codes.filter(({ code, source }) => source === 'upstream' && code >= from && code < from + 100);
  return candidates.reduce((most, next) => (next.count > most.count ? next : most), { code: from, count: 0 }).code;
}

function countCodes(codes: readonly CodeCount[], matches: (code: number) => boolean): number {
  return codes.reduce((sum, { code, source, count: n }) => sum + (source === 'upstream' && matches(code) ? n : 0), 0);
}

function endSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
