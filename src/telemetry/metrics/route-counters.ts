/** The counters of one route: what each of its requests and attempts increments. */
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from '../events.ts';
import type { RecordObservers, RequestRecord, RouteCounters } from '../request-record.ts';
import type { Catalogue } from './catalogue.ts';
import type { DurationSeries } from './series.ts';

/** The standard methods (RFC 9110 §9.3, RFC 5789). All others share one label, so that labels stay few. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH'.split(' '),
);

export function createRouteCounters(route: string, catalogue: Catalogue, observers: RecordObservers): RouteCounters {
  const attempts = Object.fromEntries(
    ATTEMPT_OUTCOMES.map((outcome) => [outcome, catalogue.upstream_attempts_total.find(route, outcome)]),
  ) as Record<AttemptOutcome, DurationSeries>;
  /** By method, then by code; that of a local reply is negative. */
  const requests = new Map<string, Map<number, DurationSeries>>();
  const bindRequests = ({ method, code, source }: RequestRecord): DurationSeries => {
    const isKnown = KNOWN_METHODS.has(method);
    const series = catalogue.requests_total.find(route, isKnown ? method : 'other', String(code), source);
    // Unknown methods are an open set, and are not kept.
    if (!isKnown) return series;
    const byCode = requests.get(method) ?? new Map<number, DurationSeries>();
    requests.set(method, byCode.set(source === 'sidecar' ? -code : code, series));
    return series;
  };
  return {
    recordAttempt(outcome, durationMs, isOwn) {
      attempts[outcome].record(durationMs);
      observers.debug?.({ kind: 'attempt-ended', route, outcome, durationMs, isOwn });
    },
    recordRequest(record) {
      const { method, code, source, durationMs, localReply, cutBy, isOutcomeUnknown } = record;
      const series = requests.get(method)?.get(source === 'sidecar' ? -code : code);
      (series ?? bindRequests(record)).record(durationMs);
      if (localReply !== undefined) catalogue.local_replies_total.find(route, localReply).count++;
      if (cutBy !== undefined) catalogue.responses_cut_total.find(route, cutBy).count++;
      if (isOutcomeUnknown === true) catalogue.unknown_outcomes_total.find(route).count++;
      for (const observe of observers.requests) observe(record);
    },
  };
}
