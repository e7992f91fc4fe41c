/** The counters of one route: what each of its requests and attempts increments. */
import { ATTEMPT_OUTCOMES, type AttemptOutcome } from '../events.ts';
import type { RecordObservers, RequestRecord, RouteCounters } from '../request-record.ts';
import type { Catalogue } from './catalogue.ts';
import type { DurationSeries } from './series.ts';

/** The standard methods (RFC 9110 §9.3, RFC 5789). All others share one label, so that labels stay few. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
]);

export class RouteMetrics implements RouteCounters {
  readonly #route: string;
  readonly #catalogue: Catalogue;
  readonly #observers: RecordObservers;
  readonly #attempts: Readonly<Record<AttemptOutcome, DurationSeries>>;
  /** By method, then by code; that of a local reply is negative. */
  readonly #requests = new Map<string, Map<number, DurationSeries>>();

  constructor(route: string, catalogue: Catalogue, observers: RecordObservers) {
    this.#route = route;
    this.#catalogue = catalogue;
    this.#observers = observers;
    const attempts = ATTEMPT_OUTCOMES.map((outcome) => [outcome, catalogue.attempts.find(route, outcome)]);
    this.#attempts = Object.fromEntries(attempts) as Record<AttemptOutcome, DurationSeries>;
  }

  recordAttempt(outcome: AttemptOutcome, durationMs: number, isOwn: boolean): void {
    this.#attempts[outcome].record(durationMs);
    this.#observers.debug?.({ kind: 'attempt-ended', route: this.#route, outcome, durationMs, isOwn });
  }

  recordRequest(record: RequestRecord): void {
    const { method, code, source, durationMs, localReply, cutBy, isOutcomeUnknown } = record;
    const series = this.#requests.get(method)?.get(source === 'sidecar' ? -code : code);
    (series ?? this.#bindRequests(record)).record(durationMs);
    if (localReply !== undefined) this.#catalogue.localReplies.find(this.#route, localReply).count++;
    if (cutBy !== undefined) this.#catalogue.responsesCut.find(this.#route, cutBy).count++;
    if (isOutcomeUnknown === true) this.#catalogue.unknownOutcomes.find(this.#route).count++;
    for (const observe of this.#observers.requests) observe(record);
  }

  #bindRequests({ method, code, source }: RequestRecord): DurationSeries {
    const isKnown = KNOWN_METHODS.has(method);
    const series = this.#catalogue.requests.find(this.#route, isKnown ? method : 'other', String(code), source);
    // Unknown methods are an open set, and are not kept.
    if (!isKnown) return series;
    const byCode = this.#requests.get(method) ?? new Map<number, DurationSeries>();
    this.#requests.set(method, byCode.set(source === 'sidecar' ? -code : code, series));
    return series;
  }
}
