/** What tracing needs and gives, whoever does it. */
import type { Clock } from '../../platform/clock.ts';
import type { StartTracer } from '../../exchange/request-tracer.ts';
import type { EventObserver } from '../events.ts';

export interface TracingOptions {
  /** Where the variables of OpenTelemetry are read; the exporter reads those of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** Where the tokens of a credential are asked for, by the credential's name. */
  readonly tokenServers: ReadonlyMap<string, URL>;
  readonly clock: Clock;
  /** Hears warnings. */
  readonly observe: EventObserver;
}

export interface Tracing {
  /** Begins the span of a request. */
  readonly startTracer: StartTracer;
  /** Turns token requests into spans. */
  readonly observe: EventObserver;
  /** Sends what is left, waiting at most `timeoutMs`; later spans are dropped. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}
