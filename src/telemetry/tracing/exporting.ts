/**
 * Joins the tracing SDK of OpenTelemetry: who samples, what a batch is, where it goes, and what is told when spans are lost. This
 * file and those it imports are loaded only when traces are asked for (open-tracing.ts).
 */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import { SpanLossReporter } from './loss-report.ts';
import { startRequestSpans } from './request-spans.ts';
import type { TraceSampling, TracingSettings } from './settings.ts';
import { recordTokenSpan } from './token-span.ts';
import type { Tracing, TracingOptions } from './tracing.ts';

const SERVICE_NAME = 'bearer-sidecar';

/** Says that a queue which was full has room again. */
const DROPPED_SPANS_MESSAGE = /^Dropped (\d+) spans/;

/**
 * Starts tracing with the exporter that the environment describes.
 * @param exporter Default: OTLP over HTTP, as protobuf
 */
export function createTracing(
  { version, tokenServers, clock, observe }: TracingOptions,
  { sampling, batching }: Extract<TracingSettings, { kind: 'on' }>,
  exporter: SpanExporter = new OTLPTraceExporter(),
): Tracing {
  const losses = new SpanLossReporter(clock, observe);
  const provider = new TracerProvider({
    resource: describeService(version),
    sampler: createSampler(sampling),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: losses.wrapExporter(exporter),
        scheduledDelayMillis: batching.delayMs,
        maxQueueSize: batching.queueMax,
        maxExportBatchSize: batching.batchMax,
      }),
    ],
  });
  onSpansDropped((spans) => losses.report({ spans, reason: 'more were made than could be sent' }));
  const tracer = provider.getTracer(SERVICE_NAME, version);
  return {
    startTracer: (request) => startRequestSpans({ tracer, clock }, request),
    observe: (event) => {
      if (event.kind === 'token-requested') recordTokenSpan({ tracer, clock, tokenServers }, event);
    },
    async close(timeoutMs) {
      const [outcome] = await Promise.allSettled([withTimeout(provider.shutdown(), timeoutMs, clock)]);
      if (outcome.status === 'fulfilled' && outcome.value === 'late')
        observe({ kind: 'warning', message: 'the last spans could not be exported in time' });
      losses.stop();
      diag.disable();
    },
  };
}

function describeService(version: string) {
  const ours = resourceFromAttributes({ 'service.name': SERVICE_NAME, 'service.version': version });
  // Later ones win.
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  return ours.merge(detectResources({ detectors }));
}

function createSampler({ ratio, followsParent }: TraceSampling): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return followsParent ? new ParentBasedSampler({ root }) : root;
}

/** The batch processor tells of dropped spans by this door alone. What else comes through it may quote answers and is not repeated. */
function onSpansDropped(tell: (spans: number) => void): void {
  const ignore = (): void => undefined;
  const warn = (message: string): void => {
    const spans = Number(DROPPED_SPANS_MESSAGE.exec(message)?.[1] ?? 0);
    if (spans > 0) tell(spans);
  };
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

async function withTimeout(
  work: Promise<void>,
  timeoutMs: number,
  clock: TracingOptions['clock'],
): Promise<'done' | 'late'> {
  const late = Promise.withResolvers<'late'>();
  const cancel = clock.after(timeoutMs, () => {
    late.resolve('late');
  });
  try {
    return await Promise.race([work.then(() => 'done' as const), late.promise]);
  } finally {
    cancel();
  }
}
