/** Counts spans that could not be exported and reports them: the first loss at once, then a summary per minute. Responses of a collector are not quoted. */
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../platform/clock.ts';
import { createCoalescer, type EventCoalescer } from '../log/event-coalescer.ts';
import type { EventObserver } from '../events.ts';

type ExportCallback = Parameters<SpanExporter['export']>[1];
type SpanExportResult = Parameters<ExportCallback>[0];

const SUMMARY_INTERVAL_MS = 60_000;
const EXPORT_SUCCEEDED = 0;

export class SpanLossReporter {
  readonly #coalescer: EventCoalescer<string>;
  #spans = 0;

  constructor(clock: Clock, observe: EventObserver) {
    const warn = (reason: string): void => {
      const message = `spans could not be exported: ${reason}; ${String(this.#spans)} lost since the start`;
      observe({ kind: 'warning', message });
    };
    this.#coalescer = createCoalescer<string>({
      ...{ clock, windowMs: SUMMARY_INTERVAL_MS },
      onFirst: warn,
      onSummary: (_, last) => warn(last),
    });
  }

  /** @param reason fit for a log */
  report(spans: number, reason: string): void {
    this.#spans += spans;
    this.#coalescer.add(reason);
  }

  wrapExporter(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        exporter.export(spans, (result) => {
          const code: number = result.code;
          if (code !== EXPORT_SUCCEEDED) this.report(spans.length, reasonOf(result.error));
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
  }
}

/** The status or the error code: an error message may quote the response of the collector. */
function reasonOf(error: SpanExportResult['error']): string {
  const code: unknown = error !== undefined && 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `the collector responded with ${String(code)}`;
  return typeof code === 'string' && /^[A-Z_\d]{1,40}$/.test(code) ? code : (error?.name ?? 'unknown fault');
}
