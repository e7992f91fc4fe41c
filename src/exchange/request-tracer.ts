/** Traces one request as spans. Off by default: then no call is made. A tracer must not throw and must not block. */
import type { RequestRecord } from '../telemetry/request-record.ts';
import type { AttemptResult } from '../upstream/response-receiver.ts';

/** Where a request can wait. `upstream` is the backoff before another attempt. */
export type Stage = 'token' | 'queue' | 'body' | 'upstream';

export interface TracedAttempt {
  readonly method: string;
  readonly baseUrl: URL;
  readonly path: string;
  /** Flat list [name, value, …], the token included. */
  readonly headers: string[];
}

/** Waits do not overlap, and neither do attempts. */
export interface RequestTracer {
  /** The trace of the request: 32 hexadecimal digits. Undefined: none. */
  readonly traceId: string | undefined;
  startWait(stage: Stage): void;
  endWait(): void;
  /** @returns the headers to send */
  startAttempt(attempt: TracedAttempt): string[];
  endAttempt(result: AttemptResult): void;
  endRequest(event: RequestRecord): void;
}

export interface TracedRequest {
  readonly method?: string | undefined;
  readonly httpVersion: string;
  /** By lower-case name; the values of a repeated header are joined by a comma and a space. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export type StartTracer = (request: TracedRequest) => RequestTracer;
