/** Sets up the OpenTelemetry tracing SDK. This file and its imports are loaded only when tracing is on (open-tracing.ts). */
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
import type { RequestTracer, TracedRequest } from '../../exchange/request-tracer.ts';
import { waitAtMost, type Clock } from '../../platform/clock.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import type { EventObserver, SidecarEvent } from '../events.ts';
import { SpanLossReporter } from './loss-report.ts';
import type { TraceSampling, TracingSettings } from './settings.ts';
import { recordTokenSpan, RequestSpans } from './spans.ts';

export interface TracingOptions {
  /** The environment that settings are read from; the exporter reads that of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The token endpoint or issuer of each credential, by its name. */
  readonly tokenServers: ReadonlyMap<string, URL>;
  readonly clock: Clock;
  readonly mask?: Redact;
  readonly observe: EventObserver;
}

export type Tracing = ReturnType<typeof createTracing>;

const SERVICE_NAME = 'bearer-sidecar';

const DROPPED_SPANS_MESSAGE = /^Dropped (\d+) spans/;

/** @param exporter Default: OTLP over HTTP, as protobuf, to where the environment says */
export function createTracing(
  { version, tokenServers, clock, mask = (text) => text, observe }: TracingOptions,
  { sampling, batching }: Extract<TracingSettings, { kind: 'on' }>,
  exporter: SpanExporter = new OTLPTraceExporter(),
) {
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
  onSpansDropped((spans) => losses.report(spans, 'the export queue was full'));
  const spans = { tracer: provider.getTracer(SERVICE_NAME, version), clock, mask };
  return {
    startTracer: (request: TracedRequest): RequestTracer => new RequestSpans(spans, request),
    observe: (event: SidecarEvent): void => {
      if (event.kind === 'token-requested' && event.file === undefined)
        recordTokenSpan(spans, event, tokenServers.get(event.credential));
    },
    /** Sends the remaining spans, waiting at most `timeoutMs`; later spans are dropped. Never rejects. */
    async close(timeoutMs: number): Promise<void> {
      const shutdown = provider.shutdown().then(() => 'done');
      const [outcome] = await Promise.allSettled([waitAtMost(shutdown, clock, timeoutMs)]);
      if (outcome.status === 'fulfilled' && outcome.value === undefined)
        observe({
          kind: 'warning',
          message: `the last spans could not be exported in time: ${losses.newestFault ?? 'the collector has not responded'}`,
        });
      losses.stop();
      diag.disable();
    },
  };
}

function describeService(version: string) {
  const ours = resourceFromAttributes({ 'service.name': SERVICE_NAME, 'service.version': version });
  // Later detectors override earlier ones.
  const detectors = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];
  return ours.merge(detectResources({ detectors }));
}

function createSampler({ ratio, followsParent }: TraceSampling): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return followsParent ? new ParentBasedSampler({ root }) : root;
}

/** The batch processor reports dropped spans through its diagnostics only. Other diagnostics may quote responses and are ignored. */
function onSpansDropped(report: (spans: number) => void): void {
  const ignore = (): void => undefined;
  const warn = (message: string): void => {
    const spans = Number(DROPPED_SPANS_MESSAGE.exec(message)?.[1] ?? 0);
    if (spans > 0) report(spans);
  };
  const logger = { error: ignore, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}
