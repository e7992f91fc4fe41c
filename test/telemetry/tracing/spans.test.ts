/** The spans of one request, as an exporter gets them. */
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { readTraceParent } from '../../../src/exchange/trace-context.ts';
import type { TracedAttempt, TracedRequest } from '../../../src/exchange/request-tracer.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { createTracing } from '../../../src/telemetry/tracing/exporting.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const START = Date.UTC(2026, 10, 1);

const get: TracedRequest = { method: 'GET', httpVersion: '1.1', headers: {} };
const attempt: TracedAttempt = {
  method: 'GET',
  baseUrl: new URL('https://api.example:8443/base'),
  path: '/base/quotes?who=me',
  headers: ['Authorization', 'Bearer s3cret'],
};
const ended: RequestRecord = {
  route: 'quotes',
  method: 'GET',
  path: '/quotes',
  code: 200,
  source: 'upstream',
  durationMs: 5,
  queuedMs: 0,
  attempts: 1,
  requestBytes: 0,
  responseBytes: 3,
};
const head = { status: 200, statusText: '', headers: [], isRewritten: false, memoryBytes: 0 };
const failure = {
  kind: 'reset',
  detail: 'it broke',
  proxyStatus: 'connection_terminated',
  cause: 'reset_after_sent',
  permanent: false,
} as const;

function trace(sampling = { ratio: 1, followsParent: true }) {
  const clock = new ManualClock(START);
  const exporter = new InMemorySpanExporter();
  let spans: ReadableSpan[] = [];
  const keeping = {
    export: exporter.export.bind(exporter),
    shutdown: async () => {
      spans = exporter.getFinishedSpans();
      await exporter.shutdown();
    },
  };
  const batching = { delayMs: 60_000, queueMax: 100, batchMax: 100 };
  const settings = { kind: 'on' as const, sampling, batching, warnings: [] };
  const tokenServers = new Map([['default', new URL('https://login.example/oauth/token')]]);
  const options = { env: {}, version: '1.2.3', tokenServers, clock, observe: () => undefined };
  const tracing = createTracing(options, settings, keeping);
  const finish = async (): Promise<ReadableSpan[]> => {
    await tracing.close(1000);
    return spans;
  };
  return { clock, tracing, finish };
}

function sentParent(fields: readonly string[]) {
  return readTraceParent(fields[fields.indexOf('traceparent') + 1]);
}

function millis([seconds, nanos]: readonly [number, number]): number {
  return seconds * 1000 + nanos / 1e6 - START;
}

describe('a request with one attempt', () => {
  it('has a server span with a client span, whose context is sent upstream', async () => {
    const { clock, tracing, finish } = trace();
    await clock.advance(1000.5);
    const tracer = tracing.startTracer(get);
    await clock.advance(2);
    const sent = tracer.startAttempt(attempt);
    await clock.advance(3);
    tracer.endAttempt({ kind: 'relayed', head, fault: undefined });
    tracer.endRequest(ended);
    const [client, server, ...others] = await finish();

    expect(others).toEqual([]);
    expect(sent.slice(0, 2)).toEqual(attempt.headers);
    expect(sentParent(sent)).toEqual({ ...pick(client), isSampled: true });
    expect(tracer.traceId).toBe(server?.spanContext().traceId);
    expect(client?.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
    expect(server).toMatchObject({ name: 'GET quotes', kind: SpanKind.SERVER, parentSpanContext: undefined });
    expect(server?.status).toEqual({ code: SpanStatusCode.UNSET });
    expect(server?.attributes).toEqual({
      'http.request.method': 'GET',
      'url.scheme': 'http',
      'network.protocol.version': '1.1',
      'url.path': '/quotes',
      'http.response.status_code': 200,
      'bearer_sidecar.route': 'quotes',
      'bearer_sidecar.attempts': 1,
    });
    expect(client).toMatchObject({ name: 'GET', kind: SpanKind.CLIENT, status: { code: SpanStatusCode.UNSET } });
    expect(client?.attributes).toEqual({
      'http.request.method': 'GET',
      'server.address': 'api.example',
      'server.port': 8443,
      'url.full': 'https://api.example:8443/base/quotes',
      'url.path': '/base/quotes',
      'http.response.status_code': 200,
    });
    expect([server?.startTime, server?.endTime].map((time) => millis(time ?? [0, 0]))).toEqual([1000.5, 1005.5]);
    expect([client?.startTime, client?.endTime].map((time) => millis(time ?? [0, 0]))).toEqual([1002.5, 1005.5]);
    expect(server?.resource.attributes).toMatchObject({ 'service.name': 'bearer-sidecar', 'service.version': '1.2.3' });
    expect(JSON.stringify([client?.attributes, server?.attributes])).not.toMatch(/s3cret|who=me/);
  });

  it('continues the trace of the client', async () => {
    const { tracing, finish } = trace();
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1' };
    const tracer = tracing.startTracer({ ...get, headers });
    const fields = ['traceparent', headers.traceparent, 'tracestate', headers.tracestate];
    const sent = tracer.startAttempt({ ...attempt, headers: fields });
    tracer.endAttempt({ kind: 'relayed', head, fault: undefined });
    tracer.endRequest(ended);
    const [client, server] = await finish();

    expect(tracer.traceId).toBe(TRACE);
    expect(server?.parentSpanContext).toMatchObject({ spanId: SPAN, isRemote: true });
    expect(sent).toEqual(['tracestate', 'a=1', 'traceparent', expect.any(String)]);
    expect(sentParent(sent)).toEqual({ ...pick(client), isSampled: true });
  });

  it('starts a new trace when that of the client is invalid, and drops its tracestate', async () => {
    const { tracing, finish } = trace();
    const headers = { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01`, tracestate: 'a=1' };
    const tracer = tracing.startTracer({ ...get, headers });
    const fields = ['traceparent', headers.traceparent, 'tracestate', headers.tracestate];
    const sent = tracer.startAttempt({ ...attempt, headers: fields });
    tracer.endRequest(ended);
    const [, server] = await finish();
    expect(server?.parentSpanContext).toBeUndefined();
    expect(sent).toHaveLength(2);
    expect(sentParent(sent)?.traceId).toBe(tracer.traceId);
  });
});

describe('sampling', () => {
  it.each([
    ['a trace that is not recorded elsewhere', { ratio: 1, followsParent: true }, '00'],
    ['a share of nothing', { ratio: 0, followsParent: false }, '01'],
  ])('%s records no span and passes the context on as not sampled', async (_, sampling, flags) => {
    const { clock, tracing, finish } = trace(sampling);
    const tracer = tracing.startTracer({ ...get, headers: { traceparent: `00-${TRACE}-${SPAN}-${flags}` } });
    tracer.startWait('queue');
    await clock.advance(10);
    tracer.endWait();
    const sent = sentParent(tracer.startAttempt(attempt));
    tracer.endAttempt({ kind: 'relayed', head, fault: undefined });
    tracer.endRequest(ended);
    expect(await finish()).toEqual([]);
    expect(sent).toMatchObject({ traceId: TRACE, isSampled: false });
    expect(tracer.traceId).toBe(TRACE);
  });
});

describe('an error', () => {
  it('is on the attempt span; the next attempt has a resend count', async () => {
    const { tracing, finish } = trace();
    const tracer = tracing.startTracer(get);
    tracer.startAttempt(attempt);
    const held = { head: { ...head, status: 429 }, body: Buffer.alloc(0), fault: undefined };
    tracer.endAttempt({ kind: 'held', ...held });
    tracer.startAttempt(attempt);
    tracer.endAttempt({ kind: 'failed', failure });
    tracer.startAttempt(attempt);
    tracer.endAttempt({ kind: 'relayed', head, fault: { detail: 'cut', cutBy: 'upstream', cause: 'response_cut' } });
    tracer.endRequest({ ...ended, attempts: 3, fault: 'cut' });
    const [first, second, third, server] = await finish();
    expect(first?.attributes).toMatchObject({ 'http.response.status_code': 429, 'error.type': '429' });
    expect(first?.attributes).not.toHaveProperty('http.request.resend_count');
    expect(first?.status).toEqual({ code: SpanStatusCode.ERROR });
    expect(second?.attributes).toMatchObject({ 'http.request.resend_count': 1, 'error.type': 'reset' });
    expect(second?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'it broke' });
    expect(third?.attributes).toMatchObject({ 'http.request.resend_count': 2, 'error.type': 'answer_broke_off' });
    expect(server?.attributes).toMatchObject({ 'bearer_sidecar.attempts': 3, 'error.type': 'answer_broke_off' });
    expect(server?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'cut' });
  });

  it.each([
    [{ code: 503, source: 'sidecar', localReply: 'QUEUE_FULL', fault: 'full' }, 'QUEUE_FULL'],
    [{ code: 499, source: 'sidecar', fault: 'the client left' }, 'client_left'],
    [{ code: 500 }, '500'],
  ] as const)('is on the request: %j', async (how, errorType) => {
    const { tracing, finish } = trace();
    tracing.startTracer(get).endRequest({ ...ended, ...how });
    const [server] = await finish();
    expect(server?.attributes).toMatchObject({ 'error.type': errorType, 'http.response.status_code': how.code });
    expect(server?.status.code).toBe(SpanStatusCode.ERROR);
  });

  it.each([
    { code: 404 },
    { code: 403, source: 'sidecar', localReply: 'HOST_NOT_ALLOWED', fault: 'no such host' },
  ] as const)('is no fault of the server: %j', async (how) => {
    const { tracing, finish } = trace();
    tracing.startTracer(get).endRequest({ ...ended, ...how });
    const [server] = await finish();
    expect(server?.attributes).not.toHaveProperty('error.type');
    expect(server?.status).toEqual({ code: SpanStatusCode.UNSET });
  });
});

describe('waits', () => {
  it('of 1 ms and more are spans within the request', async () => {
    const { clock, tracing, finish } = trace();
    const tracer = tracing.startTracer(get);
    for (const [stage, ms] of [
      ['token', 4],
      ['queue', 0.4],
      ['body', 3],
      ['queue', 20],
      ['upstream', 7],
    ] as const) {
      tracer.startWait(stage);
      await clock.advance(ms);
      tracer.endWait();
    }
    tracer.endRequest(ended);
    const spans = await finish();
    const server = spans.pop();
    expect(spans.map(({ name, kind, duration }) => [name, kind, duration[1] / 1e6])).toEqual([
      ['wait for a token', SpanKind.INTERNAL, 4],
      ['read the request body', SpanKind.INTERNAL, 3],
      ['wait in the queue', SpanKind.INTERNAL, 20],
      ['wait before a retry', SpanKind.INTERNAL, 7],
    ]);
    for (const span of spans) expect(span.parentSpanContext?.spanId).toBe(server?.spanContext().spanId);
  });
});

describe('a non-standard method', () => {
  it('is not part of the span name', async () => {
    const { tracing, finish } = trace();
    tracing.startTracer({ ...get, method: 'BREW' }).endRequest({ ...ended, method: 'BREW' });
    const [server] = await finish();
    expect(server?.name).toBe('HTTP quotes');
    expect(server?.attributes).toMatchObject({
      'http.request.method': '_OTHER',
      'http.request.method_original': 'BREW',
    });
  });
});

describe('token requests', () => {
  it('are separate traces', async () => {
    const { clock, tracing, finish } = trace();
    await clock.advance(100);
    tracing.observe({ kind: 'token-requested', credential: 'default', outcome: 'ok', durationMs: 40 });
    tracing.observe({
      kind: 'token-requested',
      credential: 'other',
      outcome: 'rejected',
      durationMs: 1,
      detail: 'rejected with 401',
    });
    tracing.observe({ kind: 'token-requested', credential: 'static', outcome: 'ok', durationMs: 1, file: '/t' });
    tracing.observe({ kind: 'authorization-overridden' });
    const [ok, rejected, ...others] = await finish();
    expect(others).toEqual([]);
    expect(ok).toMatchObject({ name: 'token request', kind: SpanKind.CLIENT, parentSpanContext: undefined });
    expect([ok?.startTime, ok?.endTime].map((time) => millis(time ?? [0, 0]))).toEqual([60, 100]);
    expect(ok?.attributes).toEqual({
      'bearer_sidecar.credential': 'default',
      'bearer_sidecar.token_outcome': 'ok',
      'server.address': 'login.example',
      'server.port': 443,
    });
    expect(rejected?.attributes).toMatchObject({ 'error.type': 'rejected' });
    expect(rejected?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'rejected with 401' });
  });
});

function pick(span: ReadableSpan | undefined): { traceId: string | undefined; spanId: string | undefined } {
  return { traceId: span?.spanContext().traceId, spanId: span?.spanContext().spanId };
}
