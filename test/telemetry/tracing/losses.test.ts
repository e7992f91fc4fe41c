/** Lost spans do not affect requests and are reported at a limited rate. */
import { InMemorySpanExporter, type SpanExporter } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createTracing } from '../../../src/telemetry/tracing/exporting.ts';
import { SpanLossReporter } from '../../../src/telemetry/tracing/loss-report.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ended: RequestRecord = {
  route: 'default',
  method: 'GET',
  path: '/',
  code: 200,
  source: 'upstream',
  durationMs: 1,
  queuedMs: 0,
  attempts: 1,
  requestBytes: 0,
  responseBytes: 0,
};

function recordWarnings() {
  const events: SidecarEvent[] = [];
  const warnings = () => events.map((event) => (event.kind === 'warning' ? event.message : event.kind));
  return { observe: (event: SidecarEvent) => void events.push(event), warnings };
}

/** Fails as the SDK's own exporter does that was ended, and says why. */
function failing(error: Error): SpanExporter {
  const ended = new InMemorySpanExporter();
  void ended.shutdown();
  return {
    export: (spans, done) => {
      ended.export(spans, (result) => {
        done({ ...result, error });
      });
    },
    shutdown: () => Promise.resolve(),
  };
}

function open(exporter: SpanExporter, batching = { delayMs: 60_000, queueMax: 4, batchMax: 4 }) {
  const clock = new ManualClock();
  const recorder = recordWarnings();
  const options = { env: {}, version: '1', tokenServers: new Map<string, URL>(), clock, observe: recorder.observe };
  const sampling = { ratio: 1, followsParent: true };
  const tracing = createTracing(options, { kind: 'on', sampling, batching, warnings: [] }, exporter);
  const request = (): void => {
    tracing.startTracer({ method: 'GET', httpVersion: '1.1', headers: {} }).endRequest(ended);
  };
  return { clock, tracing, request, warnings: recorder.warnings };
}

describe('a collector that fails', () => {
  it('is reported at once, then once a minute with the number of lost spans, without its response', async () => {
    const clock = new ManualClock();
    const { observe, warnings } = recordWarnings();
    const report = new SpanLossReporter(clock, observe);
    const exporter = report.wrapExporter(failing(Object.assign(new Error('Bearer s3cret?'), { code: 401 })));
    for (let batch = 0; batch < 3; batch++) exporter.export([], () => undefined);
    report.report(7, 'the collector responded with 401');
    expect(warnings()).toEqual([
      'spans could not be exported: the collector responded with 401; 0 lost since the start',
    ]);
    await clock.advance(60_000);
    expect(warnings().slice(1)).toEqual([
      'spans could not be exported: the collector responded with 401; 7 lost since the start',
    ]);
    await clock.advance(600_000);
    expect(warnings()).toHaveLength(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    [Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    [Object.assign(new Error('x'), { code: 'a sentence with s3cret' }), 'Error'],
    [new TypeError('s3cret'), 'TypeError'],
  ])('a network error is named (%#)', async (error, name) => {
    const { tracing, request, warnings } = open(failing(error));
    request();
    await tracing.close(1000);
    expect(warnings()).toEqual([`spans could not be exported: ${name}; 1 lost since the start`]);
  });
});

describe('a collector that does not respond', () => {
  it('keeps a bounded queue: later spans are dropped and reported when there is room again', async () => {
    const waiting: (() => void)[] = [];
    const { tracing, request, warnings } = open({
      export: (_, done) => {
        waiting.push(() => {
          new InMemorySpanExporter().export([], done);
        });
      },
      shutdown: () => Promise.resolve(),
    });
    for (let span = 0; span < 4 + 4 + 9; span++) request();
    expect(waiting).toHaveLength(1);
    for (const respond of waiting.splice(0)) respond();
    await expect.poll(() => waiting.length).toBe(1);
    request();
    expect(warnings()).toEqual(['spans could not be exported: the export queue was full; 9 lost since the start']);
    for (const respond of waiting.splice(0)) respond();
    const closed = tracing.close(1000);
    await expect.poll(() => waiting.length).toBe(1);
    for (const respond of waiting.splice(0)) respond();
    await closed;
  });

  it('delays close for at most the given time', async () => {
    const { clock, tracing, request, warnings } = open({
      export: () => undefined,
      shutdown: () => Promise.resolve(),
    });
    request();
    let isClosed = false;
    const closed = tracing.close(1000).then(() => {
      isClosed = true;
    });
    await clock.advance(999);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
    expect(warnings()).toEqual(['the last spans could not be exported in time']);
  });
});
