/** Traces, trace ids in the log and the sampled log, with the real process and a receiver of traces. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTraceParent } from '../../src/exchange/trace-context.ts';
import { call } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';

/** No test listens on a port this low: a port of the usual range may be in use by then. */
const CLOSED_URL = 'http://127.0.0.1:9';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

async function lastRequestLine(sidecar: RunningSidecar): Promise<Record<string, unknown>> {
  await sidecar.waitForLine(/"msg":"request"/);
  const lines = sidecar.stdout().split('\n').slice(0, -1);
  return JSON.parse(lines.findLast((line) => line.includes('"msg":"request"')) ?? '') as Record<string, unknown>;
}

describe('without an endpoint', () => {
  it('the context of the client is passed on as it is, and its trace id is in the log', async () => {
    await using chain = await startSidecarStack({ name: 'tracing-off' });
    const headers = { traceparent: PARENT, tracestate: 'a=1,b=2' };
    await call(`${chain.sidecar.proxyUrl}/quotes`, { headers });
    expect(chain.upstream.requests[0]?.headers).toMatchObject(headers);
    expect(await lastRequestLine(chain.sidecar)).toMatchObject({ traceId: TRACE });
  });

  it.each([
    ['nothing', false, {}],
    ['OTEL_SDK_DISABLED', false, { OTEL_EXPORTER_OTLP_ENDPOINT: CLOSED_URL, OTEL_SDK_DISABLED: 'true' }],
    ['an endpoint', true, { OTEL_EXPORTER_OTLP_ENDPOINT: CLOSED_URL }],
  ] as const)('with %s set: the tracing SDK is loaded: %s', async (_, isLoaded, env) => {
    const folder = mkdtempSync(join(tmpdir(), 'modules-'));
    try {
      const list = join(folder, 'list');
      const preload = join(import.meta.dirname, '..', 'support', 'list-modules.child.ts');
      const listing = { NODE_OPTIONS: `--import=${preload}`, LIST_MODULES: list };
      await using chain = await startSidecarStack({ name: 'tracing-modules', env: { ...env, ...listing } });
      expect((await call(`${chain.sidecar.proxyUrl}/quotes`)).status).toBe(200);
      const modules = readFileSync(list, 'utf8').split('\n');
      // Of the sources, or of what is built from them.
      expect(modules.some((url) => /\/(?:src\/commands\/run\.ts|dist\/run\.js)$/.test(url))).toBe(true);
      // The API alone is there in either case: prom-client loads it for itself.
      expect(modules.some((url) => /\/@opentelemetry\/(?!api\/)/.test(url))).toBe(isLoaded);
      expect(modules.some((url) => /\/(?:tracing\/spans\.ts|dist\/exporting\.js)$/.test(url))).toBe(isLoaded);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('with an endpoint', () => {
  it('a request that was refused once is a server span with two client spans, sent before the end', async () => {
    await using receiver = await startOtlpReceiver();
    await using chain = await startSidecarStack({
      name: 'tracing-on',
      respond: (_, response, index) => {
        response.writeHead(index === 0 ? 429 : 200, { 'retry-after': '0' }).end();
      },
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=k1',
        OTEL_SERVICE_NAME: 'legacy',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=not-this',
      },
    });
    const headers = { traceparent: PARENT, tracestate: 'a=1', cookie: 'session=crumbs' };
    const response = await call(`${chain.sidecar.proxyUrl}/quotes?name=visible`, { headers });
    expect(response.status).toBe(200);
    expect(await lastRequestLine(chain.sidecar)).toMatchObject({ traceId: TRACE, attempts: 2 });
    // The default delay of a batch is longer than this test: the end sends what is left.
    expect(await chain.sidecar.stop()).toMatchObject({ code: 0 });

    const { spans } = receiver;
    const server = spans.find(({ kind }) => kind === 2);
    const attempts = spans.filter(({ kind, name }) => kind === 3 && name === 'GET');
    const token = spans.find(({ name }) => name === 'token request');
    expect(server).toMatchObject({ name: 'GET default', traceId: TRACE, parentSpanId: '00f067aa0ba902b7', status: 0 });
    expect(server?.attributes).toMatchObject({ 'url.path': '/quotes', 'http.response.status_code': 200 });
    expect(server?.resource).toMatchObject({ 'service.name': 'legacy', 'deployment.environment.name': 'test' });
    expect(attempts.map(({ parentSpanId }) => parentSpanId)).toEqual([server?.spanId, server?.spanId]);
    expect(attempts.map(({ status, attributes }) => [status, attributes['http.response.status_code']])).toEqual([
      [2, 429],
      [0, 200],
    ]);
    expect(attempts.map(({ attributes }) => attributes['http.request.resend_count'])).toEqual([undefined, 1]);
    expect(chain.upstream.requests.map((request) => readTraceParent(request.headers.traceparent))).toEqual(
      attempts.map(({ spanId }) => ({ traceId: TRACE, spanId, isSampled: true })),
    );
    expect(chain.upstream.requests.map((request) => request.headers.tracestate)).toEqual(['a=1', 'a=1']);
    expect(token).toMatchObject({ kind: 3, parentSpanId: '', status: 0 });
    expect(token?.durationMs).toBeGreaterThan(0);
    expect(receiver.exports[0]).toMatchObject({ 'x-collector-key': 'k1', 'content-type': 'application/x-protobuf' });

    const { authorization = '' } = chain.upstream.requests[0]?.headers ?? {};
    const [basic = ''] = chain.tokens.requests.map((request) => request.headers.authorization);
    for (const secret of [
      authorization.slice('Bearer '.length),
      basic.slice('Basic '.length),
      'crumbs',
      'visible',
      'k1',
    ]) {
      expect(secret.length).toBeGreaterThan(1);
      expect(receiver.receivedBytes().includes(secret)).toBe(false);
    }
  });

  it.each([
    ['refuses', 500, 'the collector responded with 500'],
    ['is not there', undefined, 'the collector refused the connection (ECONNREFUSED)'],
  ] as const)('a collector that %s delays no request, and is logged once', async (_, response, reason) => {
    await using receiver = response === undefined ? undefined : await startOtlpReceiver(response);
    const url = receiver?.url ?? CLOSED_URL;
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '300',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
    };
    await using chain = await startSidecarStack({ name: 'tracing-refused', env });
    for (let count = 0; count < 3; count++) expect((await call(`${chain.sidecar.proxyUrl}/quotes`)).status).toBe(200);
    await chain.sidecar.waitForLine(/spans could not be exported/);
    expect((await call(`${chain.sidecar.proxyUrl}/quotes`)).status).toBe(200);
    const warnings = chain.sidecar.stdout().match(/spans could not be exported[^"]*/g);
    expect(warnings).toEqual([expect.stringContaining(reason)]);
    expect(chain.sidecar.stdout()).not.toContain('a secret of the collector');
    expect(await chain.sidecar.stop()).toMatchObject({ code: 0 });
  });

  it('a collector that never responds delays the exit for one second at most', async () => {
    await using receiver = await startOtlpReceiver('hang');
    await using chain = await startSidecarStack({
      name: 'tracing-hang',
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
    });
    expect((await call(`${chain.sidecar.proxyUrl}/quotes`)).status).toBe(200);
    expect(await chain.sidecar.stop()).toMatchObject({ code: 0 });
    expect(chain.sidecar.stdout()).toContain('the last spans could not be exported in time');
  });
});

describe('the log', () => {
  it('leaves out ordinary requests and keeps the others', async () => {
    await using chain = await startSidecarStack({
      name: 'log-sample',
      respond: ({ path }, response) => {
        response.writeHead(path === '/missing' ? 404 : 200).end();
      },
      env: { SIDECAR_LOG_SAMPLE: '0', SIDECAR_LOG_SLOW_MS: '60000' },
    });
    const { sidecar } = chain;
    await call(`${sidecar.proxyUrl}/ordinary`);
    await call(`${sidecar.proxyUrl}/missing`);
    expect(await lastRequestLine(sidecar)).toMatchObject({ path: '/missing', sampled: 1 });
    expect(sidecar.stdout()).not.toContain('/ordinary');
    expect(await sidecar.stop()).toMatchObject({ code: 0 });
  });
});
