/** One look: whether the job is being done, in plain words. The first thing that stands in the way is told, the rest is below it on the page. */
import type { LastMinute } from '../history/history.ts';
import type { CodeCount } from '../history/minutes.ts';
import type { Status } from '../status/status-shape.ts';
import { formatCount, formatInteger, formatLatency, formatRoundedRate } from './format.ts';

export interface HealthSummary {
  readonly level: 'good' | 'wait' | 'bad';
  /** What it is about: a change of it is worth saying aloud, one of the words is not. */
  readonly kind: string;
  readonly headline: string;
  readonly detail: string;
}

/** What a verdict is made from. */
export interface HealthSummaryInputs {
  readonly status: Status;
  readonly lastMinute: LastMinute;
  /** Of the present minute and the one before. */
  readonly codes: readonly CodeCount[];
}

/** Fewer calls than this show no trend. */
const MIN_INFORMATIVE_CALLS = 3;

/** The first that applies, the gravest first. */
export function evaluateHealth(seen: HealthSummaryInputs): HealthSummary {
  return (
    evaluateDrain(seen) ??
    evaluateTokens(seen) ??
    evaluateUpstream(seen) ??
    evaluateLimits(seen) ??
    evaluateClients(seen) ?? {
      level: seen.status.degraded.length === 0 ? 'good' : 'wait',
      kind: seen.status.degraded.length === 0 ? 'good' : 'degraded',
      ...describeTraffic(seen),
    }
  );
}

function evaluateDrain({ status }: HealthSummaryInputs): HealthSummary | undefined {
  if (!status.draining) return undefined;
  const left = status.throttles.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0);
  const detail = `${left === 0 ? 'No call is' : `${formatCount(left, 'call')} still`} under way; new ones are refused.`;
  return { level: 'wait', kind: 'draining', headline: 'Shutting down', detail };
}

function evaluateTokens({ status }: HealthSummaryInputs): HealthSummary | undefined {
  const { tokens } = status;
  const without = tokens.filter((token) => token.status === 'none' || (token.validForSeconds ?? 0) <= 0);
  const worst = without.find(({ lastFailure }) => lastFailure !== null) ?? without[0];
  if (worst === undefined) return undefined;
  const of = tokens.length === 1 ? '' : ` for ${worst.credential}`;
  const { lastFailure } = worst;
  if (lastFailure === null)
    return {
      level: 'wait',
      kind: 'starting',
      headline: `Starting: asking for the first token${of}`,
      detail: 'Calls wait until it is there.',
    };
  const others = tokens.length > without.length ? ' Routes with other credentials work.' : '';
  return {
    level: 'bad',
    kind: `no-token ${lastFailure.outcome}`,
    headline: `No token${of}: ${describeTokenFailure(lastFailure)}`,
    detail: `${toSentence(lastFailure.detail)}${describeAdvice(lastFailure.detail)} Calls are answered with an error of the sidecar's own.${others}`,
  };
}

function describeAdvice(detail: string): string {
  return detail.includes('invalid_client') ? ' The client id and its secret are worth a look.' : '';
}

function describeTokenFailure({ outcome, detail }: { readonly outcome: string; readonly detail: string }): string {
  const error = /error "([^"]+)"/.exec(detail)?.[1];
  if (error === 'invalid_client') return 'the client secret was refused (invalid_client)';
  if (error !== undefined) return `the authorization server refuses to give one (${error})`;
  if (outcome === 'rejected') return 'the authorization server refuses to give one';
  return outcome === 'malformed' ? 'the token endpoint answers something else' : 'the token endpoint does not work';
}

function evaluateUpstream({ lastMinute, codes, status }: HealthSummaryInputs): HealthSummary | undefined {
  const { ok, clientErrors, serverErrors, faults, sent } = lastMinute;
  const many = status.throttles.length > 1 ? 'Many calls fail' : undefined;
  if (faults >= MIN_INFORMATIVE_CALLS && faults > (ok + clientErrors + serverErrors) / 2)
    return {
      level: 'bad',
      kind: 'unreachable',
      headline: many ?? 'No answer: the partner’s API cannot be reached',
      detail: `${formatInteger(faults)} of ${formatCount(Math.max(sent, faults), 'attempt')} in the last minute brought none.`,
    };
  const answered = ok + clientErrors + serverErrors;
  if (answered < MIN_INFORMATIVE_CALLS) return undefined;
  const refusedToken = countCodes(codes, (code) => code === 401);
  if (serverErrors > answered / 2)
    return {
      level: 'bad',
      kind: 'server-errors',
      headline: `${many ?? 'The partner’s API fails'} (${findMostFrequentCode(codes, 500)})`,
      detail: `${formatInteger(serverErrors)} of ${formatCount(answered, 'answer')} in the last minute were errors of the server.`,
    };
  if (refusedToken >= MIN_INFORMATIVE_CALLS && clientErrors > answered / 2 && findMostFrequentCode(codes, 400) === 401)
    return {
      level: 'bad',
      kind: 'token-refused',
      headline: 'The partner’s API refuses the token (401)',
      detail: 'A token was given, and the API does not take it: audience, scope and environment are worth a look.',
    };
  return undefined;
}

function evaluateLimits({ status, lastMinute }: HealthSummaryInputs): HealthSummary | undefined {
  const held = status.throttles.filter(({ queued }) => queued > 0);
  const paused = status.throttles.find((throttle) => throttle.pausedSeconds === null || throttle.pausedSeconds >= 1);
  const queued = held.reduce((sum, throttle) => sum + throttle.queued, 0);
  const waiting = queued === 1 ? '1 call waits' : `${formatInteger(queued)} calls wait`;
  if (paused !== undefined && (paused.queued > 0 || lastMinute.refused > 0)) {
    const [signal] = paused.recentSignals;
    const who = signal?.stated === true ? 'the partner asked for it' : 'the partner refused a call for its rate';
    return {
      ...{ level: 'wait', kind: 'limits' },
      headline: `Waiting: a pause, ${who}`,
      detail: `${waiting}${describeRoute(status, paused.route)} and will be sent when it is over.`,
    };
  }
  // A call that is let go at once waits, too: the verdict must not change with each.
  const slow = held.find(({ rate, queued: waiting }) => rate !== null && waiting >= rate / 2);
  if (slow === undefined || slow.rate === null) return undefined;
  const limiter = slow.mode === 'static' ? 'the configuration limits us to' : 'the partner limits us to about';
  return {
    ...{ level: 'wait', kind: 'limits' },
    headline: `Waiting: ${limiter} ${formatRoundedRate(slow.learned?.rate ?? slow.rate)} a second`,
    detail: `Calls go through at that pace; ${waiting}${describeRoute(status, slow.route)}${describeLocalRefusals(lastMinute)}.`,
  };
}

function describeLocalRefusals({ own }: LastMinute): string {
  return own === 0 ? '' : `, and ${formatInteger(own)} were refused here in the last minute`;
}

function evaluateClients({ lastMinute, codes }: HealthSummaryInputs): HealthSummary | undefined {
  const { requests, own, clientErrors, ok, serverErrors } = lastMinute;
  if (own >= MIN_INFORMATIVE_CALLS && own > requests / 2)
    return {
      ...{ level: 'bad', kind: 'refused-here' },
      headline: 'Most calls are refused by the sidecar itself',
      detail: `${formatInteger(own)} of ${formatCount(requests, 'call')} in the last minute; why is among the events below.`,
    };
  const answered = ok + clientErrors + serverErrors;
  if (clientErrors < MIN_INFORMATIVE_CALLS || clientErrors <= answered / 2) return undefined;
  return {
    ...{ level: 'wait', kind: 'client-errors' },
    headline: `Calls go through, and most are refused as wrong (${findMostFrequentCode(codes, 400)})`,
    detail: `${formatInteger(clientErrors)} of ${formatCount(answered, 'answer')} in the last minute: the app and the API disagree.`,
  };
}

function describeTraffic({ status, lastMinute }: HealthSummaryInputs): Pick<HealthSummary, 'headline' | 'detail'> {
  const { requests, own, serverErrors, clientErrors, refused, medianMs } = lastMinute;
  const some = status.degraded.length === 0 ? '' : ', and something needs a look';
  if (requests === 0)
    return { headline: `Ready for calls${some}`, detail: 'A token is held; nobody has called in the last minute.' };
  const failed = own + serverErrors;
  const wrong = clientErrors === 0 ? '' : `, ${formatInteger(clientErrors)} answered 4xx`;
  const faults = (failed === 0 ? 'none failed' : `${formatInteger(failed)} failed`) + wrong;
  const again = refused === 0 ? '' : `; ${formatCount(refused, 'time')} the partner said “too fast”`;
  return {
    headline: `Calls go through${some}`,
    detail: `${formatCount(requests, 'call')} in the last minute, half of them within ${formatLatency(medianMs)}; ${faults}${again}.`,
  };
}

function describeRoute({ throttles }: Status, route: string): string {
  return throttles.length === 1 ? '' : ` on ${route}`;
}

/** Of the upstream, within the hundred that begins there. */
function findMostFrequentCode(codes: readonly CodeCount[], from: number): number {
  const among = codes.filter(({ code, source }) => source === 'upstream' && code >= from && code < from + 100);
  return among.reduce((most, next) => (next.count > most.count ? next : most), { code: from, count: 0 }).code;
}

function countCodes(codes: readonly CodeCount[], matches: (code: number) => boolean): number {
  return codes.reduce((sum, { code, source, count: n }) => sum + (source === 'upstream' && matches(code) ? n : 0), 0);
}

function toSentence(words: string): string {
  const begun = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
