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
import { LossReport } from './loss-report.ts';
import { watchRequest } from './request-spans.ts';
import type { Sampling, TracingSettings } from './settings.ts';
import { tellTokenRequest } from './token-span.ts';
import type { Tracing, TracingOptions } from './tracing.ts';

const NAME = 'bearer-sidecar';

/** Says that a queue which was full has room again. */
const DROPPED = /^Dropped (\d+) spans/;

/**
 * Starts tracing with the exporter that the environment describes.
 * @param exporter Default: OTLP over HTTP, as protobuf
 */
export function createTracing(
  { version, tokenServers, clock, observe }: TracingOptions,
  { sampling, batching }: Extract<TracingSettings, { kind: 'on' }>,
  exporter: SpanExporter = new OTLPTraceExporter(),
): Tracing {
  const losses = new LossReport(clock, observe);
  const provider = new TracerProvider({
    resource: describeService(version),
    sampler: createSampler(sampling),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: losses.countIn(exporter),
        scheduledDelayMillis: batching.delayMs,
        maxQueueSize: batching.queueMax,
        maxExportBatchSize: batching.batchMax,
      }),
    ],
  });
  hearOfDrops((spans) => losses.tell({ spans, reason: 'more were made than could be sent' }));
  const tracer = provider.getTracer(NAME, version);
  return {
    watch: (request) => watchRequest({ tracer, clock }, request),
    observe: (event) => {
      if (event.kind === 'token-requested') tellTokenRequest({ tracer, clock, tokenServers }, event);
    },
    async close(timeoutMs) {
      const [outcome] = await Promise.allSettled([within(provider.shutdown(), timeoutMs, clock)]);
      if (outcome.status === 'fulfilled' && outcome.value === 'late')
        observe({ kind: 'warning', message: 'the last spans could not be exported in time' });
      losses.stop();
      diag.disable();
    },
  };
}

function describeService(version: string) {
  const ours = resourceFromAttributes({ 'service.name': NAME, 'service.version': version });
  // Later ones win.
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  return ours.merge(detectResources({ detectors }));
}

function createSampler({ ratio, followsParent }: Sampling): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return followsParent ? new ParentBasedSampler({ root }) : root;
}

/** The batch processor tells of dropped spans by this door alone. What else comes through it may quote answers and is not repeated. */
function hearOfDrops(tell: (spans: number) => void): void {
  const ignore = (): void => undefined;
  const warn = (message: string): void => {
    const spans = Number(DROPPED.exec(message)?.[1] ?? 0);
    if (spans > 0) tell(spans);
  };
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

async function within(
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
