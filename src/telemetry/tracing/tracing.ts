/** The interface of tracing, independent of the OpenTelemetry libraries. */
import type { Clock } from '../../platform/clock.ts';
import type { StartTracer } from '../../exchange/request-tracer.ts';
import type { EventObserver } from '../events.ts';

export interface TracingOptions {
  /** The environment that settings are read from; the exporter reads that of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The token endpoint or issuer of each credential, by its name. */
  readonly tokenServers: ReadonlyMap<string, URL>;
  readonly clock: Clock;
  /** Receives warnings. */
  readonly observe: EventObserver;
}

export interface Tracing {
  /** Starts the span of a request. */
  readonly startTracer: StartTracer;
  /** Records token requests as spans. */
  readonly observe: EventObserver;
  /** Sends the remaining spans, waiting at most `timeoutMs`; later spans are dropped. Never rejects. */
  close(timeoutMs: number): Promise<void>;
}
