/**
 * Counts spans that could not be exported and says so in the log: at once the first time, then once in a while as long as it
 * lasts. What a collector answered is not repeated.
 */
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../platform/clock.ts';
import { createKeyedCoalescer } from '../log/damper.ts';
import type { EventCoalescer } from '../log/damper.ts';
import type { EventObserver } from '../events.ts';

export interface SpanLoss {
  readonly spans: number;
  /** Fit for a log. */
  readonly reason: string;
}

type ExportCallback = Parameters<SpanExporter['export']>[1];
type SpanExportResult = Parameters<ExportCallback>[0];

const SUMMARY_INTERVAL_MS = 60_000;
const EXPORT_SUCCEEDED = 0;

export class SpanLossReporter {
  readonly #damper: EventCoalescer<SpanLoss>;
  #spans = 0;

  constructor(clock: Clock, observe: EventObserver) {
    const say = ({ reason }: SpanLoss): void => {
      const message = `spans could not be exported: ${reason}; ${String(this.#spans)} are lost since the start`;
      observe({ kind: 'warning', message });
    };
    this.#damper = createKeyedCoalescer<SpanLoss>(() => '', {
      clock,
      windowMs: SUMMARY_INTERVAL_MS,
      onFirst: say,
      onSummary: (_, last) => {
        say(last);
      },
    });
  }

  report(loss: SpanLoss): void {
    this.#spans += loss.spans;
    this.#damper.add(loss);
  }

  /** The same exporter, whose failures are told of here. */
  wrapExporter(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        exporter.export(spans, (result) => {
          const code: number = result.code;
          if (code !== EXPORT_SUCCEEDED) this.report({ spans: spans.length, reason: reasonOf(result.error) });
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => {
        await exporter.forceFlush?.();
      },
    };
  }

  /** Says what is held back. */
  stop(): void {
    this.#damper.stop();
  }
}

/** The status or the name of the fault: a message may quote what the collector answered. */
function reasonOf(error: SpanExportResult['error']): string {
  const code: unknown = error !== undefined && 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `the collector answered with ${String(code)}`;
  return typeof code === 'string' && /^[A-Z_\d]{1,40}$/.test(code) ? code : (error?.name ?? 'unknown fault');
}
