/** One look: whether the job is being done, in plain words. The first thing that stands in the way is told, the rest is below it on the page. */
import type { LastMinute } from '../history/history.ts';
import type { CodeCount } from '../history/minutes.ts';
import type { Status } from '../status/status-shape.ts';
import { count, inDigits, inMs, inRoundRate } from './words.ts';

export interface Verdict {
  readonly level: 'good' | 'wait' | 'bad';
  /** What it is about: a change of it is worth saying aloud, one of the words is not. */
  readonly kind: string;
  readonly headline: string;
  readonly detail: string;
}

/** What a verdict is made from. */
export interface Seen {
  readonly status: Status;
  readonly lastMinute: LastMinute;
  /** Of the present minute and the one before. */
  readonly codes: readonly CodeCount[];
}

/** Fewer calls than this show no trend. */
const TELLING_CALLS = 3;

/** The first that applies, the gravest first. */
export function judge(seen: Seen): Verdict {
  return (
    judgeDrain(seen) ??
    judgeTokens(seen) ??
    judgeUpstream(seen) ??
    judgeLimits(seen) ??
    judgeClients(seen) ?? {
      level: seen.status.degraded.length === 0 ? 'good' : 'wait',
      kind: seen.status.degraded.length === 0 ? 'good' : 'degraded',
      ...describeTraffic(seen),
    }
  );
}

function judgeDrain({ status }: Seen): Verdict | undefined {
  if (!status.draining) return undefined;
  const left = status.throttles.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0);
  const detail = `${left === 0 ? 'No call is' : `${count(left, 'call')} still`} under way; new ones are refused.`;
  return { level: 'wait', kind: 'draining', headline: 'Shutting down', detail };
}

function judgeTokens({ status }: Seen): Verdict | undefined {
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
    detail: `${sentence(lastFailure.detail)}${adviseOn(lastFailure.detail)} Calls are answered with an error of the sidecar's own.${others}`,
  };
}

function adviseOn(detail: string): string {
  return detail.includes('invalid_client') ? ' The client id and its secret are worth a look.' : '';
}

function describeTokenFailure({ outcome, detail }: { readonly outcome: string; readonly detail: string }): string {
  const error = /error "([^"]+)"/.exec(detail)?.[1];
  if (error === 'invalid_client') return 'the client secret was refused (invalid_client)';
  if (error !== undefined) return `the authorization server refuses to give one (${error})`;
  if (outcome === 'rejected') return 'the authorization server refuses to give one';
  return outcome === 'malformed' ? 'the token endpoint answers something else' : 'the token endpoint does not work';
}

function judgeUpstream({ lastMinute, codes, status }: Seen): Verdict | undefined {
  const { ok, clientErrors, serverErrors, faults, sent } = lastMinute;
  const many = status.throttles.length > 1 ? 'Many calls fail' : undefined;
  if (faults >= TELLING_CALLS && faults > (ok + clientErrors + serverErrors) / 2)
    return {
      level: 'bad',
      kind: 'unreachable',
      headline: many ?? 'No answer: the partner’s API cannot be reached',
      detail: `${inDigits(faults)} of ${count(Math.max(sent, faults), 'attempt')} in the last minute brought none.`,
    };
  const answered = ok + clientErrors + serverErrors;
  if (answered < TELLING_CALLS) return undefined;
  const refusedToken = countOf(codes, (code) => code === 401);
  if (serverErrors > answered / 2)
    return {
      level: 'bad',
      kind: 'server-errors',
      headline: `${many ?? 'The partner’s API fails'} (${mostFrequent(codes, 500)})`,
      detail: `${inDigits(serverErrors)} of ${count(answered, 'answer')} in the last minute were errors of the server.`,
    };
  if (refusedToken >= TELLING_CALLS && clientErrors > answered / 2 && mostFrequent(codes, 400) === 401)
    return {
      level: 'bad',
      kind: 'token-refused',
      headline: 'The partner’s API refuses the token (401)',
      detail: 'A token was given, and the API does not take it: audience, scope and environment are worth a look.',
    };
  return undefined;
}

function judgeLimits({ status, lastMinute }: Seen): Verdict | undefined {
  const held = status.throttles.filter(({ queued }) => queued > 0);
  const paused = status.throttles.find((throttle) => throttle.pausedSeconds === null || throttle.pausedSeconds >= 1);
  const queued = held.reduce((sum, throttle) => sum + throttle.queued, 0);
  const waiting = queued === 1 ? '1 call waits' : `${inDigits(queued)} calls wait`;
  if (paused !== undefined && (paused.queued > 0 || lastMinute.refused > 0)) {
    const [signal] = paused.recentSignals;
    const who = signal?.stated === true ? 'the partner asked for it' : 'the partner refused a call for its rate';
    return {
      ...{ level: 'wait', kind: 'limits' },
      headline: `Waiting: a pause, ${who}`,
      detail: `${waiting}${onRoute(status, paused.route)} and will be sent when it is over.`,
    };
  }
  // A call that is let go at once waits, too: the verdict must not change with each.
  const slow = held.find(({ rate, queued: waiting }) => rate !== null && waiting >= rate / 2);
  if (slow === undefined || slow.rate === null) return undefined;
  const limiter = slow.mode === 'static' ? 'the configuration limits us to' : 'the partner limits us to about';
  return {
    ...{ level: 'wait', kind: 'limits' },
    headline: `Waiting: ${limiter} ${inRoundRate(slow.learned?.rate ?? slow.rate)} a second`,
    detail: `Calls go through at that pace; ${waiting}${onRoute(status, slow.route)}${describeShed(lastMinute)}.`,
  };
}

function describeShed({ own }: LastMinute): string {
  return own === 0 ? '' : `, and ${inDigits(own)} were refused here in the last minute`;
}

function judgeClients({ lastMinute, codes }: Seen): Verdict | undefined {
  const { requests, own, clientErrors, ok, serverErrors } = lastMinute;
  if (own >= TELLING_CALLS && own > requests / 2)
    return {
      ...{ level: 'bad', kind: 'refused-here' },
      headline: 'Most calls are refused by the sidecar itself',
      detail: `${inDigits(own)} of ${count(requests, 'call')} in the last minute; why is among the events below.`,
    };
  const answered = ok + clientErrors + serverErrors;
  if (clientErrors < TELLING_CALLS || clientErrors <= answered / 2) return undefined;
  return {
    ...{ level: 'wait', kind: 'client-errors' },
    headline: `Calls go through, and most are refused as wrong (${mostFrequent(codes, 400)})`,
    detail: `${inDigits(clientErrors)} of ${count(answered, 'answer')} in the last minute: the app and the API disagree.`,
  };
}

function describeTraffic({ status, lastMinute }: Seen): Pick<Verdict, 'headline' | 'detail'> {
  const { requests, own, serverErrors, clientErrors, refused, medianMs } = lastMinute;
  const some = status.degraded.length === 0 ? '' : ', and something needs a look';
  if (requests === 0)
    return { headline: `Ready for calls${some}`, detail: 'A token is held; nobody has called in the last minute.' };
  const failed = own + serverErrors;
  const wrong = clientErrors === 0 ? '' : `, ${inDigits(clientErrors)} answered 4xx`;
  const faults = (failed === 0 ? 'none failed' : `${inDigits(failed)} failed`) + wrong;
  const again = refused === 0 ? '' : `; ${count(refused, 'time')} the partner said “too fast”`;
  return {
    headline: `Calls go through${some}`,
    detail: `${count(requests, 'call')} in the last minute, half of them within ${inMs(medianMs)}; ${faults}${again}.`,
  };
}

function onRoute({ throttles }: Status, route: string): string {
  return throttles.length === 1 ? '' : ` on ${route}`;
}

/** Of the upstream, within the hundred that begins there. */
function mostFrequent(codes: readonly CodeCount[], from: number): number {
  const among = codes.filter(({ code, source }) => source === 'upstream' && code >= from && code < from + 100);
  return among.reduce((most, next) => (next.count > most.count ? next : most), { code: from, count: 0 }).code;
}

function countOf(codes: readonly CodeCount[], matches: (code: number) => boolean): number {
  return codes.reduce((sum, { code, source, count: n }) => sum + (source === 'upstream' && matches(code) ? n : 0), 0);
}

function sentence(words: string): string {
  const begun = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
