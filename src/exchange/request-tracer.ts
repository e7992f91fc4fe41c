/**
 * What follows one request on its way: spans, Server-Timing. Nobody asks for it by default, and then a request has no watch and
 * no call is made. Who watches is decided where things are wired. A watch must not throw and must not block.
 */
import type { RequestEnded } from '../telemetry/events.ts';
import type { AttemptResult } from '../upstream/attempt-contract.ts';

/** Where a request can wait. `upstream` is the pause before another attempt. */
export type Stage = 'token' | 'queue' | 'body' | 'upstream';

/** One request for the upstream, about to be sent. */
export interface TracedAttempt {
  readonly method: string;
  /** Of the upstream's base URL. */
  readonly baseUrl: URL;
  /** Path and query. */
  readonly path: string;
  /** Flat list [name, value, …], the bearer included. */
  readonly headers: string[];
}

/** Waits and attempts follow one another; neither is ever within another of its kind. */
export interface RequestTracer {
  /** The trace that the request belongs to: 32 hexadecimal digits. Undefined: nothing is traced. */
  readonly traceId: string | undefined;
  startWait(stage: Stage): void;
  endWait(): void;
  /** @returns the fields to send */
  startAttempt(attempt: TracedAttempt): string[];
  endAttempt(end: AttemptResult): void;
  /** Fields to add to the answer whose head is about to be written; flat, possibly none. */
  responseHeaders(): readonly string[];
  /** The last call. */
  endRequest(event: RequestEnded): void;
}

/** What a watch may look at when a request has arrived. */
export interface TracedRequest {
  readonly method?: string | undefined;
  readonly httpVersion: string;
  /** By lower-case name; a field that is there twice has its values joined by a comma and a space. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Called with each request as it arrives. */
export type StartTracer = (request: TracedRequest) => RequestTracer;

/** The fields of an answer, with those that a watch adds behind them. */
export function withTracerHeaders(fields: string[], watch: RequestTracer | undefined): string[] {
  return watch === undefined ? fields : [...fields, ...watch.responseHeaders()];
}
