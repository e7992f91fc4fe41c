/** Combines the tracers of a request: spans, Server-Timing, both or none. */
import type { Clock } from '../platform/clock.ts';
import { createServerTimingTracer } from '../exchange/server-timing.ts';
import type { StartTracer, RequestTracer } from '../exchange/request-tracer.ts';

export interface RequestTracersOptions {
  readonly serverTiming: boolean;
  /** Undefined when spans are off. */
  readonly startSpanTracer: StartTracer | undefined;
  readonly clock: Clock;
}

/** Undefined when no tracer is configured. */
export function createTracerFactory({
  serverTiming,
  startSpanTracer,
  clock,
}: RequestTracersOptions): StartTracer | undefined {
  if (!serverTiming) return startSpanTracer;
  const timed: StartTracer = () => createServerTimingTracer(clock);
  return startSpanTracer === undefined
    ? timed
    : (request) => combineTracers(startSpanTracer(request), createServerTimingTracer(clock));
}

function combineTracers(spans: RequestTracer, times: RequestTracer): RequestTracer {
  return {
    traceId: spans.traceId,
    startWait: (stage) => {
      spans.startWait(stage);
      times.startWait(stage);
    },
    endWait: () => {
      spans.endWait();
      times.endWait();
    },
    startAttempt: (attempt) => times.startAttempt({ ...attempt, headers: spans.startAttempt(attempt) }),
    endAttempt: (end) => {
      spans.endAttempt(end);
      times.endAttempt(end);
    },
    responseHeaders: () => [...spans.responseHeaders(), ...times.responseHeaders()],
    endRequest: (event) => {
      spans.endRequest(event);
      times.endRequest(event);
    },
  };
}
