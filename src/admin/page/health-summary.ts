/** The summary at the top of the status page: the most severe problem, or that all is well (pure). */
import type { LastMinute } from '../history/history.ts';
import type { CodeCount } from '../history/minutes.ts';
import type { Status } from '../status/status-shape.ts';
import { formatCount, formatInteger, formatLatency, formatRoundedRate } from './format.ts';

export interface HealthSummary {
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
}

/** Fewer requests than this show no trend. */
const MIN_REQUESTS = 3;

/** The first check that applies, the most severe first. */
export function evaluateHealth(inputs: HealthSummaryInputs): HealthSummary {
  return (
    evaluateDrain(inputs) ??
    evaluateTokens(inputs) ??
    evaluateProposals(inputs) ??
    evaluateUpstream(inputs) ??
    evaluateLimits(inputs) ??
    evaluateClients(inputs) ?? {
      level: inputs.status.degraded.length === 0 ? 'good' : 'wait',
      kind: inputs.status.degraded.length === 0 ? 'good' : 'degraded',
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
      level: 'wait',
      kind: 'starting',
      headline: `Starting: requesting the first token${suffix}`,
      detail: 'Requests wait for the token.',
    };
  const others = tokens.length > without.length ? ' Routes with other credentials work.' : '';
  return {
    level: 'bad',
    kind: `no-token ${lastFailure.outcome}`,
    headline: `No token${suffix}: ${describeTokenFailure(lastFailure)}`,
    detail: `${toSentence(lastFailure.detail)}${describeAdvice(lastFailure.detail)} Requests get an error response from the sidecar.${others}`,
  };
}

function describeAdvice(detail: string): string {
  return detail.includes('invalid_client') ? ' Check the client id and the client secret.' : '';
}

function describeTokenFailure({ outcome, detail }: { readonly outcome: string; readonly detail: string }): string {
  // First: a server may explain its 404 with an error code.
  if (detail.includes(', there is no token endpoint at '))
    return 'there is no token endpoint at the configured path (404)';
  const error = outcome === 'rejected' ? /error "([^"]+)"/.exec(detail)?.[1] : undefined;
  if (error === 'invalid_client') return 'client authentication failed (invalid_client)';
  if (error !== undefined) return `the authorization server rejects the request (${error})`;
  if (/^auth\.\w+: the file /.test(detail)) return 'a file of the client cannot be used';
  if (outcome === 'rejected') return 'the authorization server rejects the request';
  return outcome === 'malformed' ? 'the token endpoint sends invalid responses' : 'the token endpoint is not available';
}

/** Errors that are likely refusals for the rate, as far as they go on. */
function evaluateProposals({ status, codes }: HealthSummaryInputs): HealthSummary | undefined {
  for (const { route, refusalProposals } of status.throttles)
    for (const proposal of refusalProposals) {
      if (countCodes(codes, (code) => code === proposal.status) < MIN_REQUESTS) continue;
      return {
        ...{ level: 'wait', kind: 'refusal-proposal' },
        headline: `Likely rate limited: the upstream refuses calls with ${proposal.status}${describeRoute(status, route)}`,
        detail: `The application gets these responses. If ${proposal.status} is the rate limit of the upstream, set ${proposal.setting}`,
      };
    }
  return undefined;
}

function evaluateUpstream({ lastMinute, codes, status }: HealthSummaryInputs): HealthSummary | undefined {
  const { ok, clientErrors, serverErrors, faults, sent } = lastMinute;
  const many = status.throttles.length > 1 ? 'Many requests fail' : undefined;
  if (faults >= MIN_REQUESTS && faults > (ok + clientErrors + serverErrors) / 2)
    return {
      level: 'bad',
      kind: 'unreachable',
      headline: many ?? 'The upstream is unreachable',
      detail: `${formatInteger(faults)} of ${formatCount(Math.max(sent, faults), 'attempt')} in the last minute got no response.`,
    };
  const responses = ok + clientErrors + serverErrors;
  if (responses < MIN_REQUESTS) return undefined;
  const unauthorized = countCodes(codes, (code) => code === 401);
  if (serverErrors > responses / 2)
    return {
      level: 'bad',
      kind: 'server-errors',
      headline: `${many ?? 'The upstream returns errors'} (${findMostFrequentCode(codes, 500)})`,
      detail: `${formatInteger(serverErrors)} of ${formatCount(responses, 'response')} in the last minute were server errors (5xx).`,
    };
  if (unauthorized >= MIN_REQUESTS && clientErrors > responses / 2 && findMostFrequentCode(codes, 400) === 401)
    return {
      level: 'bad',
      kind: 'token-refused',
      headline: 'The upstream rejects the token (401)',
      detail:
        'The token endpoint issued a token that the upstream does not accept. Check audience, scope and environment.',
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
      ...{ level: 'bad', kind: 'refused-here' },
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
  const { requests, own, serverErrors, clientErrors, refused, medianMs } = lastMinute;
  const warnings = status.degraded.length === 0 ? '' : ', with warnings';
  if (requests === 0)
    return { headline: `Ready${warnings}`, detail: 'A token is held; there were no requests in the last minute.' };
  const failed = own + serverErrors;
  const clientShare = clientErrors === 0 ? '' : `, ${formatCount(clientErrors, 'client error')} (4xx)`;
  const limited = refused === 0 ? '' : `; ${formatInteger(refused)} rate limited`;
  return {
    headline: `Healthy${warnings}`,
    detail: `${formatCount(requests, 'request')} in the last minute, p50 ${formatLatency(medianMs)}; ${formatInteger(failed)} failed${clientShare}${limited}.`,
  };
}

function describeRoute({ throttles }: Status, route: string): string {
  return throttles.length === 1 ? '' : ` on ${route}`;
}

/** The most frequent upstream status in the class that starts at `from`, such as 500. */
function findMostFrequentCode(codes: readonly CodeCount[], from: number): number {
  const candidates = codes.filter(({ code, source }) => source === 'upstream' && code >= from && code < from + 100);
  return candidates.reduce((most, next) => (next.count > most.count ? next : most), { code: from, count: 0 }).code;
}

function countCodes(codes: readonly CodeCount[], matches: (code: number) => boolean): number {
  return codes.reduce((sum, { code, source, count: n }) => sum + (source === 'upstream' && matches(code) ? n : 0), 0);
}

function toSentence(text: string): string {
  const capitalized = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}
