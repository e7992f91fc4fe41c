/** Reports spans that could not be exported: the first at once, then a summary per minute. Responses of a collector are not quoted. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../platform/clock.ts';
import { errorCodeOf } from '../../platform/connection-faults.ts';
import { describeFault } from '../../platform/faults.ts';
import { EventCoalescer } from '../log/event-coalescer.ts';
import type { EventObserver } from '../events.ts';

/** Channels of Node's HTTP client: the exporter repeats a request for ten seconds, and then names no status. */
const REQUEST_FAILED = 'http.client.request.error';
const RESPONSE_RECEIVED = 'http.client.response.finish';
const USER_AGENT_OF_EXPORTER = /(?:^| )OTel-OTLP-Exporter-JavaScript\//;

const SUMMARY_INTERVAL_MS = 60_000;
const EXPORT_SUCCEEDED = 0;

export class SpanLossReporter {
  readonly #coalescer: EventCoalescer<string>;
  #spans = 0;
  /** Why the newest request to the collector failed; undefined while it is under way, or when it did not. Read only. */
  newestFault: string | undefined;
  readonly #onRequestEnd = (message: unknown): void => {
    const { request, error, response } = message as {
      request: ClientRequest;
      error?: Error;
      response?: IncomingMessage;
    };
    const isExport = USER_AGENT_OF_EXPORTER.test(String(request.getHeader('user-agent')));
    if (isExport) this.newestFault = error === undefined ? describeStatus(response?.statusCode) : describeError(error);
  };

  constructor(clock: Clock, observe: EventObserver) {
    const warn = (reason: string): void => {
      const message = `spans could not be exported: ${reason}; ${String(this.#spans)} lost since the start`;
      observe({ kind: 'warning', message });
    };
    this.#coalescer = new EventCoalescer<string>({
      clock,
      windowMs: SUMMARY_INTERVAL_MS,
      onFirst: warn,
      onSummary: (_, last) => warn(last),
    });
    for (const channel of [REQUEST_FAILED, RESPONSE_RECEIVED]) subscribe(channel, this.#onRequestEnd);
  }

  report(spans: number, reason: string): void {
    this.#spans += spans;
    this.#coalescer.add(reason);
  }

  wrapExporter(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        exporter.export(spans, (result) => {
          const code: number = result.code;
          if (code !== EXPORT_SUCCEEDED) this.report(spans.length, this.#explain(result.error));
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => {
        await exporter.forceFlush?.();
      },
    };
  }

  stop(): void {
    this.#coalescer.stop();
    for (const channel of [REQUEST_FAILED, RESPONSE_RECEIVED]) unsubscribe(channel, this.#onRequestEnd);
  }

  #explain(error: Error | undefined): string {
    const own = OWN_FAULTS[error?.message ?? ''];
    if (own !== undefined) return own;
    const code: unknown = error !== undefined && 'code' in error ? error.code : undefined;
    if (typeof code === 'number') return describeStatus(code) ?? 'the collector sent a response that is not valid';
    return code === undefined && this.newestFault !== undefined ? this.newestFault : describeError(error);
  }
}

/** By the message of an error of the exporter itself. */
const OWN_FAULTS: Readonly<Record<string, string>> = {
  'Request timed out': 'the collector did not respond in time: OTEL_EXPORTER_OTLP_TIMEOUT',
  'Concurrent export limit reached': 'the collector responds too slowly: too many exports are under way',
};

const ADVICE: Readonly<Record<number, string>> = {
  401: ': check OTEL_EXPORTER_OTLP_HEADERS',
  403: ': check OTEL_EXPORTER_OTLP_HEADERS',
  404: ': check the path in OTEL_EXPORTER_OTLP_ENDPOINT, to which /v1/traces is added, or in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  413: ': lower OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
};

function describeStatus(status = 0): string | undefined {
  return status < 300 ? undefined : `the collector responded with ${String(status)}${ADVICE[status] ?? ''}`;
}

/** By the error's code: its message may quote the response of the collector. */
function describeError(error: unknown): string {
  const code = errorCodeOf(error);
  if (!/^[A-Z_\d]{1,60}$/.test(code)) return error instanceof Error ? error.name : 'unknown fault';
  const { words, advice } = describeFault(error, COLLECTOR_SETTINGS);
  return `the collector ${words}; ${advice}`;
}

const COLLECTOR_SETTINGS = { address: 'OTEL_EXPORTER_OTLP_ENDPOINT', ca: 'OTEL_EXPORTER_OTLP_CERTIFICATE' };
