/** Lost spans do not affect requests and are reported at a limited rate. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { InMemorySpanExporter, type SpanExporter } from '@opentelemetry/sdk-trace';
import { describe, expect, it } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createTracing } from '../../../src/telemetry/tracing/exporting.ts';
import { SpanLossReporter } from '../../../src/telemetry/tracing/loss-report.ts';
import { makeCertificates } from '../../support/certificates.ts';
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

/** What is said when one span cannot be exported to the URL. */
async function exportTo(url: string): Promise<string> {
  const { tracing, request, warnings } = open(new OTLPTraceExporter({ url, timeoutMillis: 250 }));
  request();
  // The manual clock never ends the wait.
  await tracing.close(1000);
  expect(warnings()).toHaveLength(1);
  expect(warnings()[0]).not.toContain('s3cret');
  return warnings()[0] ?? '';
}

async function startCollector(respond: RequestListener) {
  const server = createServer(respond).listen(0, '127.0.0.1');
  return closeAtEnd(server, 'http:');
}

async function startTlsServer(options: { cert: Buffer; key: Buffer }) {
  return closeAtEnd(createTlsServer(options).listen(0, '127.0.0.1'), 'https:');
}

async function closeAtEnd(server: Server, protocol: string) {
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if ('closeAllConnections' in server) (server as HttpServer).closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `${protocol}//127.0.0.1:${String(port)}/`, [Symbol.asyncDispose]: close };
}

describe('a collector that fails', () => {
  it('is reported at once, then once a minute with the number of lost spans, without its response', async () => {
    const clock = new ManualClock();
    const { observe, warnings } = recordWarnings();
    const report = new SpanLossReporter(clock, observe);
    const exporter = report.wrapExporter(failing(Object.assign(new Error('Bearer s3cret?'), { code: 401 })));
    for (let batch = 0; batch < 3; batch++) exporter.export([], () => undefined);
    report.report(7, 'the collector responded with 401: check OTEL_EXPORTER_OTLP_HEADERS');
    expect(warnings()).toEqual([
      'spans could not be exported: the collector responded with 401: check OTEL_EXPORTER_OTLP_HEADERS; 0 lost since the start',
    ]);
    await clock.advance(60_000);
    expect(warnings().slice(1)).toEqual([
      'spans could not be exported: the collector responded with 401: check OTEL_EXPORTER_OTLP_HEADERS; 7 lost since the start',
    ]);
    await clock.advance(600_000);
    expect(warnings()).toHaveLength(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    [
      Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      /the collector refused the connection \(ECONNREFUSED\); .* OTEL_EXPORTER_OTLP_ENDPOINT/,
    ],
    [new Error('Concurrent export limit reached'), 'the collector responds too slowly: too many exports are under way'],
    [Object.assign(new Error('x'), { code: 'a sentence with s3cret' }), 'Error'],
    [new TypeError('s3cret'), 'TypeError'],
  ])('a network error is named (%#)', async (error, name) => {
    const { tracing, request, warnings } = open(failing(error));
    request();
    await tracing.close(1000);
    const [warning, ...others] = warnings();
    expect(warning).toMatch(name);
    expect([warning, ...others]).toEqual([
      expect.stringMatching(/^spans could not be exported: .*; 1 lost since the start$/),
    ]);
  });
});

describe('spans that are lost are reported with the cause', () => {
  // First: events of connections that another test has broken off come late.
  it('when the process ends while the exporter still repeats the request', async () => {
    const { clock, tracing, request, warnings } = open(new OTLPTraceExporter({ url: 'http://127.0.0.1:1/' }));
    const failed = Promise.withResolvers<undefined>();
    const onError = (message: unknown): void => {
      const { code } = (message as { error: NodeJS.ErrnoException }).error;
      if (code === 'ECONNREFUSED') failed.resolve(undefined);
    };
    subscribe('http.client.request.error', onError);
    request();
    const closed = tracing.close(1000);
    await failed.promise;
    unsubscribe('http.client.request.error', onError);
    await clock.advance(1000);
    await closed;
    expect(warnings()).toEqual([
      expect.stringContaining('exported in time: the collector refused the connection (ECONNREFUSED); nothing listens'),
    ]);
  });

  const statuses = [301, 400, 401, 403, 404, 413, 429, 500, 502, 503, 504];
  it.each(statuses)('when the collector responds with %i', async (status) => {
    await using server = await startCollector((_, response) => response.writeHead(status).end('s3cret'));
    expect(await exportTo(server.url)).toMatch(
      new RegExp(`^spans could not be exported: the collector responded with ${String(status)}[^\\d]`),
    );
  });

  it.each([
    ['refuses connections', 'http://127.0.0.1:1/', 'refused the connection (ECONNREFUSED)'],
    ['has no address', 'http://collector.invalid/', /has a host name that cannot be resolved.* \(E[A-Z_]+\)/],
  ])('when the collector %s', async (_, url, cause) => {
    expect(await exportTo(url)).toMatch(cause);
  });

  it('when the collector does not speak TLS, has no trusted certificate, closes the connection, or sends no HTTP', async () => {
    await using plain = await startCollector((_, response) => response.end());
    expect(await exportTo(plain.url.replace('http:', 'https:'))).toContain('does not speak TLS on this port');
    using certificates = makeCertificates({});
    const { cert, key } = certificates;
    await using encrypted = await startTlsServer({ cert, key });
    expect(await exportTo(encrypted.url)).toMatch(/certificate.*\([A-Z_]+\); set OTEL_EXPORTER_OTLP_CERTIFICATE/);
    await using closing = await startCollector((_, response) => response.socket?.resetAndDestroy());
    expect(await exportTo(closing.url)).toContain('cut the connection (ECONNRESET)');
    await using talking = await startCollector((_, response) => response.socket?.end('s3cret\r\n\r\n'));
    expect(await exportTo(talking.url)).toMatch(/does not speak HTTP \(HPE_/);
  });

  it('when the collector does not respond', async () => {
    await using silent = await startCollector(() => undefined);
    expect(await exportTo(silent.url)).toContain('did not respond in time: OTEL_EXPORTER_OTLP_TIMEOUT');
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
    expect(warnings()).toEqual(['the last spans could not be exported in time: the collector has not responded']);
  });
});
