/**
 * Counts spans that could not be exported and says so in the log: at once the first time, then once in a while as long as it
 * lasts. What a collector answered is not repeated.
 */
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Clock } from '../../platform/clock.ts';
import { dampEach } from '../log/damper.ts';
import type { Damper } from '../log/damper.ts';
import type { Observe } from '../events.ts';

export interface Loss {
  readonly spans: number;
  /** Fit for a log. */
  readonly reason: string;
}

type Done = Parameters<SpanExporter['export']>[1];
type Result = Parameters<Done>[0];

const SUMMARY_EVERY_MS = 60_000;
const SUCCESS = 0;

export class LossReport {
  readonly #damper: Damper<Loss>;
  #spans = 0;

  constructor(clock: Clock, observe: Observe) {
    const say = ({ reason }: Loss): void => {
      const message = `spans could not be exported: ${reason}; ${String(this.#spans)} are lost since the start`;
      observe({ kind: 'warning', message });
    };
    this.#damper = dampEach<Loss>(() => '', {
      clock,
      windowMs: SUMMARY_EVERY_MS,
      first: say,
      summary: (_, last) => {
        say(last);
      },
    });
  }

  tell(loss: Loss): void {
    this.#spans += loss.spans;
    this.#damper.tell(loss);
  }

  /** The same exporter, whose failures are told of here. */
  countIn(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        exporter.export(spans, (result) => {
          const code: number = result.code;
          if (code !== SUCCESS) this.tell({ spans: spans.length, reason: reasonOf(result.error) });
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
function reasonOf(error: Result['error']): string {
  const code: unknown = error !== undefined && 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `the collector answered with ${String(code)}`;
  return typeof code === 'string' && /^[A-Z_\d]{1,40}$/.test(code) ? code : (error?.name ?? 'unknown fault');
}
